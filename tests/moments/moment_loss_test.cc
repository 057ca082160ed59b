// The error of storing: its measurement, the error of a second storing, and the shares of second
// moments that are flushed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/random/distributions.h"
#include "tests/moments/moment_cases.h"

namespace numsim::moment_test {
namespace {

TEST(MomentLoss, CountsAndSumsWhatCameBack) {
  for (const std::string& text : FormatTexts()) {
    for (const char* kind : {"heavy-tailed", "specials", "single-zero", "zero"}) {
      // More than one part of the sums, and a piece of another.
      const std::vector<float> data =
          MakeData(kind, std::string_view(kind) == "specials" ? 40001 : 99);
      MomentStore store(ParseMomentFormat(text), data.size(), true);
      const MomentLoss loss = store.Store(data, {1, 2}, true);
      const std::vector<float> values = LoadAll(store);
      size_t nonzero = 0, flushed = 0;
      long double signal = 0, error = 0;
      for (size_t i = 0; i < data.size(); ++i) {
        if (!std::isfinite(data[i])) continue;
        if (data[i] != 0) ++nonzero;
        if (data[i] != 0 && values[i] == 0) ++flushed;
        const long double x = static_cast<long double>(data[i]);
        signal += x * x;
        error +=
            (static_cast<long double>(values[i]) - x) * (static_cast<long double>(values[i]) - x);
      }
      SCOPED_TRACE(text + " " + kind);
      EXPECT_EQ(loss.nonzero, nonzero);
      EXPECT_EQ(loss.flushed, flushed);
      EXPECT_NEAR(
          loss.signal_square, static_cast<double>(signal), 1e-12 * static_cast<double>(signal));
      EXPECT_NEAR(
          loss.error_square, static_cast<double>(error), 1e-12 * static_cast<double>(error));
    }
  }
}

TEST(MomentLoss, IsZeroUnlessAskedFor) {
  MomentStore store(ParseMomentFormat("e4m3fn"), 100, true);
  const MomentLoss loss = store.Store(MakeData("normal", 100), {});
  EXPECT_EQ(loss.nonzero + loss.flushed + loss.saturated, 0u);
  EXPECT_EQ(loss.signal_square + loss.error_square, 0.0);
}

size_t SaturatedOf(const char* text, const std::vector<float>& data, bool is_signed) {
  MomentStore store(ParseMomentFormat(text), data.size(), is_signed);
  return store.Store(data, {}, true).saturated;
}

TEST(MomentLoss, CountsWhatIsBeyondTheLargestValue) {
  const std::vector<float> data{448.0f, 448.1f, -449.0f, 1e9f, 1.0f, 0.0f};
  EXPECT_EQ(SaturatedOf("e4m3fn@none", data, true), 3u);
  EXPECT_EQ(SaturatedOf("e5m2@none", data, true), 1u);
  EXPECT_EQ(SaturatedOf("fp32", data, true), 0u);
  for (const char* text : {"e4m3fn@tensor", "e4m3fn@block:2", "e4m3fn@coat", "int8"}) {
    EXPECT_EQ(SaturatedOf(text, data, true), 0u) << text;
  }
}

// The signed map has 1 and not -1.
TEST(MomentLoss, CountsBlocksOfTheDynamicMapWithANegativeMaximum) {
  const std::vector<float> data{1.0f, 0.5f, -1.0f, 0.5f, -1.0f, -0.995f, 1.0f, -0.99f};
  EXPECT_EQ(SaturatedOf("dynamic:2", data, true), 3u);
  EXPECT_EQ(SaturatedOf("dynamic:2", data, false), 0u);
}

// Storing what was loaded.

struct Twice {
  Stored first, second;
  std::vector<float> once, again;
};

Twice StoreTwice(const std::string& text, const std::vector<float>& data, bool is_signed) {
  MomentStore store(ParseMomentFormat(text), data.size(), is_signed);
  Twice twice;
  store.Store(data, {});
  twice.first = ReadState(store);
  twice.once = LoadAll(store);
  store.Store(twice.once, {});
  twice.second = ReadState(store);
  twice.again = LoadAll(store);
  return twice;
}

// Codes stay. A scale is a quotient of what its own product was rounded to, and may move by an ulp.
TEST(MomentRoundTrip, StoringAgainKeepsEveryCode) {
  for (const std::string& text : FormatTexts()) {
    const MomentFormat format = ParseMomentFormat(text);
    const bool stochastic = format.rounding.mode == RoundingMode::kStochastic;
    const bool dynamic = format.scaling == MomentScaling::kDynamic;
    if (stochastic || format.scaling == MomentScaling::kCoat) continue;
    for (const std::string& kind : DataKinds()) {
      std::vector<float> data = MakeData(kind, 1000);
      if (dynamic) {
        for (float& x : data) x = std::abs(x);  // see below
      }
      SCOPED_TRACE(text + " " + kind);
      const Twice twice = StoreTwice(text, data, true);
      EXPECT_EQ(twice.first.codes, twice.second.codes);
      const bool scaled =
          format.scaling == MomentScaling::kTensor || format.scaling == MomentScaling::kBlock;
      for (size_t i = 0; i < data.size(); ++i) {
        ASSERT_LE(UlpsBetween(twice.once[i], twice.again[i]), scaled ? 1 : 0) << data[i];
      }
    }
  }
}

// The largest magnitude of a block comes back smaller where it is negative, and with it the scale:
// 0.7 % at every storing.
TEST(MomentRoundTrip, DynamicMapShrinksBlocksWithANegativeMaximum) {
  const std::vector<float> data{-2.0f, 1e-6f, 0.0f, 1.0f};
  const Twice twice = StoreTwice("dynamic", data, true);
  const float least = -0.99296874f;
  EXPECT_EQ(twice.first.scales[0], 2.0f);
  EXPECT_EQ(twice.once[0], 2 * least);
  EXPECT_EQ(twice.second.scales[0], -2 * least);
  EXPECT_EQ(twice.again[0], -2 * least * least);
}

// COAT finds another exponent when the least magnitude has moved, so codes change; but no element
// moves further than half the gap between the values around it.
TEST(MomentRoundTrip, CoatMovesNothingByMoreThanHalfAGap) {
  constexpr size_t kBlock = 128;
  for (const char* kind : {"normal", "squares", "heavy-tailed", "two-values", "near-constant"}) {
    const std::vector<float> data = MakeData(kind, 1280);
    const Twice twice = StoreTwice("e4m3fn@coat", data, true);
    for (size_t i = 0; i < data.size(); ++i) {
      const double a = static_cast<double>(twice.second.scales[i / kBlock * 2]);
      const double k = static_cast<double>(twice.second.scales[i / kBlock * 2 + 1]);
      EXPECT_EQ(twice.first.scales[i / kBlock * 2], twice.second.scales[i / kBlock * 2]);
      const auto expand = [a, k](float x) {
        return 448 * std::pow(std::abs(static_cast<double>(x)) / a, k);
      };
      const double from = expand(twice.once[i]), to = expand(twice.again[i]);
      const double gap = std::max(std::exp2(std::floor(std::log2(from)) - 3), 0x1p-9);
      // float32 values themselves are only so fine under a large k.
      EXPECT_LE(std::abs(from - to), gap / 2 + from * k * 0x1p-22) << kind << " " << data[i];
      EXPECT_EQ(std::signbit(twice.once[i]), std::signbit(twice.again[i]));
    }
  }
}

// The mean of many stochastic stores is the value, where nearest rounding is off.
TEST(MomentRoundTrip, StochasticRoundingHasNoBias) {
  for (const char* text : {"e4m3fn@block+sr", "e5m2+sr", "dynamic+sr", "bf16+sr", "int8+sr"}) {
    const std::vector<float> data{1.0f, 0.333f, 0.0123f, -0.7f};
    MomentStore store(ParseMomentFormat(text), data.size(), true);
    constexpr int kStores = 20000;
    double sums[4] = {};
    for (uint64_t i = 0; i < kStores; ++i) {
      store.Store(data, {11, i});
      const std::vector<float> values = LoadAll(store);
      for (size_t j = 0; j < 4; ++j) sums[j] += static_cast<double>(values[j]);
    }
    for (size_t j = 0; j < 4; ++j) {
      const double x = static_cast<double>(data[j]);
      // Five standard errors of a mean whose draws lie at most a quarter of x or 1/127 away.
      const double spread = std::max(std::abs(x) / 4, 1.0 / 127);
      EXPECT_NEAR(sums[j] / kStores, x, 5 * spread / std::sqrt(1.0 * kStores)) << text;
    }
  }
}

// Second moments of 4096 elements, moving means of g^2 with beta2 0.95, gradients of deviations
// e^(s N): which share is flushed to zero? (docs/moments.md)
class FlushedShare {
 public:
  explicit FlushedShare(double spread) : v_(4096) {
    std::vector<float> normal(v_.size());
    FillNormal({1, 0}, 0, normal);
    std::vector<double> deviation;
    for (const float x : normal) deviation.push_back(Exp(spread * static_cast<double>(x)));
    for (uint64_t step = 1; step <= 200; ++step) {
      FillNormal({1, step}, 0, normal);
      for (size_t i = 0; i < v_.size(); ++i) {
        const double g = deviation[i] * static_cast<double>(normal[i]);
        v_[i] = static_cast<float>(0.95 * static_cast<double>(v_[i]) + 0.05 * g * g);
      }
    }
  }
  double operator()(const char* text) const {
    MomentStore store(ParseMomentFormat(text), v_.size(), false);
    const MomentLoss loss = store.Store(v_, {}, true);
    return static_cast<double>(loss.flushed) / static_cast<double>(loss.nonzero);
  }

 private:
  std::vector<float> v_;
};

TEST(MomentLoss, E5m2AndBlocksAndCoatKeepTheSecondMomentsThatE4m3Flushes) {
  const FlushedShare narrow(1), wide(3);
  EXPECT_NEAR(narrow("e4m3fn"), 0.007, 0.015);
  EXPECT_EQ(narrow("e5m2"), 0.0);
  EXPECT_LT(narrow("e4m3fn@block"), 0.004);
  EXPECT_EQ(narrow("e5m2@block"), 0.0);
  EXPECT_GT(wide("e4m3fn"), 0.85);
  EXPECT_NEAR(wide("e5m2"), 0.57, 0.2);
  EXPECT_NEAR(wide("e4m3fn@block"), 0.63, 0.1);
  EXPECT_NEAR(wide("e5m2@block"), 0.13, 0.06);
  for (const char* format : {"e4m3fn@coat", "e5m2@coat", "e4m3@coat"}) {
    EXPECT_EQ(narrow(format), 0.0) << format;
    EXPECT_EQ(wide(format), 0.0) << format;
  }
}

}  // namespace
}  // namespace numsim::moment_test
