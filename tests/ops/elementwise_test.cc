// Copies, sums and scalings against the same in plain loops.
#include "numsim/ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/ops/operation_checks.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

EncodePlan StochasticPlan(const char* format, int bits) {
  return MakeEncodePlan(ParseFormat(format).spec,
                        {RoundingMode::kStochastic, StochasticVariant::kA, bits});
}

// The same values without gaps.
Buffer<float> Dense(const Grid<float>& grid) {
  Buffer<float> buffer;
  const MatrixSpan<float> view = buffer.Resize(grid.rows(), grid.cols());
  Copy<float>(grid.View(), view);
  return buffer;
}

template <typename T>
void ExpectEqual(MatrixSpan<T> x, const Grid<T>& y) {
  for (size_t r = 0; r < y.rows(); ++r) {
    for (size_t c = 0; c < y.cols(); ++c) ASSERT_EQ(x.Row(r)[c], y(r, c)) << r << " " << c;
  }
}

template <typename T>
class OfBothTypes : public testing::Test {};
using BothTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(OfBothTypes, BothTypes);

TYPED_TEST(OfBothTypes, CopyFillAndUploadWriteTheirMatrixAlone) {
  using T = TypeParam;
  for (const size_t cols : TestColumns()) {
    const Grid<T> x(kTestRows, cols, 1);
    Grid<T> y(kTestRows, cols), filled(kTestRows, cols), uploaded(kTestRows, cols);
    Copy<T>(x.View(), y.View());
    EXPECT_TRUE(y.HasBitsOf(x));
    Fill<T>(3, filled.View());
    std::vector<float> values(kTestRows * cols);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Upload<T>(values, uploaded.View());
    for (size_t r = 0; r < kTestRows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        ASSERT_EQ(filled(r, c), 3);
        ASSERT_EQ(uploaded(r, c), static_cast<T>(r * cols + c));
      }
    }
    EXPECT_TRUE(filled.GapsAreUntouched() && uploaded.GapsAreUntouched());
  }
}

TYPED_TEST(OfBothTypes, CopyTransposedExchangesRowsAndColumns) {
  using T = TypeParam;
  for (const size_t rows : {size_t{1}, size_t{64}, size_t{65}, size_t{200}}) {
    for (const size_t cols : TestColumns()) {
      const Grid<T> x(rows, cols, 1);
      Grid<T> y(cols, rows);
      CopyTransposed<T>(x.View(), y.View());
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < cols; ++c) ASSERT_EQ(y(c, r), x(r, c)) << rows << " x " << cols;
      }
      EXPECT_TRUE(y.GapsAreUntouched());
    }
  }
}

TYPED_TEST(OfBothTypes, SumsAndScalingsAreThoseOfTheElements) {
  using T = TypeParam;
  for (const size_t cols : TestColumns()) {
    const Grid<T> a(kTestRows, cols, 1), b(kTestRows, cols, 2), row(1, cols, 3);
    Grid<T> sum(kTestRows, cols), scaled = a, biased = a, branched(kTestRows, cols);
    Add<T>(a.View(), b.View(), sum.View());
    ScaleBy<T>(T{1.25}, scaled.View());
    AddBias<T>(row.View(), biased.View());
    AddScaledBranch<T>(a.View(), b.View(), row.View(), branched.View());
    for (size_t r = 0; r < kTestRows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        ASSERT_EQ(sum(r, c), a(r, c) + b(r, c));
        ASSERT_EQ(scaled(r, c), a(r, c) * T{1.25});
        ASSERT_EQ(biased(r, c), a(r, c) + row(0, c));
        const T product = row(0, c) * b(r, c);
        ASSERT_EQ(branched(r, c), a(r, c) + product);
      }
    }
    for (const auto* y : {&sum, &scaled, &biased, &branched}) EXPECT_TRUE(y->GapsAreUntouched());
  }
}

