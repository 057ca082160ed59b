// The statistics of what-if telemetry, computed a second time by plain loops in float64 over the
// values of the formats' codes.
#include "numsim/train/internal/what_if_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/random/distributions.h"
#include "numsim/train/internal/tensor_spread.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The magnitudes of a format in ascending order, from zero.
std::vector<double> Magnitudes(const FormatSpec& format) {
  std::vector<double> magnitudes;
  for (const float value : DecodeTable(format)) {
    if (std::isfinite(value) && !std::signbit(value)) {
      magnitudes.push_back(static_cast<double>(value));
    }
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  return magnitudes;
}

// Returns the magnitude nearest to `x`, the one of the even code if two are.
double Nearest(const std::vector<double>& magnitudes, double x) {
  size_t best = 0;
  for (size_t i = 1; i < magnitudes.size(); ++i) {
    const double now = std::abs(magnitudes[i] - x), then = std::abs(magnitudes[best] - x);
    if (now < then || (now == then && i % 2 == 0)) best = i;
  }
  return magnitudes[best];
}

// The scale of a group by its definition: A / M, or for e8m0 2^(floor(log2 A) - emax).
Scale ScaleOf(float absmax, double largest, ScaleRule rule) {
  if (absmax == 0) return {};
  const auto most = static_cast<float>(largest);
  if (rule == ScaleRule::kAbsmax) return {absmax / most, most / absmax};
  const int exponent = std::ilogb(absmax) - std::ilogb(most);
  return {std::ldexp(1.0f, exponent), std::ldexp(1.0f, -exponent)};
}

// The number of the group of an element, by the definition of each layout.
std::pair<size_t, size_t> GroupOf(const ScaleLayout& layout, size_t row, size_t col) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return {0, 0};
    case Granularity::kRow:
      return {row, 0};
    case Granularity::kColumn:
      return {0, col};
    case Granularity::kBlock:
      return {row, col / layout.block};
    case Granularity::kTile:
      return {row / layout.tile_rows, col / layout.block};
  }
  return {0, 0};
}

WhatIfError ByDefinition(const std::vector<float>& x,
                         MatrixShape shape,
                         const WhatIfRecipe& recipe,
                         const Scale& delayed) {
  const std::vector<double> magnitudes = Magnitudes(recipe.format.spec);
  std::map<std::pair<size_t, size_t>, float> absmax;
  for (size_t i = 0; i < x.size(); ++i) {
    float& most = absmax[GroupOf(recipe.layout, i / shape.cols, i % shape.cols)];
    if (std::isfinite(x[i])) most = std::max(most, std::abs(x[i]));
  }
  double finite = 0, over = 0, under = 0, signal = 0, noise = 0;
  WhatIfError error;
  double low = kInfinity, high = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) continue;
    const float most = absmax[GroupOf(recipe.layout, i / shape.cols, i % shape.cols)];
    const Scale scale =
        recipe.delayed ? delayed : ScaleOf(most, magnitudes.back(), recipe.scale_rule);
    const double scaled = static_cast<double>(std::abs(x[i]) * scale.inv_scale);
    const double code = Nearest(magnitudes, scaled);
    const double value = std::copysign(static_cast<double>(static_cast<float>(code) * scale.scale),
                                       static_cast<double>(x[i]));
    const double difference = static_cast<double>(x[i]) - value;
    ++finite;
    if (scaled > magnitudes.back() * (1 + 1.0 / 4194304)) ++over;
    if (x[i] != 0 && code == 0) ++under;
    signal += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    noise += difference * difference;
    if (most == 0) continue;
    low = std::min(low, static_cast<double>(scale.scale));
    high = std::max(high, static_cast<double>(scale.scale));
  }
  error.overflow = over / finite;
  error.underflow = under / finite;
  error.mse = noise / finite;
  error.sqnr_db = 10 * std::log10(signal / noise);
  error.signal_to_noise = std::sqrt(signal) / std::sqrt(noise);
  error.scale_min = high == 0 ? 1 : low;
  error.scale_max = high == 0 ? 1 : high;
  return error;
}

// Heavy tails, a tiny element, zeros, a row of zeros, and elements that are not finite.
std::vector<float> Problem(MatrixShape shape, bool nonfinite) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(shape.Elements());
  for (float& value : x) value = normal(bits) * std::exp2(3 * normal(bits));
  for (size_t i = 0; i < x.size(); i += 7) x[i] = 0;
  std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(2 * shape.cols), shape.cols, 0.0f);
  x[8] = 1e-30f;
  if (nonfinite) {
    x[3] = kNan;
    x[5] = -kInfinity;
  }
  return x;
}

