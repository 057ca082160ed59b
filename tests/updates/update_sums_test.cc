// The sums of update rules.
#include <gtest/gtest.h>

#include <vector>

#include "numsim/updates/step_sums.h"

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
  EXPECT_EQ(SquaredSum(x), total);
}

}  // namespace
}  // namespace numsim
