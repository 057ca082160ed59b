#include "numsim/backend/matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "numsim/backend/device_context.h"
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

template <typename T>
Buffer<T>::Buffer(Place place, Element element) {
  NUMSIM_REQUIRE(element == Element::kFloat32 || (std::is_same_v<T, float> && !place.IsHost()),
                 "Buffer: elements of bf16 on the {}, expected float on a device",
                 ToString(place));
  view_.place = place;
  view_.element = element;
}

template <typename T>
Buffer<T>::~Buffer() {
  Free(view_.place, view_.data, capacity_ * view_.ElementBytes());
}

template <typename T>
Buffer<T>::Buffer(const Buffer& other) : Buffer(other.view_.place, other.view_.element) {
  *this = other;
}

template <typename T>
Buffer<T>& Buffer<T>::operator=(const Buffer& other) {
  if (this == &other) return *this;
  EnsureAt(other.view_.place, other.view_.element);
  Resize(other.view_.rows, other.view_.cols);
  CopyMatrix<T>(other.View(), view_);
  return *this;
}

template <typename T>
Buffer<T>::Buffer(Buffer&& other) noexcept : view_(other.view_), capacity_(other.capacity_) {
  other.view_ = {nullptr, 0, 0, 0, view_.place, view_.element};
  other.capacity_ = 0;
}

template <typename T>
Buffer<T>& Buffer<T>::operator=(Buffer&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

template <typename T>
MatrixSpan<T> Buffer<T>::Resize(size_t rows, size_t cols) {
  size_t n = 0, bytes = 0;
  NUMSIM_REQUIRE(!__builtin_mul_overflow(rows, cols, &n) &&
                     !__builtin_mul_overflow(n, view_.ElementBytes(), &bytes),
                 "Buffer: {} x {} elements are more than any memory",
                 rows,
                 cols);
  if (n > capacity_) {
    Buffer larger(view_.place, view_.element);
    larger.view_.data = static_cast<T*>(Allocate(view_.place, bytes));
    CopyBytes(view_.data, view_.place, larger.view_.data, view_.place, view_.Bytes());
    larger.capacity_ = n;
    std::swap(view_.data,
              larger.view_.data);  // freed at the end; on a device that waits for the copy
    std::swap(capacity_, larger.capacity_);
  }
  view_ = {view_.data, rows, cols, cols, view_.place, view_.element};
  return view_;
}

template <typename T>
void CopyMatrix(In<T> from, MatrixSpan<T> to) {
  NUMSIM_REQUIRE(from.Contiguous() && to.Contiguous() && from.Elements() == to.Elements() &&
                     from.ElementBytes() == to.ElementBytes(),
                 "CopyMatrix: {} x {} to {} x {}, expected contiguous matrices of equal elements",
                 from.rows,
                 from.cols,
                 to.rows,
                 to.cols);
  CopyBytes(from.data, from.place, to.data, to.place, from.Bytes());
}

std::vector<float> ToVector(MatrixSpan<const float> matrix) {
  std::vector<float> values(matrix.Elements());
  NUMSIM_REQUIRE(
      matrix.Contiguous(), "ToVector: stride {}, expected {}", matrix.stride, matrix.cols);
  if (matrix.element == Element::kFloat32) {
    CopyBytes(matrix.data, matrix.place, values.data(), {}, matrix.Bytes());
    return values;
  }
  std::vector<uint16_t> codes(values.size());
  CopyBytes(matrix.data, matrix.place, codes.data(), {}, matrix.Bytes());
  std::ranges::transform(codes, values.begin(), [](uint16_t code) {
    return std::bit_cast<float>(uint32_t{code} << 16);
  });
  return values;
}

template class Buffer<float>;
template class Buffer<double>;
template class Buffer<int32_t>;
template class Buffer<uint16_t>;
template class Buffer<uint8_t>;

template void CopyMatrix<float>(In<float>, MatrixSpan<float>);
template void CopyMatrix<double>(In<double>, MatrixSpan<double>);
template void CopyMatrix<int32_t>(In<int32_t>, MatrixSpan<int32_t>);
template void CopyMatrix<uint16_t>(In<uint16_t>, MatrixSpan<uint16_t>);
template void CopyMatrix<uint8_t>(In<uint8_t>, MatrixSpan<uint8_t>);

}  // namespace numsim
