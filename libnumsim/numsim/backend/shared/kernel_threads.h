// Kernels as plain C++. A kernel is a struct with its arguments and a member
//   template <class Env> void Run(size_t thread) const
// that does the work of one thread. Env has what threads need of one another:
//   RaiseTo(p, x), LowerTo(p, x), FlipBits(p, x)   *p = max(*p, x), min(*p, x), *p ^ x
// without losing what other threads do to *p. Threads of a launch may run in any order. A device
// runs them by cuda::LaunchThreads (launch_threads_cuda.cuh), tests on the host by RunThreads.
#pragma once

#include <cstddef>
#include <cstdint>

// NUMSIM_UNROLL before a loop of a few rounds: its arrays stay in registers on a device. NUMSIM_ROLL
// before one whose code is long. Device code defines them before it includes kernels
// (launch_threads_cuda.cuh).
#ifndef NUMSIM_UNROLL
#define NUMSIM_UNROLL
#define NUMSIM_ROLL
#endif

namespace numsim {

// Env of one thread of the host.
struct HostThreads {
  static void RaiseTo(uint32_t* p, uint32_t x) {
    if (x > *p) *p = x;
  }
  static void LowerTo(uint32_t* p, uint32_t x) {
    if (x < *p) *p = x;
  }
  static void FlipBits(uint32_t* p, uint32_t x) { *p ^= x; }
};

// Runs all threads on the calling one: thread `first`, `first` + stride, ... modulo their number.
// Requires a stride that shares no divisor with the number.
template <class Kernel>
void RunThreads(const Kernel& kernel, size_t threads, size_t first = 0, size_t stride = 1) {
  for (size_t i = 0; i < threads; ++i) {
    kernel.template Run<HostThreads>((first + i * stride) % threads);
  }
}

}  // namespace numsim
