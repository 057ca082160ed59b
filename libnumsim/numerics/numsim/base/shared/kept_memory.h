// Memory that is kept when it is freed, for lists that each step of an optimiser fills anew: taking
// fresh pages from the operating system can cost more than filling them.
#pragma once

#include <cstddef>

namespace numsim {

// Freed memory up to this size in all is kept for later calls, the rest is given back.
inline constexpr std::size_t kMostKeptMemory = std::size_t{256} << 20;

// Returns `bytes` bytes, aligned to a cache line and not initialised. Throws std::bad_alloc if there
// is no memory. Both functions may be called from any thread.
void* TakeMemory(std::size_t bytes);

// Takes back memory of TakeMemory(bytes).
void ReturnMemory(void* memory, std::size_t bytes) noexcept;

// Gives all kept memory back to the C library, and returns its size in bytes.
std::size_t ReleaseKeptMemory() noexcept;

}  // namespace numsim
