#include "numsim/base/shared/kept_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace numsim {
namespace {

constexpr std::size_t kCacheLine = 64;

// Rounds up to one of four sizes per power of two, so that memory fits later lists of about the same
// length.
std::size_t RoundedUp(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t unit =
      std::max(kCacheLine, std::bit_floor(std::max<std::size_t>(bytes, 1)) / 4);
  return (bytes + unit - 1) / unit * unit;
}

class KeptMemory {
 public:
  ~KeptMemory() { Release(); }

  // Returns nullptr if none of this size is kept.
  void* Take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(size);
    if (found == kept_.end()) return nullptr;
    void* const memory = found->second;
    kept_.erase(found);
    total_ -= size;
    return memory;
  }

  // Returns false if the memory was not kept.
  bool Keep(void* memory, std::size_t size) noexcept try {
    const std::lock_guard lock(mutex_);
    if (total_ + size > kMostKeptMemory) return false;
    kept_.emplace(size, memory);
    total_ += size;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  std::size_t Release() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [size, memory] : kept_) std::free(memory);
    kept_.clear();
    return std::exchange(total_, 0);
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, void*> kept_;  // by size
  std::size_t total_ = 0;
};

KeptMemory& Kept() {
  static KeptMemory* const kept = new KeptMemory;  // outlives every thread
  return *kept;
}

}  // namespace

void* TakeMemory(std::size_t bytes) {
  const std::size_t size = RoundedUp(bytes);
  if (void* const kept = Kept().Take(size)) return kept;
  void* const memory = std::aligned_alloc(kCacheLine, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void ReturnMemory(void* memory, std::size_t bytes) noexcept {
  if (!Kept().Keep(memory, RoundedUp(bytes))) std::free(memory);
}

std::size_t ReleaseKeptMemory() noexcept { return Kept().Release(); }

}  // namespace numsim
