// int8 SwitchBack on 2 x 2 matrices, worked out on paper.
#include <gtest/gtest.h>

#include "tests/linear/linear_problem.h"

namespace numsim {
namespace {

// Codes are round(127 / state * x), Eq. 1 of [SwitchBack].
//   X   2  1    state 2   codes  127   64  (63.5 is a tie)      G   8 -8   state 8   127 -127
//      -4  4    state 4         -127  127                           1  3   state 3    42  127
//   W   1  1/2  state 1   codes  127   64
//    -1/4  1/8                   -32   16  (-31.75, 15.875)
const LinearProblem& ByHand() {
  static const LinearProblem problem = {{2, 2, {2.0f, 1.0f, -4.0f, 4.0f}},
                                        {2, 2, {1.0f, 0.5f, -0.25f, 0.125f}},
                                        {2, 2, {8.0f, -8.0f, 1.0f, 3.0f}}};
  return problem;
}

// The integer sum times both states over 127^2 (Eq. 2).
float Dequantised(int sum, float state_row, float state_tensor) {
  const float a = state_row / 127, b = state_tensor / 127;
  return static_cast<float>(sum * (static_cast<double>(a) * b));
}

LinearOptions Int8(const char* kind) {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = "fp32";
  return options;
}

TEST(LinearByHand, SwitchBackForwardIsEquation2) {
  const naive::Results r = Step(Int8("switchback"), ByHand());
  EXPECT_EQ(r.y.data,
            (std::vector<float>{Dequantised(127 * 127 + 64 * 64, 2, 1),    // 20225
                                Dequantised(127 * -32 + 64 * 16, 2, 1),    // -3040
                                Dequantised(-127 * 127 + 127 * 64, 4, 1),  // -8001
                                Dequantised(-127 * -32 + 127 * 16, 4, 1)}));
  EXPECT_NEAR(r.y.data[0], 1.0 / (127 * 127) * 2 * 20225, 1e-6);
}

// Algorithm 1 prints state_X in the line of X_gradient; the rows of that product are those of G.
TEST(LinearByHand, SwitchBackInputGradientIsScaledByTheStateOfG) {
  const std::vector<float> by_state_g = {Dequantised(127 * 127 + -127 * -32, 8, 1),  // 20193
                                         Dequantised(127 * 64 + -127 * 16, 8, 1),    // 6096
                                         Dequantised(42 * 127 + 127 * -32, 3, 1),    // 1270
                                         Dequantised(42 * 64 + 127 * 16, 3, 1)};     // 4720
  for (const char* kind : {"switchback", "switchback-m"}) {
    EXPECT_EQ(Step(Int8(kind), ByHand()).dx.data, by_state_g) << kind;
  }
  // dX is near G W = (10, 3; 0.25, 0.875); under state_X it would be a quarter of the first row.
  EXPECT_NEAR(by_state_g[0], 10.0, 0.05);
  EXPECT_NEAR(by_state_g[3], 0.875, 0.02);
}

// G scaled by 4096 scales dX by 4096, bit for bit: the state of G follows, no other does.
TEST(LinearByHand, TheInputGradientIsProportionalToG) {
  LinearProblem larger = ByHand();
  for (float& g : larger.g.data) g *= 4096;
  for (const char* kind : {"switchback", "switchback-m", "switchback-q", "llm-int8"}) {
    naive::Results expected = Step(Int8(kind), ByHand());
    for (float& dx : expected.dx.data) dx *= 4096;
    for (float& dw : expected.dw.data) dw *= 4096;
    ExpectSameBits(Step(Int8(kind), larger), expected);
  }
}

// dW = G^T X = (12, 12; -4, 4) is exact in high precision.
TEST(LinearByHand, SwitchBackWeightGradientIsNotQuantised) {
  const std::vector<float> exact = {8 * 2 + 1 * -4, 8 * 1 + 1 * 4, -8 * 2 + 3 * -4, -8 * 1 + 3 * 4};
  for (const char* high_precision : {"fp32", "bf16", "fp16"}) {
    LinearOptions options = Int8("switchback");
    options.high_precision = high_precision;
    EXPECT_EQ(Step(options, ByHand()).dw.data, exact) << high_precision;
    options.kind = "switchback-q";
    EXPECT_EQ(Step(options, ByHand()).dw.data, exact) << high_precision;
  }
  // SwitchBackM sees the codes of X: 64 / 127 * 2 for the 1.
  const float one = 64.0f * (2.0f / 127), two = 127.0f * (2.0f / 127), four = 127.0f * (4.0f / 127);
  const std::vector<float> from_codes = {std::fma(1.0f, -four, 8 * two),
                                         std::fma(1.0f, four, 8 * one),
                                         std::fma(3.0f, -four, -8 * two),
                                         std::fma(3.0f, four, -8 * one)};
  EXPECT_EQ(Step(Int8("switchback-m"), ByHand()).dw.data, from_codes);
}

// Column-wise codes of G: columns (8, 1) and (-8, 3); of X: (2, -4) and (1, 4).
TEST(LinearByHand, LlmInt8WeightGradientHasAStateForEachColumn) {
  const auto scaled = [](int sum, float column_g, float column_x) {
    return Dequantised(sum, column_g, column_x);
  };
  // 127/8 = 15.875: 16; 127/8 * 3 = 47.6: 48; 127/4 * 2 = 63.5: 64; 127/4 = 31.75: 32.
  EXPECT_EQ(Step(Int8("llm-int8"), ByHand()).dw.data,
            (std::vector<float>{scaled(127 * 64 + 16 * -127, 8, 4),
                                scaled(127 * 32 + 16 * 127, 8, 4),
                                scaled(-127 * 64 + 48 * -127, 8, 4),
                                scaled(-127 * 32 + 48 * 127, 8, 4)}));
}

}  // namespace
}  // namespace numsim
