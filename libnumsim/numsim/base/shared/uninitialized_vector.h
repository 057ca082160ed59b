// A vector whose resize() leaves new elements uninitialised, so that the threads that fill it are the
// first to touch its memory.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace numsim {

template <typename T>
struct UninitializedAllocator : std::allocator<T> {
  static_assert(std::is_trivially_default_constructible_v<T>);

  template <typename U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };

  template <typename U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
};

template <typename T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace numsim
