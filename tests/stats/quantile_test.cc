#include <gtest/gtest.h>

#include "numsim/stats/moments.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

TEST(Quantile, InterpolatesBetweenSortedSamples) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_EQ(Quantile({5, 1, 2, 4, 3}, 0.25), 2);
  EXPECT_EQ(Quantile({5, 1, 2, 4, 3}, 0.75), 4);
  EXPECT_EQ(Quantile({0, 8}, 0.125), 1);
}

TEST(Quantile, EndsAreTheLeastAndTheLargest) {
  EXPECT_EQ(Quantile({5, 1, 2, 4, 3}, 0), 1);
  EXPECT_EQ(Quantile({5, 1, 2, 4, 3}, 1), 5);
}

TEST(Quantile, OneSampleIsEveryQuantile) {
  for (const double q : {0.0, 0.3, 0.75, 1.0}) EXPECT_EQ(Quantile({7}, q), 7) << q;
}

TEST(Quantile, WithoutSamplesOrBeyondTheEndsThrows) {
  EXPECT_EQ(ErrorOf([&] { Quantile({}, 0.5); }), "Quantile: no samples, expected at least one");
  EXPECT_EQ(ErrorOf([&] { Quantile({1, 2}, 1.5); }), "Quantile: q is 1.5, expected 0 to 1");
}

}  // namespace
}  // namespace numsim