// Blocks of 128 rows, each added from zero in ascending order, then the blocks.
template <typename T, typename Term>
T SumInOrder(size_t rows, const Term& term) {
  T total = 0;
  for (size_t begin = 0; begin < rows; begin += 128) {
    T block = 0;
    for (size_t r = begin; r < std::min(rows, begin + 128); ++r) block += term(r);
    total += block;
  }
  return total;
}

TYPED_TEST(OfBothTypes, SumsOfColumnsHaveTheStatedOrder) {
  using T = TypeParam;
  for (const size_t rows : {0, 1, 3, 127, 128, 129, 300}) {
    for (const size_t cols : TestColumns()) {
      const Grid<T> g(rows, cols, 1), branch(rows, cols, 2), gain(1, cols, 3);
      Grid<T> sums(1, cols), branch_gradient(rows, cols), gain_gradient(1, cols);
      ColumnSums<T>(g.View(), sums.View());
      AddScaledBranchGradient<T>(
          g.View(), branch.View(), gain.View(), branch_gradient.View(), gain_gradient.View());
      for (size_t c = 0; c < cols; ++c) {
        ASSERT_EQ(sums(0, c), SumInOrder<T>(rows, [&](size_t r) { return g(r, c); }));
        ASSERT_EQ(gain_gradient(0, c),
                  SumInOrder<T>(rows, [&](size_t r) { return branch(r, c) * g(r, c); }));
        for (size_t r = 0; r < rows; ++r) {
          ASSERT_EQ(branch_gradient(r, c), gain(0, c) * g(r, c));
        }
      }
    }
  }
}

TEST(AddScaledBranchGradient, EqualsCentralDifferences) {
  Grid<double> branch(4, 5, 2), gain(1, 5, 3);
  const Grid<double> x(4, 5, 1), g(4, 5, 4);
  Grid<double> branch_gradient(4, 5), gain_gradient(1, 5), y(4, 5);
  AddScaledBranchGradient<double>(
      g.View(), branch.View(), gain.View(), branch_gradient.View(), gain_gradient.View());
  const auto loss = [&] {
    AddScaledBranch<double>(x.View(), branch.View(), gain.View(), y.View());
    return WeightedSum(g, y);
  };
  ExpectGradient(branch, branch_gradient, loss);
  ExpectGradient(gain, gain_gradient, loss);
}

TEST(Elementwise, OutputMayBeAnInput) {
  const Grid<float> a(20, 33, 1), b(20, 33, 2), row(1, 33, 3);
  Grid<float> sum(20, 33), into_a = a, into_b = b;
  Add<float>(a.View(), b.View(), sum.View());
  Add<float>(into_a.View(), b.View(), into_a.View());
  Add<float>(a.View(), into_b.View(), into_b.View());
  ExpectEqual(into_a.View(), sum);
  ExpectEqual(into_b.View(), sum);

  Grid<float> branched(20, 33), into_x = a;
  AddScaledBranch<float>(a.View(), b.View(), row.View(), branched.View());
  AddScaledBranch<float>(into_x.View(), b.View(), row.View(), into_x.View());
  ExpectEqual(into_x.View(), branched);

  Grid<float> gradient(20, 33), sums(1, 33), into_g = a, same_sums(1, 33);
  AddScaledBranchGradient<float>(a.View(), b.View(), row.View(), gradient.View(), sums.View());
  AddScaledBranchGradient<float>(
      into_g.View(), b.View(), row.View(), into_g.View(), same_sums.View());
  ExpectEqual(into_g.View(), gradient);
  EXPECT_TRUE(same_sums.HasBitsOf(sums));
}

TEST(Elementwise, RowsWithAndWithoutGapsGiveTheSame) {
  const Grid<float> a(kTestRows, 130, 1), b(kTestRows, 130, 2);
  Buffer<float> dense_a = Dense(a), dense_b = Dense(b), out;
  const MatrixSpan<float> y = out.Resize(kTestRows, 130);
  Grid<float> sum(kTestRows, 130), scaled = a;
  Add<float>(a.View(), b.View(), sum.View());
  Add<float>(dense_a.View(), dense_b.View(), y);
  ExpectEqual(y, sum);
  ScaleBy<float>(0.3f, scaled.View());
  ScaleBy<float>(0.3f, dense_a.View());
  ExpectEqual(dense_a.View(), scaled);
}

