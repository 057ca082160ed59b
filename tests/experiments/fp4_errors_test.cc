// The experiment `fp4-errors`: its sums and integrals against other ways to have the same numbers.
#include "experiments/fp4_errors/fp4_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/hadamard.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::fp4_errors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Fp4Errors, GridsAreThoseOfTheFormats) {
  EXPECT_THAT(GridOf("e2m1").values, ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4, 6));
  EXPECT_THAT(GridOf("e2m1-to-4").values, ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4));
  EXPECT_THAT(GridOf("e1m2").values, ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5));
  for (const auto& [grid, name] :
       {std::pair{"e2m1", "e2m1fn"}, {"e1m2", "e1m2:inf=none,nan=none"}}) {
    const FormatSpec format = ParseFormat(name).spec;
    for (int i = -512; i <= 512; ++i) {  // with all ties
      const float y = static_cast<float>(i) / 64;
      EXPECT_EQ(GridOf(grid).Round(static_cast<double>(y)),
                static_cast<double>(Decode(format, Encode(format, y))))
          << grid << " " << y;
    }
  }
}

// Of a uniform density all integrals are rational. An element below the largest, A, has the expected squared
// error A^2 times the sum of the cubes of the gaps over 12 M^3, stochastic rounding twice that. E[A^2] is
// 3 * 16 / 18 of 16 elements of variance 1, whose squares have the sum 16.
TEST(Fp4Errors, IntegralsOfAUniformDensityAreTheRationalNumbers) {
  for (const auto& [name, cubes] : std::map<std::string, double>{
           {"e2m1", 4 * 0.125 + 2 + 8}, {"e2m1-to-4", 4 * 0.125 + 2}, {"e1m2", 7 * 0.125}}) {
    const Grid& grid = GridOf(name);
    const double nearest = 15 * cubes / (12 * std::pow(grid.Largest(), 3)) * (48.0 / 18) / 16;
    const ExpectedErrors errors = Expected(grid, "uniform");
    EXPECT_NEAR(errors.nearest, nearest, 1e-12) << name;
    EXPECT_NEAR(errors.stochastic, 2 * nearest, 1e-12) << name;
    EXPECT_NEAR(errors.shrinkage, nearest / 2, 1e-12) << name;
    EXPECT_NEAR(errors.mass, 1, 1e-12);
  }
}

// Means over a million drawn elements, by the library's quantiser under scales in float32.
TEST(Fp4Errors, IntegralsAreTheMeansOfDrawnBlocks) {
  const MatrixShape shape{1024, 1024};
  std::vector<float> x(shape.Elements()), q(x.size());
  for (const auto& [source, distribution] :
       {std::pair{"normal", Distribution::kNormal}, {"laplace", Distribution::kLaplace}}) {
    Fill(distribution, {5, 1}, 0, x);
    for (const auto& [grid, format] :
         {std::pair{"e2m1", "e2m1fn"}, {"e1m2", "e1m2:inf=none,nan=none"}}) {
      QuantizeOptions options;
      options.format = ParseFormat(format).spec;
      options.layout = ParseScaleLayout("block:16");
      FakeQuantize(x, shape, options, q);
      double squares = 0, errors = 0, products = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double value = x[i], error = static_cast<double>(q[i]) - value;
        squares += value * value;
        errors += error * error;
        products += error * value;
      }
      const ExpectedErrors expected = Expected(GridOf(grid), source);
      EXPECT_NEAR(errors / squares / expected.nearest, 1, 0.01) << source << " " << grid;
      EXPECT_NEAR(products / squares, expected.shrinkage, 6e-4) << source << " " << grid;
    }
  }
}

// By the matrix of the transform and in float64, where exhausted.cc has butterflies of integers.
TEST(Fp4Errors, OutliersAreThoseOfTheMatrix) {
  for (const char* const name : {"e2m1", "e1m2"}) {
    const Grid& grid = GridOf(name);
    double squares = 0, errors = 0, products = 0;
    constexpr int kOutlier = 5;
    for (uint32_t pattern = 0; pattern < 1u << 15; ++pattern) {
      std::vector<double> y(16);
      double most = 0;
      for (uint32_t j = 0; j < 16; ++j) {
        for (uint32_t i = 0; i < 16; ++i) {
          const double x = i == 0 ? kOutlier : (pattern >> (i - 1) & 1) != 0 ? -1 : 1;
          y[j] += (std::popcount(i & j) % 2 != 0 ? -x : x) / 4;
        }
        most = std::max(most, std::fabs(y[j]));
      }
      for (const double value : y) {
        const double scale = most / grid.Largest();
        const double error = grid.Round(value / scale) * scale - value;
        squares += value * value;
        errors += error * error;
        products += error * value;
      }
    }
    const BlockError all = OutlierError(grid, kOutlier, true);
    EXPECT_NEAR(all.error, errors / squares, 1e-12) << name;
    EXPECT_NEAR(all.shrinkage, products / squares, 1e-12) << name;
  }
  // Without a transform all signs have the same error: 1 is 1.2 of the 6 of 5, and becomes 1, or 5 / 6.
  EXPECT_NEAR(OutlierError(GridOf("e2m1"), 5, false).error, 15.0 / 36 / 40, 1e-15);
}

