#include "numsim/backend/matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "numsim/backend/device_context.h"
#include "numsim/backend/float_matrix.h"
#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr std::align_val_t kAlignment{64};

// A build without CUDA has no device, so no place there is one.
void* Allocate(Place place, size_t bytes) {
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return device_memory::Allocate(bytes);
  }
  return ::operator new(bytes, kAlignment);
}

void Free(Place place, void* memory, size_t bytes) noexcept {
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return device_memory::Free(memory, bytes);
  }
  ::operator delete(memory, kAlignment);
}

void CopyBytes(const void* from, Place from_place, void* to, Place to_place, size_t bytes) {
  if (bytes == 0) return;
  if (from_place.IsHost() && to_place.IsHost()) {
    std::memcpy(to, from, bytes);
    return;
  }
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (from_place.IsHost()) {
      device_memory::CopyIn(from, to, bytes, to_place.Stream());
      to_place.Stream().Wait();
    } else if (to_place.IsHost()) {
      device_memory::CopyOut(from, to, bytes, from_place.Stream());
      from_place.Stream().Wait();
    } else {
      NUMSIM_REQUIRE(from_place == to_place, "a copy between two contexts of a device");
      device_memory::CopyWithin(from, to, bytes, to_place.Stream());
    }
  }
}

// Returns the number of elements of a matrix, which must be one that some memory can hold.
template <typename T>
size_t ElementsOf(size_t rows, size_t cols) {
  size_t n = 0, bytes = 0;
  NUMSIM_REQUIRE(
      !__builtin_mul_overflow(rows, cols, &n) && !__builtin_mul_overflow(n, sizeof(T), &bytes),
      "Buffer: {} x {} elements are more than any memory",
      rows,
      cols);
  return n;
}

}  // namespace

DeviceContext& Place::Context() const {
  NUMSIM_REQUIRE(!IsHost(), "the data are on the host, expected a device");
  return *context_;
}

DeviceStream& Place::Stream() const { return Context().stream(); }

const char* ToString(Place place) { return place.IsHost() ? "host" : "device"; }

void RequireHost(const char* operation, std::initializer_list<Place> places) {
  for (const Place place : places) {
    if (place.IsHost()) continue;
    throw Error::Format("{} has no kernel for a device yet", operation);
  }
}

void RefusePlaces(const char* operation, Place first, Place other) {
  throw Error::Format("{}: arguments on the {} and on the {}{}, expected one place",
                      operation,
                      ToString(first),
                      ToString(other),
                      first.IsHost() || other.IsHost() ? "" : " (of two contexts)");
}

template <typename T>
Buffer<T>::~Buffer() {
  if (!borrowed_) Free(view_.place, view_.data, capacity_ * sizeof(T));
}

template <typename T>
Buffer<T>::Buffer(const Buffer& other) : Buffer(other.view_.place) {
  *this = other;
}

template <typename T>
Buffer<T>& Buffer<T>::operator=(const Buffer& other) {
  if (this == &other) return *this;
  EnsureAt(other.view_.place);
  Renew(other.view_.rows, other.view_.cols);
  CopyMatrix<T>(other.View(), view_);
  return *this;
}

template <typename T>
Buffer<T>::Buffer(Buffer&& other) noexcept
    : view_(other.view_), capacity_(other.capacity_), borrowed_(other.borrowed_) {
  other.view_ = {nullptr, 0, 0, 0, view_.place};
  other.capacity_ = 0;
  other.borrowed_ = false;
}

template <typename T>
Buffer<T>& Buffer<T>::operator=(Buffer&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(capacity_, other.capacity_);
  std::swap(borrowed_, other.borrowed_);
  return *this;
}

