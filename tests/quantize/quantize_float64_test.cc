// Quantisation of float64 matrices. tests/apps/exact_numbers.py compares its errors with fractions.
#include "numsim/quantize/quantize_float64.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/random/distributions.h"

namespace numsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

QuantizeOptions Options(std::string_view format, std::string_view layout, ScaleRule rule) {
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = rule;
  return options;
}

// Numbers of float32 whose products with powers of two are exact give the codes of the float32 call.
TEST(QuantizeFloat64, EqualsTheFloat32CallWhereThatIsExact) {
  const MatrixShape shape{6, 64};
  std::vector<float> narrow(shape.Elements());
  FillNormal({.seed = 3, .stream = 1}, 0, narrow);
  narrow[5] = std::numeric_limits<float>::infinity();
  narrow[7] = std::numeric_limits<float>::quiet_NaN();
  narrow[9] = -0.0f;
  const std::vector<double> wide(narrow.begin(), narrow.end());
  for (const char* const format : {"e4m3fn", "e2m1fn", "int8", "fp16"}) {
    for (const char* const layout : {"tensor", "row", "column", "block:16", "tile:4x8"}) {
      for (const ScaleRule rule : {ScaleRule::kNone,
                                   ScaleRule::kE8m0,
                                   ScaleRule::kPow2Floor,
                                   ScaleRule::kE8m0Even,
                                   ScaleRule::kE8m0Ceil}) {
        QuantizeOptions options = Options(format, layout, rule);
        options.rounding = {RoundingMode::kStochastic, StochasticVariant::kB, 9};
        options.random = {{12, 3}, 5};
        const QuantizedMatrix a =
            Quantize(HostMatrix(std::span<const float>(narrow), shape), options);
        const QuantizedMatrix b =
            Quantize(HostMatrix(std::span<const double>(wide), shape), options);
        ASSERT_TRUE(std::ranges::equal(a.CodeBytes().Span(), b.CodeBytes().Span())) << format;
        ASSERT_TRUE(std::ranges::equal(a.Scales(), b.Scales())) << format << layout;
      }
    }
  }
}

TEST(QuantizeFloat64, ScalesOfFloat32MaximaAreThoseOfTheFloat32Call) {
  const MatrixShape shape{4, 32};
  std::vector<float> narrow(shape.Elements());
  FillNormal({.seed = 3, .stream = 2}, 0, narrow);
  const std::vector<double> wide(narrow.begin(), narrow.end());
  for (const ScaleRule rule : {ScaleRule::kAbsmax,
                               ScaleRule::kPow2Ceil,
                               ScaleRule::kNvfp4,
                               ScaleRule::kNvfp4Inverse,
                               ScaleRule::kE4m3}) {
    const QuantizeOptions options = Options("e2m1fn", "block:16", rule);
    const QuantizedMatrix a = Quantize(HostMatrix(std::span<const float>(narrow), shape), options);
    const QuantizedMatrix b = Quantize(HostMatrix(std::span<const double>(wide), shape), options);
    EXPECT_TRUE(std::ranges::equal(a.Scales(), b.Scales())) << ToString(rule);
  }
}

// 1.0625 is the middle between 1 and 1.125; the tiny rest decides, and float32 does not have it.
TEST(QuantizeFloat64, RoundsOnceFromTheExactProduct) {
  const std::vector<double> in = {1.0625 + 0x1p-40, 1.0625 - 0x1p-40, 1.0625, 448};
  std::vector<double> out(4);
  FakeQuantize(in, {1, 4}, Options("e4m3fn", "tensor", ScaleRule::kNone), out);
  EXPECT_EQ(out, (std::vector<double>{1.125, 1, 1, 448}));
  // The same with a scale of 3, whose inverse is not a power of two: 1.0625 / fl32(1 / 3).
  const float inverse = 448.0f / 1344.0f;
  const double middle = 1.0625 / static_cast<double>(inverse);  // rounded; its exact product is off
  const std::vector<double> scaled = {std::nextafter(middle, 4), std::nextafter(middle, 0), 1344};
  out.resize(3);
  const auto scales =
      FakeQuantize(scaled, {1, 3}, Options("e4m3fn", "tensor", ScaleRule::kAbsmax), out);
  EXPECT_EQ(scales[0], 3);
  EXPECT_EQ(out, (std::vector<double>{3 * 1.125, 3, 1344}));
}

