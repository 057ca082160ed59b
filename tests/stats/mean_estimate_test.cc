#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/stats/moments.h"

namespace numsim {
namespace {

TEST(MeanOf, HasStudentsInterval) {
  const Estimate e = MeanOf(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(e.value, 3);
  EXPECT_NEAR(e.high - e.value, 2.776 * std::sqrt(2.5 / 5), 1e-6);
  EXPECT_NEAR(e.value - e.low, 2.776 * std::sqrt(2.5 / 5), 1e-6);
  const Estimate two = MeanOf(std::vector<double>{-1e-9, 3e-9});
  EXPECT_NEAR(two.high - two.value, 12.706 * 2e-9, 1e-14);
  const Estimate near = MeanOf(std::vector<double>{1, 1 + 2e-6});
  EXPECT_NEAR(near.high - near.value, 12.706e-6, 1e-8);
}

TEST(MeanOf, HasNoIntervalForOneValueOrWithoutFiniteOnes) {
  EXPECT_TRUE(std::isnan(MeanOf(std::vector<double>{1}).low));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(MeanOf(std::vector<double>{1, infinity}).value, infinity);
  EXPECT_EQ(MeanOf(std::vector<double>{0.1, 0.1, 0.1}).high, 0.1);
}

}  // namespace
}  // namespace numsim
