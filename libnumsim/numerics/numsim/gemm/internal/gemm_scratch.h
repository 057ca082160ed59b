// Memory that a thread keeps from one GEMM to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace numsim {

// The uses of the memory: a thread has one array for each.
enum class ScratchUse {
  kStates,
  kPanelsA,
  kPanelsB,
  kScalesA,
  kScalesB,
  kPacking,
  kDigits,
  kCount
};

// Returns `size` bytes of the thread's memory for a use, from a cache line on.
inline std::byte* ScratchBytes(ScratchUse use, size_t size) {
  constexpr size_t kCacheLine = 64;
  struct Release {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Memory {
    std::unique_ptr<std::byte, Release> bytes;
    size_t size = 0;
  };
  thread_local std::array<Memory, static_cast<size_t>(ScratchUse::kCount)> memories;
  Memory& memory = memories[static_cast<size_t>(use)];
  if (memory.size < size) {
    memory = {};
    const size_t lines = (size + kCacheLine - 1) / kCacheLine;
    memory.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kCacheLine, lines * kCacheLine)));
    if (memory.bytes == nullptr) throw std::bad_alloc();
    memory.size = size;
  }
  return memory.bytes.get();
}

// Returns memory for n elements, not initialised. It holds until the thread's next call for the
// same use. Getting fresh pages would cost more than writing panels to them.
template <typename T>
T* Scratch(ScratchUse use, size_t n) {
  static_assert(std::is_trivially_destructible_v<T>);
  return reinterpret_cast<T*>(ScratchBytes(use, n * sizeof(T)));
}

}  // namespace numsim
