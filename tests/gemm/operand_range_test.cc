// The range of an operand, with the number that decides at every place of a row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "tests/support/every_backend.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// Rows of float32 values, or their columns.
OperandRange RangeOfValues(const std::vector<float>& values, size_t rows, bool transposed = false) {
  GemmOperand x;
  x.format = kFp32;
  x.values = values;
  x.rows = rows;
  x.inner = values.size() / rows;
  x.transposed = transposed;
  return RangeOf(x);
}

TEST(OperandRange, SeesTheSmallestAndTheLargestAtEveryPlace) {
  WithEachBackend([] {
    for (const size_t n : {1, 3, 4, 7, 8, 15, 16, 17, 33, 70}) {
      for (size_t at = 0; at < n; ++at) {
        for (const float sign : {1.0f, -1.0f}) {
          std::vector<float> values(n, -3.0f);
          values[at] = sign * 0x1.8p-20f;
          OperandRange range = RangeOfValues(values, 1);
          EXPECT_FALSE(range.zero);
          EXPECT_EQ(range.low_exponent, -20) << at << " of " << n;
          EXPECT_EQ(range.high_exponent, n == 1 ? -20 : 1) << at << " of " << n;
          EXPECT_EQ(range.unit, -20 - 23);
          values[at] = sign * std::numeric_limits<float>::max();
          range = RangeOfValues(values, 1);
          EXPECT_EQ(range.low_exponent, n == 1 ? 127 : 1) << at << " of " << n;
          EXPECT_EQ(range.high_exponent, 127) << at << " of " << n;
          EXPECT_TRUE(range.nonfinite.empty());
        }
      }
    }
  });
}

TEST(OperandRange, CountsNoZerosInfinitiesAndNan) {
  WithEachBackend([] {
    for (const size_t n : {1, 7, 16, 37}) {
      for (const float special : {0.0f, -0.0f, kInfinity, -kInfinity, kNaN, -kNaN}) {
        for (size_t at = 0; at < n; ++at) {
          // The middle one of three rows has the special value.
          std::vector<float> values(3 * n, 0.25f);
          values[n + at] = special;
          OperandRange range = RangeOfValues(values, 3);
          EXPECT_EQ(range.low_exponent, -2) << special;
          EXPECT_EQ(range.high_exponent, -2) << special;
          const std::vector<size_t> expected(std::isfinite(special) ? 0 : 1, 1);
          EXPECT_EQ(range.nonfinite, expected) << special << " at " << at << " of " << n;
          range = RangeOfValues(values, n, true);
          const std::vector<size_t> column(std::isfinite(special) ? 0 : 1, at);
          EXPECT_EQ(range.nonfinite, column) << special << " at " << at << " of " << n;
        }
        EXPECT_TRUE(RangeOfValues(std::vector<float>(n, special), 1).zero) << special;
      }
    }
  });
}

TEST(OperandRange, SubnormalsHaveTheUnitOfTheFormat) {
  WithEachBackend([] {
    std::vector<float> values(20, 1.0f);
    values[19] = std::numeric_limits<float>::denorm_min();
    const OperandRange range = RangeOfValues(values, 1);
    EXPECT_EQ(range.low_exponent, -126);
    EXPECT_EQ(range.unit, -149);
  });
}

}  // namespace
}  // namespace numsim
