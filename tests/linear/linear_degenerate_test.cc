// Shapes of one and none, zeros, and numbers that are not finite.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

// Each kind in int8 where it may be, and in e4m3fn.
std::vector<LinearOptions> AllOptions() {
  std::vector<LinearOptions> all;
  for (const std::string& kind : KindNames()) {
    for (const char* format : {"int8", "e4m3fn"}) {
      LinearOptions options;
      options.kind = kind;
      if (kind != "standard" && kind != "te-hybrid") options.format = format;
      all.push_back(options);
    }
  }
  return all;
}

void ExpectDefinition(const LinearOptions& options, const LinearProblem& p) {
  SCOPED_TRACE(options.kind + " " + options.format);
  Linear layer(MakeLinearRecipe(options));
  naive::Setup setup = naive::SetupOf(options);
  if (options.kind == "tensor-wise") {
    setup.keeps_quantized = layer.recipe().saves == LinearSaves::kQuantized;
  }
  ExpectSameBits(Step(layer, p), naive::Layer(options, setup, p.x, p.w, p.g));
}

TEST(LinearDegenerate, DimensionsOfOneFollowTheDefinition) {
  for (const LinearOptions& options : AllOptions()) {
    for (const LinearShape shape : {LinearShape{1, 40, 33}, {40, 1, 33}, {40, 33, 1}, {1, 1, 1}}) {
      ExpectDefinition(options, UnevenProblem(shape));
    }
  }
}

TEST(LinearDegenerate, EmptySumsArePlusZeroAndEmptyOutputsAreLeftAlone) {
  for (const LinearOptions& options : AllOptions()) {
    for (const LinearShape shape :
         {LinearShape{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 4}, {0, 4, 0}, {4, 0, 0}, {0, 0, 0}}) {
      SCOPED_TRACE(options.kind + " " + options.format);
      const naive::Results r = Step(options, UnevenProblem(shape));
      const std::vector<float> y(shape.tokens * shape.out, 0.0f);
      const std::vector<float> dx(shape.tokens * shape.in, 0.0f);
      const std::vector<float> dw(shape.out * shape.in, 0.0f);
      EXPECT_TRUE(SameBits(r.y.data, y));
      EXPECT_TRUE(SameBits(r.dx.data, dx));
      EXPECT_TRUE(SameBits(r.dw.data, dw));
    }
  }
}

TEST(LinearDegenerate, AllZeroOperandsGivePlusZeros) {
  for (const LinearOptions& options : AllOptions()) {
    SCOPED_TRACE(options.kind + " " + options.format);
    LinearProblem p = UnevenProblem({5, 6, 7});
    std::ranges::fill(p.x.data, 0.0f);
    std::ranges::fill(p.g.data, 0.0f);
    const naive::Results r = Step(options, p);
    EXPECT_TRUE(SameBits(r.y.data, std::vector<float>(35, 0.0f)));
    EXPECT_TRUE(SameBits(r.dx.data, std::vector<float>(30, 0.0f)));
    EXPECT_TRUE(SameBits(r.dw.data, std::vector<float>(42, 0.0f)));
    p = UnevenProblem({5, 6, 7});
    std::ranges::fill(p.w.data, 0.0f);
    ExpectDefinition(options, p);
  }
}

// A row of zeros has scale 1 and stays zeros, beside rows that are not.
TEST(LinearDegenerate, AllZeroRowsStayZero) {
  for (const LinearOptions& options : AllOptions()) {
    LinearProblem p = UnevenProblem({5, 6, 7});
    std::fill_n(p.x.data.begin() + 6, 6, 0.0f);       // token 1 of X
    std::fill_n(p.g.data.begin() + 2 * 7, 7, -0.0f);  // token 2 of G
    std::fill_n(p.w.data.begin() + 3 * 6, 6, 0.0f);   // output 3
    ExpectDefinition(options, p);
    const naive::Results r = Step(options, p);
    for (size_t j = 0; j < 7; ++j) EXPECT_EQ(r.y.At(1, j), 0.0f);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(r.y.At(i, 3), 0.0f);
    for (size_t k = 0; k < 6; ++k) EXPECT_EQ(r.dx.At(2, k), 0.0f);
  }
}

