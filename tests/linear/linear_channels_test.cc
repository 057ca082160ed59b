// Columns of X that are multiplied by powers of two after they are quantised.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "tests/linear/linear_problem.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{70, 13, 7};

// Powers of two, 2^-3 to 2^3.
std::vector<float> Channels(size_t n) {
  std::vector<float> channels(n);
  for (size_t j = 0; j < n; ++j) channels[j] = std::ldexp(1.0f, static_cast<int>(j * 5 % 7) - 3);
  return channels;
}

naive::Matrix TimesColumns(naive::Matrix in, const std::vector<float>& factors) {
  for (size_t i = 0; i < in.data.size(); ++i) in.data[i] *= factors[i % in.cols];
  return in;
}

naive::Results StepWithChannels(const LinearOptions& options,
                                const LinearProblem& p,
                                const std::vector<float>& channels) {
  Linear layer(MakeLinearRecipe(options));
  naive::Results out{Unwritten(kShape.tokens, kShape.out),
                     Unwritten(kShape.tokens, kShape.in),
                     Unwritten(kShape.out, kShape.in)};
  LinearSaved saved;
  layer.Forward(HostMatrix(p.x.data, kShape.X()),
                HostMatrix(p.w.data, kShape.W()),
                out.y.data,
                saved,
                {},
                nullptr,
                false,
                channels);
  layer.Backward(p.g.data, p.w.data, saved, out.dx.data, out.dw.data);
  return out;
}

TEST(LinearChannels, WithoutAQuantiserTheyUndoAScaledXBitForBit) {
  const LinearProblem p = UnevenProblem(kShape);
  const std::vector<float> channels = Channels(kShape.in);
  std::vector<float> inverse;
  for (float c : channels) inverse.push_back(1 / c);
  for (const char* high_precision : {"fp32", "bf16"}) {
    const LinearOptions options{.kind = "standard", .high_precision = high_precision};
    LinearProblem scaled = p;
    scaled.x = TimesColumns(p.x, inverse);
    ExpectSameBits(StepWithChannels(options, scaled, channels), Step(options, p));
  }
}

// Every kind: the operands of the backward pass are those without channels, and the columns of dW
// are multiplied.
TEST(LinearChannels, GradientsAreThoseOfTheQuantisedXTimesItsChannels) {
  const LinearProblem p = UnevenProblem(kShape);
  const std::vector<float> channels = Channels(kShape.in);
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    const LinearOptions options{.kind = kind};
    const naive::Results actual = StepWithChannels(options, p, channels);
    const naive::Results plain = Step(options, p);
    ExpectSameBits("dX", actual.dx, plain.dx);
    ExpectSameBits("dW", actual.dw, TimesColumns(plain.dw, channels));
  }
}

TEST(LinearChannels, ForwardMultipliesWhatTheQuantiserGives) {
  const LinearProblem p = UnevenProblem(kShape);
  const std::vector<float> channels = Channels(kShape.in);
  for (const char* kind : {"te-hybrid", "e5m2-backward"}) {
    SCOPED_TRACE(kind);
    const ScaleRule rule =
        std::string(kind) == "te-hybrid" ? ScaleRule::kAbsmax : ScaleRule::kPow2Floor;
    const naive::Quantiser quantiser{
        .format = "e4m3fn", .group = naive::WholeTensor(), .rule = rule};
    const naive::Matrix x =
        TimesColumns(naive::Dequantised(naive::Quantised(p.x, quantiser)), channels);
    const naive::Matrix expected =
        naive::Product(naive::Cast(x, "fp32"), naive::Quantised(p.w, quantiser), "fp32");
    ExpectSameBits("Y", StepWithChannels({.kind = kind}, p, channels).y, expected);
  }
}

TEST(LinearChannels, AnotherNumberOfThemIsRefused) {
  const LinearProblem p = UnevenProblem(kShape);
  EXPECT_NE(
      ErrorOf([&] { StepWithChannels({}, p, Channels(kShape.in + 1)); }).find("'channels' has 14"),
      std::string::npos);
}

TEST(LinearChannels, TheNextForwardHasNone) {
  const LinearProblem p = UnevenProblem(kShape);
  Linear layer(MakeLinearRecipe({.kind = "te-hybrid"}));
  LinearSaved saved;
  naive::Results out = Step(layer, p);
  std::vector<float> y(out.y.data.size()), dx(out.dx.data.size()), dw(out.dw.data.size());
  layer.Forward(HostMatrix(p.x.data, kShape.X()),
                HostMatrix(p.w.data, kShape.W()),
                y,
                saved,
                {},
                nullptr,
                false,
                Channels(kShape.in));
  layer.Forward(HostMatrix(p.x.data, kShape.X()), HostMatrix(p.w.data, kShape.W()), y, saved);
  layer.Backward(p.g.data, p.w.data, saved, dx, dw);
  EXPECT_TRUE(SameBits(y, out.y.data));
  EXPECT_TRUE(SameBits(dw, out.dw.data));
}

}  // namespace
}  // namespace numsim
