// The smooth and clamped SwiGLUs against their definitions, and Smooth-SwiGLU against SwiGLU.
#include "numsim/models/internal/gated_activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/models/internal/mlp_layer.h"
#include "numsim/ops/shared/activation.h"
#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr size_t kTokens = 70, kChannels = 133;

// Draws with a token and a channel of outliers, a token and a channel of zeros.
template <typename T>
std::vector<T> Inputs() {
  std::vector<float> draws(kTokens * 2 * kChannels);
  FillNormal({3, 1}, 0, draws);
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t j = 0; j < 2 * kChannels; ++j) {
      float& x = draws[t * 2 * kChannels + j];
      if (t == 5 || j % kChannels == 7) x *= 100;
      if (t == 9 || j == kChannels + 11) x = 0;
    }
  }
  return {draws.begin(), draws.end()};
}

template <typename T>
struct Result {
  explicit Result(MlpKind kind)
      : activation(kind, Place()), x(Inputs<T>()), y(kTokens * kChannels) {
    activation.Forward({x.data(), kTokens, 2 * kChannels}, {y.data(), kTokens, kChannels});
  }
  T At(size_t t, size_t j) const { return y[t * kChannels + j]; }
  GatedActivation<T> activation;
  std::vector<T> x, y;
};

template <typename T>
double Swish(T x) {
  return static_cast<double>(x) / (1 + std::exp(-static_cast<double>(x)));
}

TEST(GatedActivation, TokensAreDividedByTheMaximumOfTheirLinearBranch) {
  const Result<float> r(MlpKind::kSmoothSwigluToken);
  ASSERT_EQ(r.activation.TokenFactors().size(), kTokens);
  EXPECT_TRUE(r.activation.ChannelFactors().empty());
  for (size_t t = 0; t < kTokens; ++t) {
    const float* x = r.x.data() + t * 2 * kChannels;
    float absmax = 0;
    for (size_t j = 0; j < kChannels; ++j) absmax = std::max(absmax, std::abs(x[kChannels + j]));
    EXPECT_EQ(r.activation.TokenFactors()[t], t == 9 ? 1.0f : absmax) << t;
    for (size_t j = 0; j < kChannels; ++j) {
      const double linear =
          t == 9 ? 0 : static_cast<double>(x[kChannels + j]) / static_cast<double>(absmax);
      const double expected = Swish(x[j]) * linear;
      ASSERT_NEAR(r.At(t, j), expected, 1e-6 * std::abs(expected) + 1e-30) << t << " " << j;
    }
  }
}

TEST(GatedActivation, ChannelsAreMultipliedByPowersOfTwoIntoOneBinade) {
  const Result<float> plain(MlpKind::kSwiglu), r(MlpKind::kSmoothSwiglu);
  const std::span<const float> factors = r.activation.ChannelFactors();
  ASSERT_EQ(factors.size(), kChannels);
  for (size_t j = 0; j < kChannels; ++j) {
    int exponent = 0;
    EXPECT_EQ(std::frexp(factors[j], &exponent), 0.5f) << j;
    float absmax = 0;
    for (size_t t = 0; t < kTokens; ++t) {
      absmax = std::max(absmax, std::abs(r.At(t, j)));
      // Exact, except for what the scale makes subnormal.
      const float exact = plain.At(t, j);
      const bool normal = exact == 0 || std::abs(exact / factors[j]) >= 0x1p-126f;
      ASSERT_NEAR(r.At(t, j) * factors[j], exact, normal ? 0 : 0x1p-149f * factors[j])
          << t << " " << j;
    }
    if (j == 11) {
      EXPECT_EQ(absmax, 0);
      EXPECT_EQ(factors[j], 1);
    } else {
      EXPECT_TRUE(absmax >= 1 && absmax < 2) << j << " " << absmax;
    }
  }
}

TEST(GatedActivation, ClampsTheGateFromAboveAndTheLinearBranchOnBothSides) {
  const Result<double> r(MlpKind::kClampedSwiglu);
  for (size_t t = 0; t < kTokens; ++t) {
    const double* x = r.x.data() + t * 2 * kChannels;
    for (size_t j = 0; j < kChannels; ++j) {
      const double expected = Swish(std::min(x[j], 7.0)) * std::clamp(x[kChannels + j], -7.0, 7.0);
      ASSERT_NEAR(r.At(t, j), expected, 1e-14 * std::abs(expected));
    }
  }
}

