// Names of differences between products: faults planted in the results of a kernel.
#include "numsim/gemm/product_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"

namespace numsim {
namespace {

constexpr size_t kRows = 48, kColumns = 40;

// A GEMM of float32 values, and the results of kernels with faults.
struct Problem {
  size_t inner;
  std::vector<float> x, y, expected;
  GemmOperand a, b;

  explicit Problem(size_t inner_size = 200, size_t columns = kColumns) : inner(inner_size) {
    x.resize(kRows * inner);
    y.resize(columns * inner);
    FillNormal({.seed = 6, .stream = 1}, 0, x);
    FillNormal({.seed = 6, .stream = 2}, 0, y);
    const FormatSpec fp32 = ParseFormat("fp32").spec;
    a = {.format = fp32, .values = x, .rows = kRows, .inner = inner};
    b = {.format = fp32, .values = y, .rows = columns, .inner = inner};
    expected.resize(kRows * columns);
    Gemm(a, b, ParseAccumulationMode("fp32"), expected);
  }
  // Returns the products with a weight per place of the inner dimension.
  std::vector<float> Weighted(const std::function<double(size_t)>& weight) const {
    std::vector<float> out;
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t j = 0; j < b.rows; ++j) {
        double sum = 0;
        for (size_t k = 0; k < inner; ++k) {
          sum += weight(k) * static_cast<double>(x[i * inner + k]) *
                 static_cast<double>(y[j * inner + k]);
        }
        out.push_back(static_cast<float>(sum));
      }
    }
    return out;
  }
  std::vector<float> Changed(const std::function<float(size_t, size_t, float)>& change) const {
    std::vector<float> out = expected;
    for (size_t i = 0; i < out.size(); ++i) out[i] = change(i / b.rows, i % b.rows, out[i]);
    return out;
  }
  Likeness Explain(const std::vector<float>& mine) const {
    return ExplainDifference(a, b, expected, mine);
  }
};

TEST(ExplainDifference, NothingDiffers) {
  const Problem p;
  EXPECT_EQ(p.Explain(p.expected).kind, DifferenceKind::kNone);
}

TEST(ExplainDifference, RoundingIsARounding) {
  const Problem p;
  EXPECT_EQ(p.Explain(p.Weighted([](size_t) { return 1; })).kind, DifferenceKind::kRounding);
  std::vector<float> mine(p.expected.size());
  for (const char* const mode : {"trunc:13,32", "bf16", "fp32-chunked:7"}) {
    Gemm(p.a, p.b, ParseAccumulationMode(mode), mine);
    EXPECT_EQ(p.Explain(mine).kind, DifferenceKind::kRounding) << mode;
  }
}

TEST(ExplainDifference, ADroppedTailIsNamedWithItsLength) {
  const Problem p;
  for (const size_t end : {size_t{199}, size_t{192}, size_t{128}, size_t{1}}) {
    const Likeness found = p.Explain(p.Weighted([&](size_t k) { return k < end ? 1 : 0; }));
    EXPECT_EQ(found.kind, DifferenceKind::kPrefix) << end << found.text;
    EXPECT_NE(found.text.find("first " + std::to_string(end) + " of 200"), std::string::npos)
        << found.text;
  }
}

TEST(ExplainDifference, ADroppedHeadIsNamedWithItsLength) {
  const Problem p;
  const Likeness found = p.Explain(p.Weighted([](size_t k) { return k >= 17 ? 1 : 0; }));
  EXPECT_EQ(found.kind, DifferenceKind::kSuffix);
  EXPECT_NE(found.text.find("last 183 of 200"), std::string::npos) << found.text;
}

TEST(ExplainDifference, OtherTimesOfSomeProductsAreNamed) {
  const Problem p(256);
  const auto weights = [&](double weight) {
    return p.Explain(p.Weighted([=](size_t k) { return k >= 64 && k < 96 ? weight : 1; }));
  };
  EXPECT_EQ(weights(0).kind, DifferenceKind::kSegment);
  EXPECT_NE(weights(0).text.find("products 64 to 95 of 256 count 0 times"), std::string::npos)
      << weights(0).text;
  EXPECT_NE(weights(2).text.find("products 64 to 95 of 256 count 2 times"), std::string::npos)
      << weights(2).text;
}

