// Tests how many bytes a layer saves for its backward pass, and that it saves nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/quantized_codes.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{37, 29, 23};
constexpr size_t kX = 37 * 29, kW = 23 * 29;

LinearSaved Kept(const LinearOptions& options, LinearShape shape = kShape) {
  Linear layer(MakeLinearRecipe(options));
  const LinearProblem p = UnevenProblem(shape);
  std::vector<float> y(shape.tokens * shape.out);
  LinearSaved saved;
  layer.Forward(p.x.data, p.w.data, shape, y, saved);
  return saved;
}

LinearOptions Options(const std::string& kind, const char* high_precision = "") {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = high_precision;
  return options;
}

TEST(LinearSaved, XInHighPrecisionTakesTwoOrFourBytesAnElement) {
  for (const char* kind : {"standard",
                           "switchback",
                           "switchback-q",
                           "llm-int8",
                           "llm-int8-tensor-w",
                           "row-wise-gw-hp",
                           "block",
                           "mx"}) {
    EXPECT_EQ(Kept(Options(kind)).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "bf16")).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "fp16")).Bytes(), 2 * kX) << kind;
    EXPECT_EQ(Kept(Options(kind, "fp32")).Bytes(), 4 * kX) << kind;
  }
}

// Codes of X and W, a float32 state for each row of X and one for W.
TEST(LinearSaved, SwitchBackMKeepsCodesAndScalesAlone) {
  const LinearSaved saved = Kept(Options("switchback-m"));
  EXPECT_EQ(saved.Bytes(), kX + 4 * 37 + kW + 4);
  ASSERT_EQ(saved.matrices.size(), 2u);
  EXPECT_EQ(saved.matrices[0].name, "X");
  EXPECT_EQ(saved.matrices[0].Bytes(), kX + 4 * 37);
  EXPECT_EQ(saved.matrices[1].name, "W");
  EXPECT_EQ(saved.matrices[1].Bytes(), kW + 4);
  for (const SavedMatrix& matrix : saved.matrices) {
    EXPECT_EQ(matrix.format, "int8");
    const auto* codes = std::get_if<QuantizedMatrix>(&matrix.data);
    ASSERT_NE(codes, nullptr);
    EXPECT_FALSE(Codes8Of(*codes).empty());
    EXPECT_TRUE(Codes16Of(*codes).empty());
  }
  LinearOptions wide = Options("switchback-m");
  wide.format = "fp16";
  EXPECT_EQ(Kept(wide).Bytes(), 2 * kX + 2 * kW);  // not scaled
  wide.scale_rule = "absmax";
  EXPECT_EQ(Kept(wide).Bytes(), 2 * kX + 4 * 37 + 2 * kW + 4);
}

TEST(LinearSaved, TeHybridKeepsTheCodesOfXAndW) {
  EXPECT_EQ(Kept(Options("te-hybrid")).Bytes(), kX + 4 + kW + 4);
  LinearOptions delayed;
  delayed.kind = "te-hybrid";
  delayed.delayed = DelayedScalingOptions{};
  EXPECT_EQ(Kept(delayed).Bytes(), kX + 4 + kW + 4);
}

TEST(LinearSaved, TensorWiseKeepsWhatItsRecipeSays) {
  LinearOptions options = Options("tensor-wise");
  const bool codes = MakeLinearRecipe(options).saves == LinearSaves::kQuantized;
  EXPECT_EQ(Kept(options).Bytes(), codes ? kX + 4 + kW + 4 : 2 * kX);
}

TEST(LinearSaved, BytesAreThoseOfAllMatrices) {
  for (const std::string& kind : KindNames()) {
    const LinearSaved saved = Kept(Options(kind));
    size_t sum = 0;
    for (const SavedMatrix& matrix : saved.matrices) sum += matrix.Bytes();
    EXPECT_EQ(saved.Bytes(), sum) << kind;
    EXPECT_EQ(saved.shape.tokens, kShape.tokens) << kind;
    EXPECT_EQ(saved.shape.in, kShape.in) << kind;
    EXPECT_EQ(saved.shape.out, kShape.out) << kind;
  }
}

// Section 2.2.1 of [SwitchBack] recommends SwitchBackM where memory is limited: of long batches it
// keeps about half.
TEST(LinearSaved, SwitchBackMKeepsHalfOfWhatSwitchBackDoes) {
  const LinearShape shape{4096, 64, 64};
  const size_t m = Kept(Options("switchback-m"), shape).Bytes();
  const size_t plain = Kept(Options("switchback"), shape).Bytes();
  EXPECT_EQ(plain, Kept(Options("standard"), shape).Bytes());
  EXPECT_LT(static_cast<double>(m), 0.55 * static_cast<double>(plain));
}

TEST(LinearSaved, BackwardReadsNothingThatIsNotKept) {
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    LinearProblem p = UnevenProblem(kShape);
    Linear layer(MakeLinearRecipe(Options(kind)));
    const naive::Results expected = Step(layer, p);
    std::vector<float> y(p.g.data.size()), dx(kX), dw(kW);
    LinearSaved saved;
    layer.Forward(p.x.data, p.w.data, kShape, y, saved);
    std::ranges::fill(p.x.data, std::nanf(""));
    std::ranges::fill(y, std::nanf(""));
    if (layer.recipe().saves == LinearSaves::kQuantized) {
      std::ranges::fill(p.w.data, std::nanf(""));
      layer.Backward(p.g.data, {}, saved, dx, dw);
      EXPECT_TRUE(SameBits(dx, expected.dx.data));
      EXPECT_TRUE(SameBits(dw, expected.dw.data));
    }
    layer.Backward(p.g.data, p.w.data, saved, dx, dw);
    EXPECT_TRUE(SameBits(dx, expected.dx.data));
    EXPECT_TRUE(SameBits(dw, expected.dw.data));
  }
}

// A LinearSaved may be used again for another step.
TEST(LinearSaved, ForwardReplacesWhatWasKept) {
  Linear layer(MakeLinearRecipe(Options("switchback-m")));
  LinearSaved saved;
  for (const LinearShape shape : {LinearShape{5, 6, 7}, {3, 2, 4}}) {
    const LinearProblem p = UnevenProblem(shape);
    std::vector<float> y(shape.tokens * shape.out);
    layer.Forward(p.x.data, p.w.data, shape, y, saved);
    EXPECT_EQ(saved.Bytes(), (shape.tokens + shape.out) * shape.in + 4 * shape.tokens + 4);
  }
}

}  // namespace
}  // namespace numsim