WhatIfError Measure(const std::vector<float>& x,
                    MatrixShape shape,
                    const char* recipe,
                    const Scale& delayed = {},
                    RandomStream random = {}) {
  WhatIfScratch scratch;
  return MeasureWhatIf(x, shape, ParseWhatIfRecipe(recipe), delayed, random, scratch);
}

TEST(MeasureWhatIf, EqualsPlainLoopsOverDecodedValues) {
  const MatrixShape shape{11, 37};
  for (const bool nonfinite : {false, true}) {
    const std::vector<float> x = Problem(shape, nonfinite);
    for (const char* const text : {"e4m3fn tensor",
                                   "e5m2 tensor e8m0",
                                   "e4m3fn row",
                                   "e5m2 column",
                                   "e2m1fn block:16",
                                   "e2m1fn block:32 e8m0",
                                   "int8 tile:4x8",
                                   "e4m3fn delayed",
                                   "e3m2fn tensor none"}) {
      const WhatIfRecipe recipe = ParseWhatIfRecipe(text);
      // A delayed scale that is too small for the largest elements.
      Scale delayed = {0.0078125f, 128.0f};
      if (recipe.scale_rule == ScaleRule::kNone) delayed = {};
      WhatIfRecipe reference = recipe;
      if (recipe.scale_rule == ScaleRule::kNone) reference.delayed.emplace();  // the scale 1
      const WhatIfError expected = ByDefinition(x, shape, reference, delayed);
      const WhatIfError found = Measure(x, shape, text, delayed);
      EXPECT_EQ(found.overflow, expected.overflow) << text;
      EXPECT_EQ(found.underflow, expected.underflow) << text;
      EXPECT_EQ(found.scale_min, expected.scale_min) << text;
      EXPECT_EQ(found.scale_max, expected.scale_max) << text;
      EXPECT_NEAR(found.mse, expected.mse, 1e-12 * expected.mse) << text;
      EXPECT_NEAR(found.sqnr_db, expected.sqnr_db, 1e-10) << text;
      EXPECT_NEAR(found.signal_to_noise, expected.signal_to_noise, 1e-10) << text;
      if (recipe.delayed) {
        EXPECT_GT(found.overflow, 0) << text;
      }
      EXPECT_GT(found.underflow, 0) << text;
    }
  }
}

// fl(M / A) and its product with A are rounded, so the product may exceed M.
TEST(MeasureWhatIf, AbsmaxUnderItsOwnScaleIsNoOverflow) {
  std::mt19937 bits(3);
  std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
  int above = 0;
  for (int i = 0; i < 4000; ++i) {
    const float x = uniform(bits);
    above += 448.0f / x * x > 448.0f;
    EXPECT_EQ(Measure({x}, {1, 1}, "e4m3fn tensor").overflow, 0) << x;
  }
  EXPECT_GT(above, 0);  // so that the test tests something
}

TEST(MeasureWhatIf, SpecialTensorsHaveDefinedStatistics) {
  const WhatIfError zeros = Measure({0, -0.0f}, {1, 2}, "e4m3fn tensor");
  EXPECT_TRUE(std::isnan(zeros.sqnr_db));
  EXPECT_TRUE(std::isnan(zeros.signal_to_noise));
  EXPECT_EQ(zeros.mse, 0);
  EXPECT_EQ(zeros.scale_min, 1);
  EXPECT_EQ(zeros.scale_max, 1);
  const WhatIfError exact = Measure({1, -2}, {1, 2}, "e4m3fn tensor e8m0");
  EXPECT_EQ(exact.sqnr_db, static_cast<double>(kInfinity));
  EXPECT_EQ(exact.signal_to_noise, static_cast<double>(kInfinity));
  const WhatIfError flushed = Measure({1e-9f, -1e-9f}, {1, 2}, "e4m3fn delayed");
  EXPECT_EQ(flushed.underflow, 1);
  EXPECT_EQ(flushed.sqnr_db, 0);
  EXPECT_EQ(flushed.signal_to_noise, 1);
  const WhatIfError none = Measure({kNan, kInfinity}, {1, 2}, "e4m3fn tensor");
  EXPECT_EQ(none.overflow, 0);
  EXPECT_TRUE(std::isnan(none.mse));
  EXPECT_TRUE(std::isnan(none.sqnr_db));
}

