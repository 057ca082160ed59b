// Runs kernels of backend/shared/kernel_blocks.h on the host, without a device. Each thread of a
// block is a fiber; all run on the calling thread, one at a time, until each waits or ends. So an
// order of threads can be chosen, and is the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace numsim {

struct FiberOptions {
  // Each word of shared memory at first: a NaN as float32, and two of these as float64.
  uint32_t unwritten = 0x7FF40000;
  // The order of threads. 0: the lowest thread that need not wait goes on. Otherwise threads have
  // random priorities, drawn anew at each barrier, and one of them runs as far ahead of the others
  // as barriers allow: alone, with the 16 threads of its group or with the 32 of its warp.
  uint64_t seed = 0;
  // Faults, to see that tests find them. The barrier of this number, in the order in which threads come
  // to the calls of Sync, waits for nobody.
  int lost_barrier = -1;
  // Shuffles take the number of the neighbour of the lane that they ask for.
  bool wrong_lane = false;
};

// A place in the text of a kernel.
struct CallSite {
  const char* file = "";
  int line = 0;
  friend bool operator==(const CallSite& a, const CallSite& b) {
    return a.line == b.line && std::strcmp(a.file, b.file) == 0;
  }
};

class FiberEnv;

// One block of threads at a time.
class FiberBlock {
 public:
  FiberBlock(unsigned threads, const FiberOptions& options);
  ~FiberBlock();
  FiberBlock(const FiberBlock&) = delete;
  FiberBlock& operator=(const FiberBlock&) = delete;

  // Runs body(env) for each thread of that block. Throws Error if a barrier is not reached by all
  // threads, or a shuffle not by its whole group: with the places where threads wait.
  void Run(size_t block, const std::function<void(FiberEnv&)>& body);
  // Returns the number of different calls of Sync that blocks have come to.
  size_t Barriers() const;

 private:
  friend class FiberEnv;
  struct State;

  void Sync(const CallSite& at);
  // Gives the group of `lanes` threads to which the calling thread belongs its word, and returns
  // the word of thread `source` of the block, which is in the group.
  uint64_t Exchange(uint64_t word, unsigned lanes, unsigned source, const CallSite& at);

  std::unique_ptr<State> state_;
};

// Env of one fiber. The places of calls are those of the kernel's text.
class FiberEnv {
 public:
  FiberEnv(FiberBlock* of, size_t block, unsigned thread)
      : of_(of), block_(block), thread_(thread) {}

  unsigned Thread() const { return thread_; }
  size_t Block() const { return block_; }
  void Sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    of_->Sync({file, line});
  }
  template <unsigned kLanes, class T>
  T Shuffle(T x, unsigned lane, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Of<kLanes>(x, lane % kLanes, {file, line});
  }
  template <unsigned kLanes, class T>
  T ShuffleXor(T x,
               unsigned mask,
               const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    return Of<kLanes>(x, (thread_ % kLanes) ^ mask, {file, line});
  }
  template <unsigned kLanes, class T>
  T ShuffleUp(T x,
              unsigned distance,
              const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    const unsigned lane = thread_ % kLanes;
    return Of<kLanes>(x, distance <= lane ? lane - distance : lane, {file, line});
  }
  template <unsigned kLanes, class T>
  T ShuffleDown(T x,
                unsigned distance,
                const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
    const unsigned lane = thread_ % kLanes;
    return Of<kLanes>(x, distance < kLanes - lane ? lane + distance : lane, {file, line});
  }

 private:
  template <unsigned kLanes, class T>
  T Of(T x, unsigned lane, const CallSite& at) {
    static_assert(kLanes == 2 || kLanes == 4 || kLanes == 8 || kLanes == 16 || kLanes == 32);
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    uint64_t word = 0;
    std::memcpy(&word, &x, sizeof x);
    word = of_->Exchange(word, kLanes, thread_ / kLanes * kLanes + lane, at);
    std::memcpy(&x, &word, sizeof x);
    return x;
  }

  FiberBlock* of_;
  size_t block_;
  unsigned thread_;
};

// Runs all blocks of a kernel, in another order for each seed. Shared memory ends where the kernel's struct ends. Returns the number of barriers (FiberBlock::Barriers).
template <class Kernel>
size_t RunBlocks(const Kernel& kernel, size_t blocks, const FiberOptions& options = {}) {
  using Shared = typename Kernel::Shared;
  static_assert(Kernel::kThreads % 32 == 0 && Kernel::kThreads <= 1024);
  static_assert(std::is_trivial_v<Shared> && sizeof(Shared) <= size_t{48} * 1024);
  constexpr std::align_val_t kAlign{alignof(Shared)};
  const auto free = [](void* memory) { ::operator delete(memory, kAlign); };
  FiberBlock block(Kernel::kThreads, options);
  for (size_t b = 0; b < blocks; ++b) {
    const std::unique_ptr<void, decltype(free)> memory(::operator new(sizeof(Shared), kAlign),
                                                       free);
    constexpr size_t kWord = sizeof options.unwritten;
    for (size_t at = 0; at + kWord <= sizeof(Shared); at += kWord) {
      std::memcpy(static_cast<char*>(memory.get()) + at, &options.unwritten, kWord);
    }
    auto& shared = *static_cast<Shared*>(memory.get());
    block.Run((b + options.seed) % blocks, [&](FiberEnv& env) { kernel.Run(env, shared); });
  }
  return block.Barriers();
}

// Launches the kernels of one operation by RunBlocks. Barriers have numbers across all of them.
struct FiberLauncher {
  FiberOptions options;
  std::shared_ptr<size_t> barriers = std::make_shared<size_t>(0);  // of the launches so far

  template <class Kernel>
  void operator()(const Kernel& kernel, size_t blocks) const {
    FiberOptions own = options;
    own.lost_barrier -= static_cast<int>(*barriers);  // negative: none of this kernel's
    *barriers += RunBlocks(kernel, blocks, own);
  }
};

}  // namespace numsim