TEST(Elementwise, BitsDependOnNeitherTargetNorThreads) {
  ExpectSameBitsEverywhere([] {
    const Grid<float> a(kTestRows, 130, 1), b(kTestRows, 130, 2), row(1, 130, 3);
    Grid<float> sum(kTestRows, 130), scaled = a, biased = a, branched(kTestRows, 130);
    Grid<float> sums(1, 130), gradient(kTestRows, 130), gain_gradient(1, 130), rounded = a;
    Add<float>(a.View(), b.View(), sum.View());
    ScaleBy<float>(0.7f, scaled.View());
    AddBias<float>(row.View(), biased.View());
    AddScaledBranch<float>(a.View(), b.View(), row.View(), branched.View());
    ColumnSums<float>(a.View(), sums.View());
    AddScaledBranchGradient<float>(
        a.View(), b.View(), row.View(), gradient.View(), gain_gradient.View());
    const EncodePlan plan = StochasticPlan("e4m3fn", 8);
    RoundTo<float>(plan, rounded.View(), {{5, 6}, 7});
    return std::vector{sum, scaled, biased, branched, sums, gradient, gain_gradient, rounded};
  });
}

TEST(Elementwise, NanAndInfinityGoThrough) {
  Grid<float> a(2, 17, 1);
  a(0, 16) = kNaN;
  a(1, 3) = kInfinity;
  Grid<float> sum(2, 17), sums(1, 17);
  Add<float>(a.View(), a.View(), sum.View());
  ColumnSums<float>(a.View(), sums.View());
  EXPECT_TRUE(std::isnan(sum(0, 16)));
  EXPECT_EQ(sum(1, 3), kInfinity);
  EXPECT_TRUE(std::isnan(sums(0, 16)));
  EXPECT_EQ(sums(0, 3), kInfinity);
  EXPECT_TRUE(std::isfinite(sums(0, 4)));
}

TEST(Elementwise, ShapesThatDifferThrow) {
  const Grid<float> a(3, 4, 1), b(3, 5, 2);
  Grid<float> y(3, 4), sums(1, 5);
  EXPECT_EQ(ErrorOf([&] { Add<float>(a.View(), b.View(), y.View()); }),
            "Add: a matrix is 3 x 5, expected 3 x 4");
  EXPECT_EQ(ErrorOf([&] { ColumnSums<float>(a.View(), sums.View()); }),
            "ColumnSums: a matrix is 1 x 5, expected 1 x 4");
  const std::vector<float> values(3);
  EXPECT_EQ(ErrorOf([&] { Upload<float>(values, y.View()); }),
            "Upload: 'values' has 3 elements, expected 12 (3 x 4)");
}

TYPED_TEST(OfBothTypes, RoundToTakesTheValuesOfTheFormat) {
  using T = TypeParam;
  const EncodePlan plan = MakeEncodePlan(ParseFormat("bf16").spec);
  const Grid<T> x(20, 33, 1);
  Grid<T> y = x;
  RoundTo<T>(plan, y.View());
  for (size_t r = 0; r < 20; ++r) {
    for (size_t c = 0; c < 33; ++c) {
      // To 8 significant bits.
      int exponent;
      const double fraction = std::frexp(double{x(r, c)}, &exponent);
      ASSERT_EQ(y(r, c), std::ldexp(std::nearbyint(fraction * 256), exponent - 8));
    }
  }
  EXPECT_TRUE(y.GapsAreUntouched());
}