// Returns what the library's MS-EDEN makes of the first two elements in the mean over signs and bits.
std::vector<double> LibrarysMean(int a, int b) {
  const MatrixShape shape{1, 128};
  QuantizeOptions options;
  options.format = ParseFormat("e2m1fn").spec;
  options.layout = ParseScaleLayout("block:16");
  options.scale_rule = ScaleRule::kMsEden;
  options.correction_run = 128;
  std::vector<double> mean(2);
  constexpr int kDraws = 500;
  for (int draw = 0; draw < kDraws; ++draw) {
    HadamardSigns signs;
    signs.words[0] = static_cast<uint64_t>(draw % 4);  // all signs of the two elements
    std::vector<float> x(128), back(128);
    x[0] = static_cast<float>(a);
    x[1] = static_cast<float>(b);
    HadamardTransform(x, shape, 128, signs, HadamardAxis::kRows, x);
    options.random.stream = {1, static_cast<uint64_t>(draw)};
    FakeQuantize(x, shape, options, x);
    HadamardTransform(x, shape, 128, {}, HadamardAxis::kRows, back);
    for (size_t i : {0, 1}) mean[i] += (signs.Negates(i) ? -back[i] : back[i]) / kDraws;
  }
  return mean;
}

// Signs of two elements exchange the codes and nothing else: the bias does not become smaller with draws.
TEST(Fp4Errors, MsEdenOfTwoElementsIsTheLibrarysMean) {
  for (const auto& [a, b] : {std::pair{10, 1}, {3, 2}, {7, 3}, {4, 2}}) {
    const SparseEstimate exact = MsEdenOfTwo(a, b);
    const std::vector<double> mean = LibrarysMean(a, b);
    EXPECT_NEAR(mean[0] / exact.a, 1, 2e-3) << a << " " << b;
    EXPECT_NEAR(mean[1] / exact.b, 1, 2e-3) << a << " " << b;
  }
}

// The largest element of a block whose scale is rounded from 8.49 to 8 eighths of a power of two.
TEST(Fp4Errors, ASaturatedElementOfNvfp4IsTheSameInEachDraw) {
  constexpr double kLost = 0.49 / 8.49;
  std::vector<float> x(32), q(32);
  x[0] = 448 * 6;  // the tensor's largest: the scale of the tensor is 1
  x[16] = static_cast<float>(8.49 * 6);
  QuantizeOptions options;
  options.format = ParseFormat("e2m1fn").spec;
  options.layout = ParseScaleLayout("block:16");
  options.scale_rule = ScaleRule::kNvfp4;
  options.rounding.mode = RoundingMode::kStochastic;
  for (uint64_t draw = 0; draw < 64; ++draw) {
    options.random.stream = {2, draw};
    FakeQuantize(x, {1, 32}, options, q);
    EXPECT_NEAR(static_cast<double>(q[16] / x[16]), 1 - kLost, 1e-6);
  }
  EXPECT_LT(kLost, ScaleRows().front()[1].Number());
  EXPECT_GT(kLost, 0.98 * ScaleRows().front()[1].Number());
}

Settings SettingsWith(const std::map<std::string, std::string>& overrides) {
  std::map<std::string, std::string> all = TinyRun("fp4-errors");
  for (const auto& [option, value] : overrides) all[option] = value;
  return MakeSettings(Fp4Errors(), "quick", 0, 1, all);
}

double Of(const std::vector<Row>& rows, const std::string& transform, const char* name, int cell) {
  for (const Row& row : rows) {
    if (row[1].Text() == transform && row[2].Text() == name) return row[cell].Number();
  }
  ADD_FAILURE() << transform << " " << name;
  return 0;
}

// Shrinkage is what a biased rounding has in common in all elements.
TEST(Fp4Errors, DrawsHaveTheErrorsOfTheIntegrals) {
  const Settings settings = SettingsWith({{"tensor-rows", "128"}, {"tensor-columns", "1024"}});
  const std::vector<Row> rows = DrawRows(settings, "normal", 3);
  const ExpectedErrors expected = Expected(GridOf("e2m1"), "normal");
  for (const char* const transform : {"none", "hadamard-16", "hadamard-128"}) {
    // Scales in e4m3fn add 2 to 4 % to the error.
    EXPECT_NEAR(Of(rows, transform, "nvfp4", 4) / expected.nearest, 1.03, 0.03);
    EXPECT_NEAR(Of(rows, transform, "nvfp4", 5), expected.shrinkage, 1e-3);
    EXPECT_NEAR(Of(rows, transform, "sr-headroom", 5), 0, 1e-3);
    EXPECT_LT(Of(rows, transform, "nvfp4-sr", 5), -2e-3) << "it saturates";
    EXPECT_LT(Of(rows, transform, "four-over-six", 4), Of(rows, transform, "nvfp4", 4));
  }
  EXPECT_NEAR(Of(rows, "hadamard-128", "ms-eden", 5), 0, 1e-3);
}

TEST(Fp4Errors, BadOptionsAreErrorsThatNameThem) {
  for (const auto& [option, value] : std::map<std::string, std::string>{{"sources", "gauss"},
                                                                        {"outliers", "0"},
                                                                        {"tensor-columns", "200"},
                                                                        {"tensor-rows", "0"}}) {
    const auto run = [&, option = option, value = value] {
      const Settings settings = SettingsWith({{option, value}});
      Measure(settings, Trials(settings).back());
    };
    EXPECT_THAT(ErrorOf(run), HasSubstr(option == "sources" ? "gauss" : "--" + option));
  }
}

}  // namespace
}  // namespace numsim::experiments::fp4_errors
