// Rules of single operands, and backward operands that are made from the codes of the forward GEMM.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

constexpr LinearShape kShape{.tokens = 48, .in = 64, .out = 32};

LinearOptions Mxfp8(const std::string& from_codes = "") {
  LinearOptions options;
  options.kind = "mx";
  options.high_precision = "fp32";
  options.backward_from_codes = ParseOperandSet(from_codes);
  return options;
}

naive::Matrix ThroughCodes(const naive::Matrix& in) {
  return naive::Dequantised(naive::Quantised(
      in, {.format = "e4m3fn", .group = naive::Tiles(1, 32), .rule = ScaleRule::kE8m0}));
}

TEST(LinearFromCodes, BackwardTakesTheDequantisedTensors) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const char* high_operands : {"", "input-gradient,weight-gradient"}) {
    for (const char* named : {"x", "w", "x,w"}) {
      SCOPED_TRACE(std::string(named) + " " + high_operands);
      LinearOptions plain = Mxfp8(), options = Mxfp8(named);
      options.high_operands = plain.high_operands = ParseOperandSet(high_operands);
      naive::Results expected = Step(plain, p);
      const naive::Results before = expected;
      const bool x = options.backward_from_codes.Has(LinearOperand::kForwardX);
      const bool w = options.backward_from_codes.Has(LinearOperand::kForwardW);
      if (x) expected.dw = Step(plain, {ThroughCodes(p.x), p.w, p.g}).dw;
      if (w) expected.dx = Step(plain, {p.x, ThroughCodes(p.w), p.g}).dx;
      ExpectSameBits(Step(options, p), expected);
      EXPECT_EQ(SameBits(before.dw.data, expected.dw.data), !x);
      EXPECT_EQ(SameBits(before.dx.data, expected.dx.data), !w);
    }
  }
}

TEST(LinearFromCodes, XIsSavedAsCodes) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const bool from_codes : {false, true}) {
    LinearOptions options = Mxfp8(from_codes ? "x" : "");
    options.high_precision = "bf16";
    Linear layer(MakeLinearRecipe(options));
    std::vector<float> y(kShape.tokens * kShape.out);
    LinearSaved saved;
    layer.Forward(HostMatrix(p.x.data, kShape.X()), HostMatrix(p.w.data, kShape.W()), y, saved);
    EXPECT_EQ(saved.matrices[0].format, from_codes ? "e4m3fn" : "bf16");
    EXPECT_EQ(saved.Bytes(),
              kShape.tokens * kShape.in * (from_codes ? 1 : 2) +
                  (from_codes ? kShape.tokens * 2 * 4 : 0));
  }
}

TEST(LinearFromCodes, ErrorsNameTheOption) {
  const auto error = [](const LinearOptions& options) {
    return ErrorOf([&] { MakeLinearRecipe(options); });
  };
  EXPECT_THAT(error(Mxfp8("g")), HasSubstr("backward_from_codes: 'g' is not x, w or both"));
  EXPECT_THAT(error(Mxfp8("forward.x")), HasSubstr("is not x, w or both"));
  LinearOptions options = Mxfp8("w");
  options.hadamard = "forward";
  EXPECT_THAT(error(options), HasSubstr("backward_from_codes: not with a Hadamard transform"));
  options = {.kind = "te-hybrid", .backward_from_codes = ParseOperandSet("x")};
  EXPECT_THAT(error(options),
              HasSubstr("backward_from_codes: kind 'te-hybrid' has no such option"));
  options.kind = "standard";
  EXPECT_THAT(error(options), HasSubstr("backward_from_codes"));
  options.kind = "e5m2-backward";
  options.delayed = DelayedScalingOptions{};
  EXPECT_THAT(error(options), HasSubstr("backward_from_codes: not with delayed scaling"));
  EXPECT_THAT(ErrorOf([] { CheckOnDevice(ForDevice(MakeLinearRecipe(Mxfp8("w")))); }),
              HasSubstr("a device has no backward_from_codes"));
  // An operand in high precision has no codes.
  options = Mxfp8("x,w");
  options.high_operands = ParseOperandSet("forward");
  EXPECT_FALSE(MakeLinearRecipe(options).x_from_codes);
}

TEST(LinearScaleRules, ThoseOfSingleOperandsReplaceTheUsualOne) {
  LinearOptions options;
  options.kind = "mx";
  options.format = "nvfp4";
  options.scale_rule = "w=4over6-mae,backward.x=none";
  EXPECT_THAT(ErrorOf([&] { MakeLinearRecipe(options); }), HasSubstr("scale_rule: 'backward.x'"));
  options.scale_rule = "x=nvfp4-inverse,w=4over6-mae,forward.x=nvfp4-row";
  const LinearRecipe recipe = MakeLinearRecipe(options);
  const ScaleRule expected[] = {ScaleRule::kNvfp4Row,
                                ScaleRule::kFourOverSixMae,
                                ScaleRule::kNvfp4,
                                ScaleRule::kFourOverSixMae,
                                ScaleRule::kNvfp4,
                                ScaleRule::kNvfp4Inverse};
  for (int i = 0; i < kLinearOperands; ++i) {
    EXPECT_EQ(recipe[static_cast<LinearOperand>(i)].scale_rule, expected[i]) << i;
  }
}

