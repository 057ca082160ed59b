#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "experiments/claims/mean.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

TEST(MeanOf, HasStudentsInterval) {
  const Estimate e = MeanOf(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(e.value, 3);
  // The 97.5 % quantiles of Student's t with 4 degrees of freedom and with 1.
  constexpr double kFour = 2.7764451051977987, kOne = 12.706204736174698;
  EXPECT_NEAR(e.high - e.value, kFour * std::sqrt(2.5 / 5), 1e-13);
  EXPECT_NEAR(e.value - e.low, kFour * std::sqrt(2.5 / 5), 1e-13);
  for (const double scale : {1e-300, 1.0, 1e300}) {
    const Estimate two = MeanOf(std::vector<double>{-1 * scale, 3 * scale});
    EXPECT_NEAR((two.high - two.value) / scale, kOne * 2, 1e-12);
  }
  const Estimate near = MeanOf(std::vector<double>{1, 1 + 2e-6});
  EXPECT_NEAR(near.high - near.value, kOne * 1e-6, 1e-14);
}

TEST(MeanOf, HasNoIntervalForOneValueOrWithoutFiniteOnes) {
  EXPECT_TRUE(std::isnan(MeanOf(std::vector<double>{1}).low));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(MeanOf(std::vector<double>{1, infinity}).value, infinity);
  EXPECT_EQ(MeanOf(std::vector<double>{0.1, 0.1, 0.1}).high, 0.1);
}

TEST(MeanOf, OfNoValuesThrows) {
  EXPECT_EQ(ErrorOf([&] { MeanOf(std::vector<double>{}); }),
            "MeanOf: no values, expected at least one");
}

}  // namespace
}  // namespace numsim::experiments
