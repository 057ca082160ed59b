// A vector of numbers whose resize() leaves new elements uninitialised and costs nothing within the
// capacity. Its memory is kept when it is freed (kept_memory.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "numsim/base/shared/kept_memory.h"

namespace numsim {

template <typename T>
class UninitializedVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);

 public:
  UninitializedVector() = default;
  explicit UninitializedVector(std::size_t size) { resize(size); }
  UninitializedVector(UninitializedVector&& other) noexcept { swap(other); }
  UninitializedVector& operator=(UninitializedVector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~UninitializedVector() { Free(); }

  // Existing elements keep their values.
  void resize(std::size_t size) {
    if (size > capacity_) Grow(std::max(size, 2 * capacity_));
    size_ = size;
  }
  void swap(UninitializedVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  const T* begin() const { return data_; }
  T* end() { return data_ + size_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  void Grow(std::size_t capacity) {
    if (capacity > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    T* const data = static_cast<T*>(TakeMemory(capacity * sizeof(T)));
    if (size_ != 0) std::memcpy(data, data_, size_ * sizeof(T));
    Free();
    data_ = data;
    capacity_ = capacity;
  }
  void Free() noexcept {
    if (data_ != nullptr) ReturnMemory(data_, capacity_ * sizeof(T));
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace numsim