TEST(QuantizeFloat64, ScalesComeFromTheExactMaximum) {
  const auto scale = [](double absmax, ScaleRule rule) {
    std::vector<double> out(1);
    return FakeQuantize(std::span(&absmax, 1), {1, 1}, Options("e4m3fn", "tensor", rule), out)[0];
  };
  // Just below and above a power of two times 448; float32 rounds both to it.
  EXPECT_EQ(scale(448 - 0x1p-30, ScaleRule::kPow2Floor), 0.5f);
  EXPECT_EQ(scale(448 + 0x1p-30, ScaleRule::kPow2Floor), 1.0f);
  EXPECT_EQ(scale(448 + 0x1p-30, ScaleRule::kPow2Ceil), 2.0f);
  EXPECT_EQ(scale(448 - 0x1p-30, ScaleRule::kPow2Ceil), 1.0f);
  EXPECT_EQ(scale(256 - 0x1p-30, ScaleRule::kE8m0), 0.5f);
  // The ulp of e4m3fn is 16 from 128 on: half of it carries 248 over, all of it 240, 3/8 of it 250.
  for (const auto& [rule, carries] : {std::pair(ScaleRule::kE8m0Even, 248.0),
                                      std::pair(ScaleRule::kE8m0Ulp, 240.0),
                                      std::pair(ScaleRule::kE8m0ThreeEighths, 250.0)}) {
    EXPECT_EQ(scale(carries - 0x1p-30, rule), 0.5f) << ToString(rule);
    EXPECT_EQ(scale(carries, rule), 1.0f) << ToString(rule);
    EXPECT_EQ(scale(carries + 0x1p-30, rule), 1.0f) << ToString(rule);
  }
  EXPECT_EQ(scale(256 + 0x1p-30, ScaleRule::kE8m0Ceil), 2.0f);
  EXPECT_EQ(scale(256 - 0x1p-30, ScaleRule::kE8m0Ceil), 1.0f);
  // The quotient is rounded to float32 first, which is the middle of 1 and 1.125, a tie to 1.
  EXPECT_EQ(scale(448 * (1.0625 + 0x1p-40), ScaleRule::kE4m3), 1.0f);
  EXPECT_EQ(scale(448 * (1.0625 + 0x1p-20 + 0x1p-40), ScaleRule::kE4m3), 1.125f);
  // The quotient, not the quotient of the rounded maximum: 448 (1 + 2^-24) rounds to 448 (a tie).
  EXPECT_EQ(scale(448 * (1 + 0x1p-24 + 0x1p-50), ScaleRule::kAbsmax), 1 + 0x1p-23f);
  EXPECT_EQ(scale(1e-300, ScaleRule::kAbsmax), 0x1p-126f);
  EXPECT_EQ(scale(1e-300, ScaleRule::kPow2Ceil), 0x1p-127f);
  EXPECT_EQ(scale(448 * 0x1p-127 * (1 + 0x1p-50), ScaleRule::kPow2Ceil), 0x1p-126f);
  EXPECT_EQ(scale(0, ScaleRule::kAbsmax), 1);
}

TEST(QuantizeFloat64, AScaleBeyondFloat32Throws) {
  for (const ScaleRule rule : {ScaleRule::kAbsmax,
                               ScaleRule::kPow2Floor,
                               ScaleRule::kPow2Ceil,
                               ScaleRule::kE8m0,
                               ScaleRule::kE8m0Even,
                               ScaleRule::kE8m0Ceil,
                               ScaleRule::kNvfp4}) {
    const std::vector<double> in = {1e300, 1};
    std::vector<double> out(2);
    const QuantizeOptions options = Options("e2m1fn", "tensor", rule);
    EXPECT_THROW(FakeQuantize(in, {1, 2}, options, out), ScaleError) << ToString(rule);
    EXPECT_THROW(Quantize(HostMatrix(std::span<const double>(in), {1, 2}), options), ScaleError);
  }
}

TEST(QuantizeUnderGivenScale, AScaleThatFloat32CannotHoldThrows) {
  const std::vector<float> in = {1, 2};
  const QuantizeOptions options = Options("e4m3fn", "tensor", ScaleRule::kNone);
  QuantizedMatrix result;
  const auto infinity = std::numeric_limits<float>::infinity();
  for (const Scale scale : {Scale{infinity, 0}, Scale{1, infinity}, Scale{std::nanf(""), 1}}) {
    EXPECT_THROW(
        QuantizeUnder(scale, HostMatrix(std::span(in), MatrixShape{1, 2}), options, result), Error);
  }
  QuantizeUnder(Scale{2, 0.5f}, HostMatrix(std::span(in), MatrixShape{1, 2}), options, result);
  EXPECT_EQ(result.Scales()[0], 2);
}

TEST(QuantizeFloat64, ErrorsOfAnyMagnitudeAreMeasured) {
  const QuantizeOptions options = Options("bf16", "tensor", ScaleRule::kNone);
  const std::vector<double> huge = {1e300, 1.0, -2.0, kInfinity, std::nan("")};
  const Float64ErrorMeasures e = QuantizationError(std::span<const double>(huge), {1, 5}, options);
  EXPECT_EQ(e.nonfinite, 2u);
  EXPECT_EQ(e.max_signal, 1e300);
  EXPECT_EQ(e.RelativeError(), 1);
  EXPECT_NEAR(e.SqnrDb(), 0, 1e-12);
  EXPECT_EQ(e.OverflowShare(), 1.0 / 3);
  const std::vector<double> tiny = {1.0, 1e-200};
  const Float64ErrorMeasures t = QuantizationError(std::span<const double>(tiny), {1, 2}, options);
  EXPECT_DOUBLE_EQ(t.RelativeError(), 1e-200);
  EXPECT_NEAR(t.SqnrDb(), 4000, 1e-9);
  EXPECT_DOUBLE_EQ(t.MeanError(), -5e-201);
  EXPECT_EQ(t.UnderflowShare(), 0.5);
  const std::vector<double> exact = {1.0, 0.5};
  EXPECT_EQ(QuantizationError(std::span<const double>(exact), {1, 2}, options).SqnrDb(), kInfinity);
}

TEST(QuantizeFloat64, SizesThatDoNotFitThrow) {
  const std::vector<double> in(6);
  std::vector<double> out(5);
  const QuantizeOptions options = Options("e4m3fn", "tensor", ScaleRule::kNone);
  EXPECT_THROW(FakeQuantize(in, {2, 3}, options, out), Error);
  EXPECT_THROW(Quantize(HostMatrix(std::span<const double>(in), {2, 4}), options), Error);
  EXPECT_THROW(Quantize(HostMatrix(std::span<const double>(in), {2, 3}),
                        Options("fp32", "tensor", ScaleRule::kNone)),
               Error);
}

}  // namespace
}  // namespace numsim
