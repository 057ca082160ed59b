// Epilogues of GEMMs against a loop over the elements, and what cuBLASLt was found to do.
#include "numsim/gemm/epilogue.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "tests/gemm/scaled_by_hand.h"

namespace numsim {
namespace {

// A GEMM of float32 values with scales.
struct Problem {
  size_t rows = 5, columns = 7, inner = 24;
  std::vector<float> x, y, sx, sy;
  GemmOperand a, b;

  explicit Problem(size_t segment, bool transposed = false) {
    x.resize(rows * inner);
    y.resize(columns * inner);
    FillNormal({.seed = 5, .stream = 1}, 0, x);
    FillNormal({.seed = 5, .stream = 2}, 0, y);
    const size_t segments = segment == 0 ? 1 : inner / segment;
    sx.resize(rows * segments);
    sy.resize(columns * segments);
    FillNormal({.seed = 5, .stream = 3}, 0, sx);
    FillNormal({.seed = 5, .stream = 4}, 0, sy);
    const FormatSpec fp32 = ParseFormat("fp32").spec;
    a = {.format = fp32, .values = x, .rows = rows, .inner = inner, .transposed = transposed};
    b = {.format = fp32, .values = y, .rows = columns, .inner = inner};
    a.scales = {.data = sx, .row_stride = segments, .segment = segment, .segment_stride = 1};
    b.scales = {.data = sy, .row_stride = segments, .segment = segment, .segment_stride = 1};
  }
  float X(size_t i, size_t k) const { return x[a.transposed ? k * rows + i : i * inner + k]; }
};

TEST(Epilogue, EqualsALoopOverTheElements) {
  for (const size_t segment : {size_t{0}, size_t{8}}) {
    for (const bool transposed : {false, true}) {
      const Problem p(segment, transposed);
      for (const Epilogue epilogue : {Epilogue::kFloat32Product,
                                      Epilogue::kFloat32LeftFirst,
                                      Epilogue::kFloat32RightFirst,
                                      Epilogue::kCublasLt}) {
        std::vector<float> out(p.rows * p.columns);
        Gemm(p.a, p.b, ParseAccumulationMode("fp32"), epilogue, out);
        const size_t length = segment == 0 ? p.inner : segment;
        for (size_t i = 0; i < p.rows; ++i) {
          for (size_t j = 0; j < p.columns; ++j) {
            float expected = 0;
            for (size_t s = 0; s * length < p.inner; ++s) {
              float sum = 0;
              for (size_t k = s * length; k < (s + 1) * length; ++k) {
                sum = std::fma(p.X(i, k), p.y[j * p.inner + k], sum);
              }
              const float t = ScaledByHand(sum, p.a.scales.At(i, s), p.b.scales.At(j, s), epilogue);
              expected = s == 0 ? t : expected + t;
            }
            ASSERT_EQ(out[i * p.columns + j], expected) << ToString(epilogue) << i << j;
          }
        }
      }
    }
  }
}

TEST(Epilogue, Float64IsThePlainGemm) {
  const Problem p(8);
  std::vector<float> plain(35), other(35);
  Gemm(p.a, p.b, ParseAccumulationMode("exact"), plain);
  Gemm(p.a, p.b, ParseAccumulationMode("exact"), Epilogue::kFloat64, other);
  EXPECT_EQ(plain, other);
}

// With one scale per operand cuBLASLt multiplies the scales first, and a zero becomes +0.
TEST(Epilogue, CublasLtDependsOnTheNumberOfScales) {
  const float one = 1, minus = -0x1.234566p0f, third = 0x1.555556p-2f;
  const float zero = 0;
  const FormatSpec fp32 = ParseFormat("fp32").spec;
  const auto gemm = [&](const float& x, bool per_row) {
    GemmOperand a{.format = fp32, .values = {&x, 1}, .rows = 1, .inner = 1};
    GemmOperand b{.format = fp32, .values = {&one, 1}, .rows = 1, .inner = 1};
    a.scales = {.data = {&minus, 1}, .row_stride = per_row ? size_t{1} : 0};
    b.scales = {.data = {&third, 1}, .row_stride = per_row ? size_t{1} : 0};
    float out = 0;
    Gemm(a, b, ParseAccumulationMode("fp32"), Epilogue::kCublasLt, {&out, 1});
    return out;
  };
  EXPECT_FALSE(std::signbit(gemm(zero, false)));
  EXPECT_TRUE(std::signbit(gemm(zero, true)));
  bool differ = false;
  for (int i = 0; i < 40; ++i) {
    const float value = 1 + static_cast<float>(i) * 0x1.5p-7f;
    EXPECT_EQ(gemm(value, false), ScaledByHand(value, minus, third, Epilogue::kFloat32Product));
    EXPECT_EQ(gemm(value, true), ScaledByHand(value, minus, third, Epilogue::kFloat32RightFirst));
    differ = differ || gemm(value, false) != gemm(value, true);
  }
  EXPECT_TRUE(differ);
}

TEST(Epilogue, NamesAreParsed) {
  for (const char* const name :
       {"float64", "float32:ab", "float32:a,b", "float32:b,a", "cublaslt"}) {
    EXPECT_EQ(ToString(ParseEpilogue(name)), name);
  }
  EXPECT_THROW(ParseEpilogue("float32"), Error);
}

TEST(Epilogue, SizesThatDoNotFitThrow) {
  const Problem p(0);
  std::vector<float> out(34);
  EXPECT_THROW(Gemm(p.a, p.b, ParseAccumulationMode("fp32"), Epilogue::kCublasLt, out), Error);
}

}  // namespace
}  // namespace numsim
