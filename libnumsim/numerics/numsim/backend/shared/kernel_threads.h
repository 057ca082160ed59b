// Kernels as plain C++. A kernel is a struct with its arguments and a member
//   template <class Env> void Run(size_t thread) const
// that does the work of one thread. A member kBlocksTogether, if there is one, is the number of
// blocks of threads for which a multiprocessor must have registers at once. Env has what threads
// need of one another, and what a device computes faster than by the general text:
//   RaiseTo(p, x), LowerTo(p, x), FlipBits(p, x)   *p = max(*p, x), min(*p, x), *p ^ x, without
//                           losing what other threads do to *p
//   RaiseToTogether(p, x)   RaiseTo(p, x); threads 32 k to 32 k + 31 all call it, and those with
//                           x > 0 with the same p
//   kTogether               how many neighbours act together: threads n k to n k + n - 1, if it is n
//   MostTogether(x)           returns the greatest x of them, which all call it
//   EachOfTwo(make, results)  results[s] = make(s) for s = 0, 1 in all of them, which all call it with
//                             the same `make` and share the work
//   kConvertsFp8            has DecodeFp8(word, e5m2, values) and EncodeFp8(values, e5m2): four
//                           numbers from and to the bytes of a word, in e5m2 or e4m3fn, rounded to
//                           nearest even, saturating; encodes finite numbers alone
//   DivModerate(a, b), SqrtModerate(a)   a / b, sqrt(a) rounded to nearest; a >= 2^-100 in magnitude,
//                           a, b, and the results in 2^-119 .. 2^116
// Threads of a launch may run in any order. A device
// runs them by cuda::LaunchThreads (launch_threads_cuda.cuh), tests on the host by RunThreads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

// NUMSIM_UNROLL before a loop of a few rounds: its arrays stay in registers on a device.
// NUMSIM_UNROLL_2 where two rounds together are enough, NUMSIM_ROLL before one whose code is long.
// Device code defines them before it includes kernels (launch_threads_cuda.cuh).
#ifndef NUMSIM_UNROLL
#define NUMSIM_UNROLL
#define NUMSIM_UNROLL_2
#define NUMSIM_ROLL
#endif

namespace numsim {

// Env of one thread of the host.
struct HostThreads {
  static constexpr bool kConvertsFp8 = false;
  static void RaiseTo(uint32_t* p, uint32_t x) {
    if (x > *p) *p = x;
  }
  static void RaiseToTogether(uint32_t* p, uint32_t x) {
    if (x != 0) RaiseTo(p, x);
  }
  static constexpr unsigned kTogether = 1;
  static uint32_t MostTogether(uint32_t x) { return x; }
  template <class Make, class Result>
  static void EachOfTwo(const Make& make, Result (&results)[2]) {
    for (int s = 0; s < 2; ++s) results[s] = make(s);
  }
  static float DivModerate(float a, float b) { return a / b; }
  static float SqrtModerate(float a) { return std::sqrt(a); }
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