template <typename T>
void Buffer<T>::Borrow(MatrixSpan<T> memory) {
  NUMSIM_REQUIRE(memory.Contiguous() && memory.place == place(),
                 "Buffer: memory of {} x {} elements with stride {} on the {}, expected contiguous "
                 "memory on the {}",
                 memory.rows,
                 memory.cols,
                 memory.stride,
                 ToString(memory.place),
                 ToString(place()));
  *this = Buffer(place());
  view_.data = memory.data;
  capacity_ = memory.Elements();
  borrowed_ = true;
}

template <typename T>
void Buffer<T>::RequireOwned(size_t elements) const {
  NUMSIM_REQUIRE(!borrowed_,
                 "Buffer: {} elements, expected at most the {} of the memory of another owner",
                 elements,
                 capacity_);
}

template <typename T>
void Buffer<T>::Allocate(size_t elements) {
  view_.data = static_cast<T*>(numsim::Allocate(view_.place, elements * sizeof(T)));
  capacity_ = elements;
}

template <typename T>
MatrixSpan<T> Buffer<T>::Resize(size_t rows, size_t cols) {
  if (const size_t n = ElementsOf<T>(rows, cols); n > capacity_) {
    RequireOwned(n);
    Buffer old = std::move(*this);  // freed at the end; on a device that waits for the copy
    Allocate(n);
    CopyBytes(old.view_.data, old.place(), view_.data, place(), old.view_.Bytes());
  }
  view_ = {view_.data, rows, cols, cols, view_.place};
  return view_;
}

template <typename T>
MatrixSpan<T> Buffer<T>::Renew(size_t rows, size_t cols) {
  if (const size_t n = ElementsOf<T>(rows, cols); n > capacity_) {
    RequireOwned(n);
    *this = Buffer(place());
    Allocate(n);
  }
  view_ = {view_.data, rows, cols, cols, view_.place};
  return view_;
}

template <typename T>
void CopyMatrix(In<T> from, MatrixSpan<T> to) {
  NUMSIM_REQUIRE(from.Contiguous() && to.Contiguous() && from.Elements() == to.Elements(),
                 "CopyMatrix: {} x {} to {} x {}, expected contiguous matrices of equal elements",
                 from.rows,
                 from.cols,
                 to.rows,
                 to.cols);
  CopyBytes(from.data, from.place, to.data, to.place, from.Bytes());
}

void CopyFloats(ConstFloatSpan from, FloatSpan to) {
  NUMSIM_REQUIRE(from.Contiguous() && to.Contiguous() && from.Elements() == to.Elements() &&
                     from.element == to.element && from.ElementBytes() == to.ElementBytes(),
                 "CopyFloats: {} x {} to {} x {}, expected contiguous matrices of equal elements",
                 from.rows,
                 from.cols,
                 to.rows,
                 to.cols);
  CopyBytes(from.data, from.place, to.data, to.place, from.Bytes());
}

std::vector<float> ToVector(ConstFloatSpan matrix) {
  if (!matrix.IsBf16Memory()) return ToVector(matrix.Float32());
  const std::vector<uint16_t> codes = ToVector(matrix.Bf16());
  std::vector<float> values(codes.size());
  std::ranges::transform(codes, values.begin(), [](uint16_t code) {
    return std::bit_cast<float>(uint32_t{code} << 16);
  });
  return values;
}

template class Buffer<float>;
template class Buffer<double>;
template class Buffer<int32_t>;
template class Buffer<uint32_t>;
template class Buffer<uint16_t>;
template class Buffer<uint8_t>;

template void CopyMatrix<float>(In<float>, MatrixSpan<float>);
template void CopyMatrix<double>(In<double>, MatrixSpan<double>);
template void CopyMatrix<int32_t>(In<int32_t>, MatrixSpan<int32_t>);
template void CopyMatrix<uint32_t>(In<uint32_t>, MatrixSpan<uint32_t>);
template void CopyMatrix<uint16_t>(In<uint16_t>, MatrixSpan<uint16_t>);
template void CopyMatrix<uint8_t>(In<uint8_t>, MatrixSpan<uint8_t>);

}  // namespace numsim
