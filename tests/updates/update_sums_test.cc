// The sums of update rules.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/updates/step_sums.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

TEST(SquaredSum, IsExactOnIntegersAndZeroOfNothing) {
  EXPECT_EQ(SquaredSum({}), 0.0);
  std::vector<float> x;
  double expected = 0;
  for (int i = 0; i < 9001; ++i) {
    x.push_back(static_cast<float>(i % 101) - 50.0f);
    expected += static_cast<double>(x.back()) * static_cast<double>(x.back());
  }
  EXPECT_EQ(SquaredSum(x), expected);
}

TEST(SquaredSum, AddsEightPartialSumsOfBlocksInOrder) {
  std::vector<float> x;
  for (int i = 0; i < 10003; ++i) x.push_back(1.0f / static_cast<float>(i + 1));
  double total = 0;
  for (size_t begin = 0; begin < x.size(); begin += 4096) {
    double partial[8] = {};
    for (size_t i = begin; i < x.size() && i < begin + 4096; ++i) {
      partial[(i - begin) % 8] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    double block = 0;
    for (const double sum : partial) block += sum;
    total += block;
  }
  WithEachBackend([&] { EXPECT_EQ(SquaredSum(x), total); });
}

// Numbers of 24 significant bits and of many magnitudes, so that every sum is rounded and depends on
// the order of its additions.
std::vector<float> ManyMagnitudes(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<float> x(n);
  for (float& value : x) {
    const double fraction = static_cast<double>(random.Next32() >> 8) - 0x1p23;
    value = static_cast<float>(std::ldexp(fraction, static_cast<int>(random.Below(60)) - 50));
  }
  return x;
}

void ExpectSameSum(double got, double want) {
  EXPECT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want)) << got << " " << want;
}

TEST(StepSums, AddEightPartialSumsInOrderForEveryLengthOnEveryBackend) {
  const std::vector<float> before = ManyMagnitudes(4096, 1), update = ManyMagnitudes(4096, 2);
  std::vector<float> after = ManyMagnitudes(4096, 3);
  for (size_t i = 0; i < after.size(); ++i) {
    if (i % 3 == 0 || i % 7 == 0) after[i] = before[i];
  }
  for (size_t n = 0; n <= 4096; n += n < 70 ? 1 : 671) {
    SCOPED_TRACE(n);
    double partial[3][8] = {};
    uint64_t moved = 0;
    for (size_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      const double u = static_cast<double>(update[i]);
      partial[0][i % 8] += d * d;
      partial[1][i % 8] += d * u;
      partial[2][i % 8] += u * u;
      if (after[i] != before[i]) ++moved;
    }
    double total[3] = {};
    for (int sum = 0; sum < 3; ++sum) {
      for (const double lane : partial[sum]) total[sum] += lane;
    }
    WithEachBackend([&] {
      const StepSums sums = StepSumsOfBlock(before.data(), after.data(), update.data(), n);
      ExpectSameSum(sums.square, total[0]);
      ExpectSameSum(sums.projection, total[1]);
      EXPECT_EQ(sums.moved, moved);
      ExpectSameSum(SquaredSumOfBlock(update.data(), n), total[2]);
    });
  }
}

TEST(StepSums, CountNansAsMovedAndZerosOfEitherSignAsKept) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> before(24, 1.0f), after(24, 1.0f);
  const std::vector<float> update(24, 1.0f);
  before[3] = 0.0f;
  after[3] = -0.0f;
  before[9] = after[9] = nan;
  after[20] = 2.0f;
  WithEachBackend([&] {
    const StepSums sums = StepSumsOfBlock(before.data(), after.data(), update.data(), 24);
    EXPECT_EQ(sums.moved, 2u);
    EXPECT_TRUE(std::isnan(sums.square));
  });
}

}  // namespace
}  // namespace numsim
