#include "numsim/ops/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace numsim {
namespace {

constexpr std::align_val_t kAlignment{64};

template <typename T>
T* Allocate(size_t n) {
  return static_cast<T*>(::operator new(n * sizeof(T), kAlignment));
}

}  // namespace

void RequireHost(const char* operation, std::initializer_list<Place> places) {
  for (const Place place : places) {
    if (place == Place::kHost) continue;
    throw Error::Format("{} has no kernel for a device yet", operation);
  }
}

template <typename T>
Buffer<T>::Buffer(Place place) {
  RequireHost("memory of training", {place});
  view_.place = place;
}

template <typename T>
Buffer<T>::~Buffer() {
  ::operator delete(view_.data, kAlignment);
}

template <typename T>
Buffer<T>::Buffer(Buffer&& other) noexcept
    : view_(std::exchange(other.view_, {})), capacity_(std::exchange(other.capacity_, 0)) {}

template <typename T>
Buffer<T>& Buffer<T>::operator=(Buffer&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

template <typename T>
MatrixSpan<T> Buffer<T>::Resize(size_t rows, size_t cols) {
  const size_t n = rows * cols;
  if (n > capacity_) {
    T* const larger = Allocate<T>(n);
    std::copy_n(view_.data, std::min(view_.Elements(), n), larger);
    ::operator delete(view_.data, kAlignment);
    view_.data = larger;
    capacity_ = n;
  }
  view_ = {view_.data, rows, cols, cols, view_.place};
  return view_;
}

template class Buffer<float>;
template class Buffer<double>;
template class Buffer<int32_t>;

}  // namespace numsim
