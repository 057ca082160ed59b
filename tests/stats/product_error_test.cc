// The error of a computed matrix against its reference.
#include "numsim/stats/product_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/random/distributions.h"
#include "tests/support/misuse.h"

namespace numsim {
namespace {

TEST(CompareProduct, MedianRowsAndColumnsAreNotRuledByALargeOne) {
  // Errors of 10, 20 and 50 % in the rows; the last row is large.
  const std::vector<float> r = {1, 2, 10, 20, 1000, 2000};
  std::vector<float> y = {1.1f, 2.2f, 12, 24, 1500, 3000};
  const ProductError error = CompareProduct<float>(r, y, 2);
  EXPECT_NEAR(error.row_error, 0.2, 1e-6);
  EXPECT_NEAR(error.column_error, 0.5, 1e-3);
  EXPECT_NEAR(error.relative_error, 0.5, 1e-3);
  EXPECT_NEAR(error.gain, 1.5, 1e-3);
}

TEST(CompareProduct, AConstantErrorIsBiasAndNoVariance) {
  const std::vector<float> r = {1, -2, 3, -4}, y = {1.5, -1.5, 3.5, -3.5};
  const ProductError error = CompareProduct<float>(r, y, 2);
  EXPECT_EQ(error.bias, 0.5);
  EXPECT_EQ(error.error_variance, 0);
  EXPECT_EQ(error.signal_variance, 30.0 / 4 - 0.25);
  EXPECT_NEAR(error.sqnr_db, 10 * std::log10(30), 1e-12);
}

TEST(CompareProduct, HasStatedValuesWithoutErrorOrSignalAndForWhatIsNotFinite) {
  const std::vector<float> r = {1, 2, 3, 4}, zero(4);
  const ProductError exact = CompareProduct<float>(r, r, 2);
  EXPECT_EQ(exact.relative_error, 0);
  EXPECT_EQ(exact.sqnr_db, std::numeric_limits<double>::infinity());
  EXPECT_NEAR(exact.cosine, 1, 1e-15);
  EXPECT_EQ(exact.gain, 1);
  const ProductError nothing = CompareProduct<float>(zero, r, 2);
  EXPECT_TRUE(std::isnan(nothing.relative_error));
  EXPECT_TRUE(std::isnan(nothing.row_error));
  EXPECT_TRUE(std::isnan(nothing.cosine));
  const ProductError flushed = CompareProduct<float>(r, zero, 2);
  EXPECT_EQ(flushed.relative_error, 1);
  EXPECT_EQ(flushed.gain, 0);
  EXPECT_TRUE(std::isnan(flushed.cosine));
  const std::vector<float> nan = {1, 2, std::nanf(""), 4};
  EXPECT_TRUE(std::isnan(CompareProduct<float>(r, nan, 2).relative_error));
  EXPECT_TRUE(std::isnan(CompareProduct<float>(r, nan, 2).error_variance));
  EXPECT_TRUE(std::isnan(CompareProduct<float>(r, nan, 2).sqnr_db));
  const std::vector<float> inf = {1, 2, std::numeric_limits<float>::infinity(), 4};
  EXPECT_EQ(CompareProduct<float>(r, inf, 2).relative_error,
            std::numeric_limits<double>::infinity());
}

TEST(CompareProduct, HasTheSameBitsOnAnyNumberOfThreads) {
  const int before = ThreadCount();
  std::vector<float> r(3000 * 7), y(r.size());
  FillNormal({0, 0}, 0, r);
  FillNormal({0, 1}, 0, y);
  SetThreadCount(1);
  const ProductError one = CompareProduct<float>(r, y, 7);
  SetThreadCount(5);
  const ProductError five = CompareProduct<float>(r, y, 7);
  SetThreadCount(before);
  EXPECT_EQ(one.error_variance, five.error_variance);
  EXPECT_EQ(one.relative_error, five.relative_error);
  EXPECT_EQ(one.row_error, five.row_error);
  EXPECT_EQ(one.column_error, five.column_error);
  EXPECT_EQ(one.cosine, five.cosine);
  EXPECT_NEAR(one.relative_error, std::sqrt(2), 0.05);
}

TEST(CompareProduct, TakesAFloat64ReferenceAsItIs) {
  // No float32 reference could tell these apart.
  const std::vector<double> r = {1 + 1e-12, 2};
  const std::vector<float> y = {1, 2};
  EXPECT_NEAR(CompareProduct<double>(r, y, 2).relative_error, 1e-12 / std::sqrt(5), 1e-15);
}

TEST(CompareProduct, SizesThatAreNotWholeRowsThrow) {
  const std::vector<float> six(6), five(5);
  const std::string expected = " columns, expected equal sizes of whole rows";
  ExpectErrors({
      {[&] { CompareProduct<float>(six, five, 2); },
       "CompareProduct: 6 and 5 elements in 2" + expected},
      {[&] { CompareProduct<float>(six, six, 4); },
       "CompareProduct: 6 and 6 elements in 4" + expected},
      {[&] { CompareProduct<float>(six, six, 0); },
       "CompareProduct: 6 and 6 elements in 0" + expected},
  });
}

}  // namespace
}  // namespace numsim