TEST(MeasureWhatIf, StochasticRoundingIsNoisierAndAFunctionOfItsStream) {
  const MatrixShape shape{64, 64};
  const std::vector<float> x = Problem(shape, false);
  const double nearest = Measure(x, shape, "e2m1fn block:16").sqnr_db;
  const double one = Measure(x, shape, "e2m1fn block:16 sr", {}, {1, 2}).sqnr_db;
  EXPECT_LT(one, nearest);
  EXPECT_EQ(one, Measure(x, shape, "e2m1fn block:16 sr", {}, {1, 2}).sqnr_db);
  EXPECT_NE(one, Measure(x, shape, "e2m1fn block:16 sr", {}, {1, 3}).sqnr_db);
}

TEST(MeasureSpread, EqualsPlainLoops) {
  const MatrixShape shape{90, 401};  // of several blocks
  const std::vector<float> x = Problem(shape, true);
  double n = 0, sum = 0, most = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) continue;
    ++n;
    sum += static_cast<double>(value);
    most = std::max(most, std::abs(static_cast<double>(value)));
  }
  double second = 0, fourth = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) continue;
    second += std::pow(static_cast<double>(value) - sum / n, 2) / n;
    fourth += std::pow(static_cast<double>(value) - sum / n, 4) / n;
  }
  const TensorSpread spread = MeasureSpread(x);
  EXPECT_EQ(spread.nonfinite, 2u);
  EXPECT_EQ(spread.absmax, most);
  EXPECT_NEAR(spread.kurtosis, fourth / (second * second), 1e-10 * spread.kurtosis);
}

// The kurtosis of numbers whose sums are made over blocks of this length, which are then added in order.
double KurtosisOverBlocks(const std::vector<float>& x, size_t length) {
  const auto sum = [&](auto term) {
    double total = 0;
    for (size_t begin = 0; begin < x.size(); begin += length) {
      double block = 0;
      for (size_t i = begin; i < std::min(x.size(), begin + length); ++i) {
        block += term(static_cast<double>(x[i]));
      }
      total += block;
    }
    return total;
  };
  const auto n = static_cast<double>(x.size());
  const double mean = sum([](double value) { return value; }) / n;
  const double square = sum([&](double value) { return (value - mean) * (value - mean); });
  const double fourth = sum([&](double value) {
    const double deviation = (value - mean) * (value - mean);
    return deviation * deviation;
  });
  return n * fourth / (square * square);
}

// So that tensors.csv keeps its bits.
TEST(MeasureSpread, SumsAreOverBlocksOf16384) {
  std::vector<float> x(100000);
  FillNormal({3, 1}, 0, x);
  const double kurtosis = MeasureSpread(x).kurtosis;
  EXPECT_EQ(kurtosis, KurtosisOverBlocks(x, 16384));
  for (const size_t other : {1024, 8192, 32768, 65536, 100000}) {
    EXPECT_NE(kurtosis, KurtosisOverBlocks(x, other)) << other;
  }
}

TEST(MeasureSpread, KnownKurtoses) {
  EXPECT_DOUBLE_EQ(MeasureSpread(std::vector<float>{-1, 1, -1, 1}).kurtosis, 1);
  // One of n = 10: p = 0.1, 1 / (p (1 - p)) - 3 above 3.
  EXPECT_NEAR(MeasureSpread(std::vector<float>{0, 0, 0, 0, 5, 0, 0, 0, 0, 0}).kurtosis,
              1 / 0.09 - 3,
              1e-12);
  EXPECT_TRUE(std::isnan(MeasureSpread(std::vector<float>{2, 2}).kurtosis));
  EXPECT_TRUE(std::isnan(MeasureSpread(std::vector<float>{}).kurtosis));
  EXPECT_EQ(MeasureSpread(std::vector<float>{kNan}).absmax, 0);
}

TEST(MeasureWhatIf, ThreadsDoNotChangeABit) {
  const ExecutionState state;
  const MatrixShape shape{300, 411};
  const std::vector<float> x = Problem(shape, true);
  std::vector<std::vector<double>> found;
  for (const int threads : {1, 2, 3}) {
    SetThreadCount(threads);
    std::vector<double>& numbers = found.emplace_back();
    for (const char* const text : {"e4m3fn delayed", "e2m1fn block:16 sr", "e5m2 tile:32x32"}) {
      const WhatIfError error = Measure(x, shape, text, {0.5f, 2.0f}, {5, 6});
      numbers.insert(numbers.end(),
                     {error.overflow,
                      error.underflow,
                      error.sqnr_db,
                      error.mse,
                      error.scale_min,
                      error.scale_max,
                      error.signal_to_noise});
    }
    numbers.push_back(MeasureSpread(x).kurtosis);
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

}  // namespace
}  // namespace numsim