// Scales come from the finite elements; an infinity becomes the largest value; a NaN stays NaN
// where the format has one. High precision keeps both.
TEST(LinearDegenerate, NanAndInfinityFollowTheDefinition) {
  for (const LinearOptions& options : AllOptions()) {
    for (const float special : {kNaN, kInfinity, -kInfinity}) {
      for (naive::Matrix LinearProblem::*operand :
           {&LinearProblem::x, &LinearProblem::w, &LinearProblem::g}) {
        LinearProblem p = UnevenProblem({6, 7, 5});
        (p.*operand).data[9] = special;
        (p.*operand).data[16] = special;
        ExpectDefinition(options, p);
      }
    }
  }
}

TEST(LinearDegenerate, ANanOfX) {
  LinearProblem p{{2, 2, {1.0f, kNaN, 4.0f, -2.0f}}, {1, 2, {1.0f, 1.0f}}, {2, 1, {1.0f, 1.0f}}};
  LinearOptions options;
  options.kind = "switchback";
  options.format = "e4m3fn";
  naive::Results r = Step(options, p);
  EXPECT_TRUE(std::isnan(r.y.data[0]));
  EXPECT_NEAR(r.y.data[1], 2.0f, 1e-6f);
  for (float dx : r.dx.data) EXPECT_NEAR(dx, 1.0f, 1e-6f);
  EXPECT_EQ(r.dw.data[0], 5.0f);
  EXPECT_TRUE(std::isnan(r.dw.data[1]));
  // int8 has no NaN; it becomes the largest positive value, 127 of a row whose scale is 1 / 127.
  options.format = "int8";
  r = Step(options, p);
  const float scale = 1.0f / 127;
  EXPECT_EQ(r.y.data[0], static_cast<float>(2 * 127 * 127 * (static_cast<double>(scale) * scale)));
}

TEST(LinearDegenerate, AnInfinityOfXBecomesTheLargestValueOfItsRow) {
  LinearProblem p{
      {2, 2, {1.0f, -kInfinity, 4.0f, -2.0f}}, {1, 2, {0.5f, 1.0f}}, {2, 1, {1.0f, 1.0f}}};
  for (const char* format : {"int8", "e4m3fn"}) {
    LinearOptions options;
    options.kind = "switchback";
    options.format = format;
    const naive::Results r = Step(options, p);
    EXPECT_NEAR(r.y.data[0], 0.5f - 1.0f, 0.01f) << format;
    EXPECT_NEAR(r.y.data[1], 0.0f, 0.02f) << format;
    EXPECT_EQ(r.dw.data[1], -kInfinity) << format;  // from X itself, in high precision
  }
}

TEST(LinearDegenerate, HighPrecisionKeepsInfinitiesAndOverflowsToThem) {
  LinearProblem p{{1, 1, {kInfinity}}, {1, 1, {1.0f}}, {1, 1, {1.0f}}};
  for (const char* high_precision : {"fp32", "bf16", "fp16"}) {
    LinearOptions options;
    options.high_precision = high_precision;
    p.x.data[0] = kInfinity;
    EXPECT_EQ(Step(options, p).y.data[0], kInfinity) << high_precision;
    EXPECT_EQ(Step(options, p).dw.data[0], kInfinity) << high_precision;
    p.x.data[0] = 65520.0f;  // 65504 is the largest of fp16, 65520 rounds up
    const float expected = options.high_precision == "fp16"   ? kInfinity
                           : options.high_precision == "fp32" ? 65520.0f
                                                              : 65536.0f;
    EXPECT_EQ(Step(options, p).y.data[0], expected) << high_precision;
  }
}

}  // namespace
}  // namespace numsim
