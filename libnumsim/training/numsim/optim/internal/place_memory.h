// Arrays of plain structs in memory of a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/backend/matrix.h"

namespace numsim {

// Returns room for `count` elements of type T.
template <typename T>
Buffer<uint8_t> Room(size_t count, Place place) {
  return Buffer<uint8_t>(place, count * sizeof(T));
}

template <typename T>
T* At(Buffer<uint8_t>& buffer) {
  return reinterpret_cast<T*>(buffer.View().data);
}

// Copies to the place, in the order of its work. The host's memory may be changed at once: a device
// copies pageable memory to its own staging memory first.
template <typename T>
void CopyIn(const std::vector<T>& from, Buffer<uint8_t>& to) {
  const size_t bytes = from.size() * sizeof(T);
  if (bytes == 0) return;
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!to.place().IsHost()) {
      return device_memory::CopyIn(from.data(), to.View().data, bytes, to.place().Stream());
    }
  }
  std::memcpy(to.View().data, from.data(), bytes);
}

// Sets all bytes to zero.
template <typename T>
void FillZeros(MatrixSpan<T> matrix) {
  if (matrix.Empty()) return;
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!matrix.place.IsHost()) {
      return device_memory::FillBytes(matrix.data, 0, matrix.Bytes(), matrix.place.Stream());
    }
  }
  std::memset(matrix.data, 0, matrix.Bytes());
}

// Waits, and returns elements of a place.
template <typename T>
std::vector<T> Fetch(const Buffer<uint8_t>& from, size_t count) {
  const std::vector<uint8_t> bytes = ToVector(from.View());
  std::vector<T> values(count);
  if (count != 0) std::memcpy(static_cast<void*>(values.data()), bytes.data(), count * sizeof(T));
  return values;
}

}  // namespace numsim