TEST(ExplainDifference, ScalesAreNamed) {
  const Problem p;
  const Likeness all = p.Explain(p.Changed([](size_t, size_t, float x) { return 2 * x; }));
  EXPECT_EQ(all.kind, DifferenceKind::kScale);
  EXPECT_NE(all.text.find("2 times"), std::string::npos) << all.text;
  const Likeness row =
      p.Explain(p.Changed([](size_t i, size_t, float x) { return i == 12 ? 0.5f * x : x; }));
  EXPECT_EQ(row.kind, DifferenceKind::kRowScale);
  EXPECT_NE(row.text.find("row 12 is 0.5 times"), std::string::npos) << row.text;
  const Likeness column = p.Explain(
      p.Changed([](size_t, size_t j, float x) { return x * (1 + static_cast<float>(j % 3)); }));
  EXPECT_EQ(column.kind, DifferenceKind::kColumnScale);
}

TEST(ExplainDifference, TheTransposedProductIsNamed) {
  const Problem p(200, kRows);
  const Likeness found =
      p.Explain(p.Changed([&](size_t i, size_t j, float) { return p.expected[j * kRows + i]; }));
  EXPECT_EQ(found.kind, DifferenceKind::kTranspose);
}

TEST(ExplainDifference, NoiseIsNoKnownKind) {
  const Problem p;
  std::vector<float> noise(p.expected.size());
  FillNormal({.seed = 6, .stream = 9}, 0, noise);
  const Likeness found = p.Explain(
      p.Changed([&](size_t i, size_t j, float x) { return x + 20 * noise[i * kColumns + j]; }));
  EXPECT_EQ(found.kind, DifferenceKind::kUnknown);
}

TEST(ExplainDifference, FewElementsAreNotFitted) {
  Problem p(100, 1);
  p.a.rows = 2;
  p.a.values = p.a.values.Columns(0, 200);
  p.expected.resize(2);
  const std::vector<float> mine = {2 * p.expected[0], 3 * p.expected[1]};
  EXPECT_NE(p.Explain(mine).kind, DifferenceKind::kPrefix);
  EXPECT_NE(p.Explain(mine).kind, DifferenceKind::kScale);
}

TEST(CompareProducts, NormsAndWorstVectors) {
  const std::vector<float> expected = {3, 4, 0, 0, 5, 12};
  const std::vector<float> mine = {3, 4, 1, 0, -5, 12};
  const ProductDifference d = CompareProducts(expected, mine, 2, true);
  EXPECT_EQ(d.differing, 2u);
  EXPECT_EQ(d.first, 2u);
  EXPECT_EQ(d.other_sign, 1u);
  EXPECT_EQ(d.largest, 10);
  EXPECT_EQ(d.largest_at, 4u);
  EXPECT_EQ(d.ulps_at, 2u);  // 5 and -5 have no distance in ulps
  EXPECT_DOUBLE_EQ(d.relative_norm, std::sqrt(101.0 / 194));
  EXPECT_DOUBLE_EQ(d.rms, std::sqrt(194.0 / 6));
  EXPECT_DOUBLE_EQ(d.gain, (9.0 + 16 - 25 + 144) / 194);
  ASSERT_EQ(d.rows.size(), 2u);  // the row of zeros has no relative error
  EXPECT_EQ(d.rows[0].index, 2u);
  EXPECT_DOUBLE_EQ(d.rows[0].error, 10.0 / 13);
  EXPECT_EQ(d.rows[1].error, 0);
  EXPECT_EQ(d.columns[0].index, 0u);
}

TEST(CompareProducts, InfinitiesAndNansAreCounted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> expected = {nan, 1, 2, nan}, mine = {1, nan, 2, nan};
  const ProductDifference d = CompareProducts(expected, mine, 4, true);
  EXPECT_EQ(d.differing, 2u);
  EXPECT_EQ(d.incomparable, 2u);
  EXPECT_EQ(d.relative_norm, 0);
  EXPECT_FALSE(d.largest_at.has_value());
}

}  // namespace
}  // namespace numsim