TYPED_TEST(OfBothTypes, RoundToDrawsTheBitsOfTheElementsNumber) {
  using T = TypeParam;
  const EncodePlan plan = StochasticPlan("e5m2", 16);
  const ArrayRandom random{{11, 12}, 1000};
  constexpr size_t kRows = 3, kCols = 1500;  // longer than a piece of RoundTo
  const Grid<T> x(kRows, kCols, 1);
  Grid<T> y = x;
  RoundTo<T>(plan, y.View(), random);
  std::vector<float> expected(kRows * kCols);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) expected[r * kCols + c] = static_cast<float>(x(r, c));
  }
  FakeQuantize(plan, expected, expected, random);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) ASSERT_EQ(y(r, c), T{expected[r * kCols + c]});
  }
}

TEST(RoundTo, GivesTheSameWithAndWithoutGaps) {
  const ExecutionState state;
  SetThreadCount(4);  // several parts
  const EncodePlan plan = StochasticPlan("e4m3fn", 8);
  const Grid<float> x(kTestRows, 130, 1);
  Grid<float> y = x;
  Buffer<float> dense = Dense(x);
  RoundTo<float>(plan, y.View(), {{3, 4}, 5});
  RoundTo<float>(plan, dense.View(), {{3, 4}, 5});
  ExpectEqual(dense.View(), y);
}

TEST(RoundTo, RoundsFloat64Once) {
  // Just above the middle of two bf16 values, which float32 would round to the middle, hence down.
  Grid<double> x(1, 1);
  x(0, 0) = 1 + 0x1p-8 + 0x1p-40;
  RoundTo<double>(MakeEncodePlan(ParseFormat("bf16").spec), x.View());
  EXPECT_EQ(x(0, 0), 1 + 0x1p-7);
}

TYPED_TEST(OfBothTypes, MeasureAbsoluteLeavesOutWhatIsNotFinite) {
  using T = TypeParam;
  for (const size_t cols : TestColumns()) {
    Grid<T> x(kTestRows, cols, 1);
    x(0, 0) = T{kInfinity};
    x(7, cols / 2) = T{-kInfinity};
    x(299, cols - 1) = T{kNaN};
    x(298, cols - 1) = T{-9};
    double sum = 0, square_sum = 0;
    size_t finite = 0;
    for (size_t r = 0; r < kTestRows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        if (!std::isfinite(x(r, c))) continue;
        sum += std::abs(double{x(r, c)});
        square_sum += double{x(r, c)} * double{x(r, c)};
        ++finite;
      }
    }
    const AbsoluteStatistics measured = MeasureAbsolute<T>(x.View());
    EXPECT_EQ(measured.nonfinite, 3u);
    EXPECT_EQ(measured.max, 9);
    EXPECT_NEAR(measured.mean, sum / static_cast<double>(finite), 1e-13);
    EXPECT_NEAR(measured.square_sum, square_sum, 1e-12 * square_sum);
  }
}

TEST(MeasureAbsolute, DependsOnNeitherTargetNorThreads) {
  Grid<float> x(kTestRows, 130, 1);
  const AbsoluteStatistics first = MeasureAbsolute<float>(x.View());
  WithEachBackend([&] {
    for (const int threads : {1, 2, 4}) {
      SetThreadCount(threads);
      const AbsoluteStatistics again = MeasureAbsolute<float>(x.View());
      EXPECT_EQ(again.mean, first.mean);
      EXPECT_EQ(again.square_sum, first.square_sum);
      EXPECT_EQ(again.max, first.max);
    }
  });
}

TEST(MeasureAbsolute, OfNothingIsZero) {
  Grid<float> none(0, 5), bad(1, 2);
  bad(0, 0) = bad(0, 1) = kNaN;
  EXPECT_EQ(MeasureAbsolute<float>(none.View()).mean, 0);
  EXPECT_EQ(MeasureAbsolute<float>(bad.View()).mean, 0);
  EXPECT_EQ(MeasureAbsolute<float>(bad.View()).nonfinite, 2u);
}

}  // namespace
}  // namespace numsim
