// What this machine can do at best: memcpy of the same array, in the same process, on the same
// threads. Every benchmark states its rate beside this one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "numsim/base/parallel.h"

namespace numsim::bench {

// 64 MiB of float32: beyond any cache of the reference machine's share.
inline constexpr size_t kElements = size_t{1} << 24;

// Bytes a second, read plus written, of a parallel memcpy of 64 MiB: the best of several.
inline double MemcpyBytesPerSecond(int threads) {
  SetThreadCount(threads);
  std::vector<float> from(kElements, 1.0f), to(kElements);
  double best = 0;
  for (int repeat = 0; repeat < 12; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    ParallelFor(kElements, 4096, [&](size_t begin, size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kElements * sizeof(float) / seconds.count());
  }
  return best;
}

}  // namespace numsim::bench
