// Kernels whose threads work together in blocks, as plain C++. (kernel_threads.h has the kernels
// whose threads need nothing of one another.) A kernel is a struct with its arguments and
//   static constexpr unsigned kThreads   the threads of a block: a multiple of 32, at most 1024
//   struct Shared {...};                 memory that the threads of a block share: plain data of at
//                                        most 48 KiB, undefined at first
//   template <class Env>
//   void Run(Env& env, Shared& shared) const   the work of one thread
// Env has
//   Thread(), Block()       the number of the thread in its block, and of the block in the launch
//   Sync()                  waits until all threads of the block have come to this call; what each
//                           of them wrote before it, all see after it
// and exchanges among groups of kLanes = 2, 4, 8, 16 or 32 threads, whose numbers begin at a
// multiple of kLanes. Lane l of a group is its thread l. All threads of a group, and only they, wait
// for one another at such a call; x is a number of 4 or 8 bytes:
//   Shuffle<kLanes>(x, l)      returns the x of lane l mod kLanes
//   ShuffleXor<kLanes>(x, m)   the x of lane (own lane XOR m); requires m < kLanes
//   ShuffleUp<kLanes>(x, d)    the x of the lane d below its own; its own x if there is none
//   ShuffleDown<kLanes>(x, d)  the x of the lane d above its own; its own x if there is none
// Blocks of a launch may run in any order, and so may threads between these calls. Without Sync a
// thread must not read what another one writes: not in shared memory, nor in any other.
//
// A device runs the blocks by cuda::LaunchBlocks (launch_blocks_cuda.cuh). Tests run them on the host
// by RunBlocks (tests/support/fiber_block.h), which finds a call that not all its threads reach, and
// by many orders of threads a missing one.
#pragma once

#include <cstddef>

#include "numsim/base/host_device.h"

namespace numsim {

// Shared memory of a kernel that has none.
struct NothingShared {};

// Returns the blocks that have `each` of `count` things, rounded up.
NUMSIM_INLINE constexpr size_t BlocksOf(size_t count, size_t each) {
  return (count + each - 1) / each;
}

}  // namespace numsim
