// Checks that tests of kernels share.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/ops/grid.h"
#include "tests/support/fiber_block.h"

namespace numsim {

// Memory for what a launch keeps between its kernels: exactly that much, and full of NaN.
inline std::vector<float> Scratch(size_t size) { return std::vector<float>(size, std::nanf("")); }

// All that an operation wrote.
using Grids = std::vector<Grid<float>>;

// Returns true if all elements have the same bits or are NaN in both, gaps included.
inline bool Same(const Grids& a, const Grids& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].HasBitsOf(b[i])) continue;
    if (!a[i].GapsAreUntouched() || !b[i].GapsAreUntouched()) return false;
    for (size_t r = 0; r < a[i].rows(); ++r) {
      for (size_t c = 0; c < a[i].cols(); ++c) {
        const float x = a[i](r, c), y = b[i](r, c);
        const bool nan = std::isnan(x) && std::isnan(y);
        if (!nan && std::bit_cast<uint32_t>(x) != std::bit_cast<uint32_t>(y)) return false;
      }
    }
  }
  return a.size() == b.size();
}

using ByKernels = std::function<Grids(const FiberLauncher&)>;

// The kernels give what the host gives, in every order of their threads.
inline void ExpectSame(const Grids& host, const ByKernels& by_kernels, uint64_t seeds = 4) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    EXPECT_TRUE(Same(host, by_kernels({{.seed = seed}}))) << "seed " << seed;
  }
}

// Runs an operation with one result by the host and by kernels.
struct KernelOperation {
  size_t rows, cols;  // of the result
  std::function<void(MatrixSpan<float>)> on_host;
  std::function<void(const FiberLauncher&, MatrixSpan<float>)> by_kernels;

  Grids OnHost() const {
    Grid<float> y(rows, cols);
    on_host(y.View());
    return {y};
  }
  ByKernels ByKernelsOf() const {
    return [this](const FiberLauncher& launch) {
      Grid<float> y(rows, cols);
      by_kernels(launch, y.View());
      return Grids{y};
    };
  }
  void ExpectSame(uint64_t seeds = 2) const { numsim::ExpectSame(OnHost(), ByKernelsOf(), seeds); }
};

// A matrix of normal draws with special values among them.
inline Grid<float> WithSpecials(size_t rows, size_t cols, uint64_t seed) {
  Grid<float> x(rows, cols, seed);
  const float specials[] = {0.0f,
                            -0.0f,
                            1e-42f,
                            1e30f,
                            -1e30f,
                            88.0f,
                            -88.0f,
                            200.0f,
                            -200.0f,
                            std::nanf(""),
                            INFINITY,
                            -INFINITY};
  for (size_t i = 0; i < std::size(specials); ++i) {
    const size_t at = (7 * i + seed) * (rows * cols / 90 + 1) % (rows * cols);
    x(at / cols, at % cols) = specials[i];
  }
  return x;
}

// Tests of these kernels find each missing barrier, and if they exchange numbers, a wrong lane.
inline void ExpectFaultsFound(const Grids& host,
                              const ByKernels& by_kernels,
                              size_t barriers_expected,
                              bool shuffles = true,
                              FiberOptions options = {}) {
  const FiberLauncher launch{options};
  EXPECT_TRUE(Same(host, by_kernels(launch)));
  const size_t barriers = *launch.barriers;
  EXPECT_EQ(barriers, barriers_expected);
  constexpr uint64_t kSeeds = 8;
  for (size_t barrier = 0; barrier < barriers; ++barrier) {
    size_t found = 0;
    options.lost_barrier = static_cast<int>(barrier);
    for (options.seed = 0; options.seed < kSeeds; ++options.seed) {
      found += Same(host, by_kernels({options})) ? 0 : 1;
    }
    EXPECT_GE(found, kSeeds / 2) << "without barrier " << barrier;
  }
  options.lost_barrier = -1;
  options.wrong_lane = true;
  EXPECT_EQ(Same(host, by_kernels({options})), !shuffles);
}

}  // namespace numsim