TEST(GatedActivation, InfinitiesAndNanPassTheSmoothKinds) {
  for (MlpKind kind : {MlpKind::kSmoothSwiglu, MlpKind::kSmoothSwigluToken}) {
    GatedActivation<float> activation(kind, Place());
    constexpr float kInf = std::numeric_limits<float>::infinity();
    std::vector<float> x = {1, 2, kInf, 3, 1, 2, std::nanf(""), 3}, y(4);
    activation.Forward({x.data(), 2, 4}, {y.data(), 2, 2});
    EXPECT_EQ(y[0], kInf);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_TRUE(std::isfinite(y[1]) && std::isfinite(y[3]));
  }
}

// An MLP of float32, its output and all gradients.
struct Mlp {
  // Passes of an x of size 1, then one of the given size.
  Mlp(MlpKind kind, const LinearOptions& precision, int passes_before = 0, float size = 1) {
    ParameterList<float> parameters(5);
    LinearPrecision all;
    all.all.high_precision = "fp32";
    all.overrides = {{"*.down", precision}};
    LinearFactory<float> linears(parameters, all);
    MlpLayer<float> layer(linears,
                          "mlp",
                          {.kind = kind,
                           .width = 12,
                           .hidden = 21,
                           .rows = kTokens,
                           .up = {0, 1.5F},
                           .down = {0, 0.4F}});
    std::vector<float> x(kTokens * 12), g(kTokens * 12);
    FillNormal({8, 1}, 0, x);
    FillNormal({8, 2}, 0, g);
    y.resize(x.size());
    dx.resize(x.size());
    MlpScratch<float> scratch{Place()};
    const Pass<float> pass;
    for (int i = 0; i < passes_before; ++i) {
      layer.Forward(pass, {x.data(), kTokens, 12}, {y.data(), kTokens, 12});
    }
    for (float& value : x) value *= size;
    layer.Forward(pass, {x.data(), kTokens, 12}, {y.data(), kTokens, 12});
    layer.Backward(pass, {g.data(), kTokens, 12}, {dx.data(), kTokens, 12}, scratch);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::span<const float> gradient = parameters[i].gradient.View().Span();
      dw.insert(dw.end(), gradient.begin(), gradient.end());
    }
  }
  std::vector<float> y, dx, dw;
};

double RelativeError(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / size);
}

TEST(SmoothSwiglu, PerChannelWithoutAQuantiserIsSwigluBitForBit) {
  for (const char* high_precision : {"fp32", "bf16"}) {
    const LinearOptions precision{.high_precision = high_precision};
    const Mlp plain(MlpKind::kSwiglu, precision), smooth(MlpKind::kSmoothSwiglu, precision);
    EXPECT_EQ(smooth.y, plain.y);
    EXPECT_EQ(smooth.dx, plain.dx);
    EXPECT_EQ(smooth.dw, plain.dw);
  }
}

TEST(SmoothSwiglu, PerTokenWithoutAQuantiserIsSwigluUpToRounding) {
  const LinearOptions precision{.high_precision = "fp32"};
  const Mlp plain(MlpKind::kSwiglu, precision), smooth(MlpKind::kSmoothSwigluToken, precision);
  EXPECT_NE(smooth.y, plain.y);
  EXPECT_LT(RelativeError(smooth.y, plain.y), 1e-6);
  EXPECT_LT(RelativeError(smooth.dx, plain.dx), 1e-6);
  EXPECT_LT(RelativeError(smooth.dw, plain.dw), 1e-6);
}

// Under delayed scaling an outlier saturates, but not per channel, where the product always has the
// same largest value. Per token it does: the gate is not divided, so that the product still grows,
// with the size of x in place of its square.
TEST(SmoothSwiglu, PerChannelKeepsAnOutlierFromDelayedScales) {
  LinearOptions delayed{.kind = "te-hybrid"};
  delayed.delayed = DelayedScalingOptions{};
  const LinearOptions exact{.high_precision = "fp32"};
  const auto error = [&](MlpKind kind) {
    return RelativeError(Mlp(kind, delayed, 3, 30).y, Mlp(kind, exact, 3, 30).y);
  };
  EXPECT_GT(error(MlpKind::kSwiglu), 0.5);
  EXPECT_LT(error(MlpKind::kSmoothSwiglu), 0.1);
  EXPECT_GT(error(MlpKind::kSmoothSwigluToken), 0.5);
  EXPECT_LT(error(MlpKind::kSmoothSwigluToken), error(MlpKind::kSwiglu));
}

TEST(MlpLayer, TokensAndBiasesDoNotMix) {
  ParameterList<float> parameters(5);
  LinearFactory<float> linears(parameters, {});
  EXPECT_THAT(ErrorOf([&] {
                MlpLayer<float> layer(linears,
                                      "mlp",
                                      {.kind = MlpKind::kSmoothSwigluToken,
                                       .width = 2,
                                       .hidden = 2,
                                       .rows = 1,
                                       .biases = true});
              }),
              testing::HasSubstr("bias"));
}

}  // namespace
}  // namespace numsim