// A row-scaled X is as many tensors as it has rows.
TEST(LinearScaleRules, RowScaledXIsRowByRow) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const char* accumulate : {"fp32", "mxf4nvf4"}) {
    LinearOptions options;
    options.kind = "mx";
    options.format = "nvfp4";
    options.accumulate = accumulate;
    options.scale_rule = "nvfp4,forward.x=nvfp4-row";
    const naive::Results rows = Step(options, p);
    options.scale_rule = "nvfp4,forward.x=nvfp4-inverse";
    EXPECT_FALSE(SameBits(Step(options, p).y.data, rows.y.data));
    for (size_t r = 0; r < kShape.tokens; ++r) {
      const auto row = [&](const naive::Matrix& m) {
        const auto begin = m.data.begin() + static_cast<std::ptrdiff_t>(r * m.cols);
        return naive::Matrix{1, m.cols, {begin, begin + static_cast<std::ptrdiff_t>(m.cols)}};
      };
      const naive::Results one = Step(options, {row(p.x), p.w, row(p.g)});
      ExpectSameBits("row of Y", one.y, row(rows.y));
    }
  }
}

TEST(LinearScaleRules, ErrorsSayWhatARuleIsFor) {
  const auto error = [](const std::string& rules,
                        const std::string& hadamard = "",
                        const char* kind = "mx",
                        const char* rounding = "rne") {
    LinearOptions options;
    options.kind = kind;
    options.format = "nvfp4";
    options.scale_rule = rules;
    options.hadamard = hadamard;
    if (rounding[0] == 's') options.gradient_rounding.mode = RoundingMode::kStochastic;
    return ErrorOf([&] { MakeLinearRecipe(options); });
  };
  EXPECT_THAT(error("nvfp4,none"), HasSubstr("scale_rule: 'none' is a second rule"));
  EXPECT_THAT(error("x=nvfp5"), HasSubstr("scale_rule: scale rule 'nvfp5'"));
  EXPECT_THAT(error("ms-eden"), HasSubstr("is for operands with a Hadamard transform"));
  EXPECT_THAT(error("nvfp4,g=ms-eden", "input-gradient,weight-gradient", "mx", "sr"),
              HasSubstr("is for rounding rne"));
  EXPECT_THAT(error("nvfp4,w=nvfp4-row", "", "block"),
              HasSubstr("nvfp4-row is for blocks along the inner dimension"));
  LinearOptions options{.kind = "te-hybrid", .scale_rule = "absmax,x=pow2-ceil"};
  EXPECT_THAT(ErrorOf([&] { MakeLinearRecipe(options); }),
              HasSubstr("scale_rule: kind 'te-hybrid' saves codes"));
  options = {.kind = "mx", .format = "nvfp4", .scale_rule = "x=nvfp4-row"};
  EXPECT_THAT(ErrorOf([&] { CheckOnDevice(MakeLinearRecipe(options)); }),
              HasSubstr("a device has no scale rule nvfp4-row"));
}

LinearOptions Quartet() {
  LinearOptions options;
  options.kind = "mx";
  options.format = "nvfp4";
  options.scale_rule = "4over6-mse,input-gradient=ms-eden,weight-gradient=ms-eden";
  options.high_precision = "fp32";
  options.hadamard = "input-gradient,weight-gradient";
  options.hadamard_size = 128;
  options.hadamard_signs = "redrawn";
  return options;
}

// The distance of the mean gradient of many steps from the exact one, relative to it.
double MeanError(const LinearOptions& options, const LinearProblem& p) {
  constexpr uint64_t kSteps = 1024;
  const naive::Results exact = Step(LinearOptions{.kind = "standard", .high_precision = "fp32"}, p);
  std::vector<double> sum(exact.dw.data.size());
  Linear layer(MakeLinearRecipe(options));
  for (uint64_t step = 0; step < kSteps; ++step) {
    const naive::Results one = Step(layer, p, {.seed = 5, .stream = step});
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.dw.data[i];
  }
  double error = 0, norm = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    const double e = exact.dw.data[i], d = sum[i] / static_cast<double>(kSteps) - e;
    error += d * d;
    norm += e * e;
  }
  return std::sqrt(error / norm);
}

// Its mean approaches the exact gradient. Without the correction the mean stays away from it, however
// many steps there are: the planted variant, nearest rounding under the same transforms.
TEST(LinearMsEden, MeanGradientIsUnbiasedAndThatOfNearestRoundingIsNot) {
  LinearProblem p = UnevenProblem({.tokens = 128, .in = 16, .out = 128});
  for (naive::Matrix* m : {&p.x, &p.g}) FillNormal({.seed = 8, .stream = m->cols}, 0, m->data);
  const double unbiased = MeanError(Quartet(), p);
  LinearOptions planted = Quartet();
  planted.scale_rule = "nvfp4";
  const double nearest = MeanError(planted, p);
  EXPECT_LT(unbiased, 0.006);
  EXPECT_GT(nearest, 2 * unbiased) << unbiased;
}

}  // namespace
}  // namespace numsim
