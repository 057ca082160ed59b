// The two-level scales of NVFP4 (ScaleRule::kNvfp4) against the oracle of conversions and loops over
// the elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/internal/two_levels_simd.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "tests/reference/linear/naive_linear.h"
#include "tests/reference/oracle.h"
#include "tests/support/every_backend.h"
#include "tests/support/quantized_codes.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

QuantizeOptions Nvfp4(std::string_view layout = "block:16") {
  QuantizeOptions options;
  options.format = ParseFormat("e2m1fn").spec;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = ScaleRule::kNvfp4;
  return options;
}

// Normal numbers whose magnitude changes by 2^24 from block to block, so that the scales of some
// blocks are subnormals of e4m3fn or round to zero.
std::vector<float> UnevenBlocks(MatrixShape shape) {
  std::vector<float> x(shape.Elements());
  FillNormal({.seed = 11, .stream = 2}, 0, x);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::ldexp(x[i], -static_cast<int>(i / 16 * 7 % 25));
  }
  return x;
}

float RoundToE4m3(float x) {
  const oracle::Setting saturating{.policy = oracle::Policy::kSaturate};
  return oracle::RoundFloat32(oracle::GridOf("e4m3fn"), x, saturating, 0);
}

// A tensor of largest magnitude 448 * 6 has the scale 1, so scales are rounded sixths of maxima.
TEST(Nvfp4, ScalesOfGroupsAreRoundedToE4m3fn) {
  const ScaleFactory maker =
      ScaleFactory(ParseFormat("e2m1fn").spec, ScaleRule::kNvfp4).ForTensor(448 * 6);
  EXPECT_EQ(maker.TensorScale(), 1.0f);
  for (uint32_t upper = 0; upper < 0x7F80u; ++upper) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0xFFFFu}) {
      const auto absmax = std::bit_cast<float>(upper << 16 | lower);
      const Scale made = maker(absmax);
      ASSERT_EQ(made.scale, RoundToE4m3(absmax / 6)) << absmax;
      ASSERT_EQ(made.inv_scale, made.scale == 0 ? 0 : 1 / made.scale) << absmax;
    }
  }
}

TEST(Nvfp4, ScaleOfTheTensorMapsItsMaximumToTheLargestScale) {
  for (float absmax = 0x1p-100f; absmax < 0x1p100f; absmax *= 1.7f) {
    const ScaleFactory maker =
        ScaleFactory(ParseFormat("e2m1fn").spec, ScaleRule::kNvfp4).ForTensor(absmax);
    EXPECT_EQ(maker.TensorScale(), 1 / (2688 / absmax)) << absmax;
    EXPECT_EQ(maker(absmax).scale, 448 * maker.TensorScale()) << absmax;
    EXPECT_EQ(MakeScale(ParseFormat("e2m1fn").spec, absmax, ScaleRule::kNvfp4).scale,
              maker(absmax).scale)
        << absmax;
  }
}

// Tensors whose scale is a subnormal of float32 or near its largest number too; all lengths about those of
// vectors, in place and apart.
TEST(Nvfp4, ManyScalesAreThoseOfOneOnEveryBackend) {
  std::vector<float> absmax;
  for (uint32_t upper = 0; upper < 0x7F80u; upper += 3) {
    for (const uint32_t lower : {0x0000u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
      absmax.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  const FormatSpec e2m1 = ParseFormat("e2m1fn").spec;
  for (const ScaleRule rule :
       {ScaleRule::kNvfp4, ScaleRule::kNvfp4Inverse, ScaleRule::kNvfp4Row, ScaleRule::kMsEden}) {
    for (const float tensor : {0.0f, 0x1p-149f, 0x1.8p-127f, 0.7f, 2688.0f, 0x1.7p100f, kMost}) {
      const ScaleFactory maker = ScaleFactory(e2m1, rule).ForTensor(tensor);
      std::vector<float> expected, inverses;
      for (const float a : absmax) {
        expected.push_back(maker(a).scale);
        inverses.push_back(maker(a).inv_scale);
      }
      WithEachBackend([&] {
        std::vector<float> scales(absmax.size()), inv_scales(absmax.size());
        MakeTwoLevelScales(maker, absmax.data(), absmax.size(), scales.data(), inv_scales.data());
        ASSERT_EQ(scales, expected) << ToString(rule) << " " << tensor;
        ASSERT_EQ(inv_scales, inverses) << ToString(rule) << " " << tensor;
        for (size_t n = 0; n < 40; ++n) {
          std::vector<float> in_place(absmax.begin() + 4000, absmax.begin() + 4041);
          std::vector<float> inverse(n + 1, 5.0f);
          MakeTwoLevelScales(maker, in_place.data(), n, in_place.data(), inverse.data());
          ASSERT_TRUE(std::equal(in_place.begin(), in_place.begin() + n, &expected[4000])) << n;
          ASSERT_TRUE(std::equal(inverse.begin(), inverse.begin() + n, &inverses[4000])) << n;
          ASSERT_EQ(in_place[n], absmax[4000 + n]);
          ASSERT_EQ(inverse[n], 5.0f);
        }
      });
    }
  }
}

// Numbers of bf16 under maxima of bf16, of which some are ties of one order of operations alone.
TEST(Nvfp4, InverseMultipliesWhereNvfp4Divides) {
  const FormatSpec e2m1 = ParseFormat("e2m1fn").spec;
  size_t different = 0, scales = 0;
  for (uint32_t most = 0x4080; most < 0x4180; ++most) {
    const auto tensor = std::bit_cast<float>(most << 16);
    const float encode = 2688 / tensor, sixth = 1.0f / 6;
    const ScaleFactory divides = ScaleFactory(e2m1, ScaleRule::kNvfp4).ForTensor(tensor);
    const ScaleFactory multiplies = ScaleFactory(e2m1, ScaleRule::kNvfp4Inverse).ForTensor(tensor);
    EXPECT_EQ(multiplies.TensorScale(), divides.TensorScale());
    for (uint32_t bits = 0x3E80; bits <= most; ++bits) {
      const auto absmax = std::bit_cast<float>(bits << 16);
      const float factor = encode * sixth;
      const Scale made = multiplies(absmax);
      ASSERT_EQ(made.scale, RoundToE4m3(absmax * factor) * (1 / encode)) << tensor << " " << absmax;
      ASSERT_EQ(made.inv_scale, 1 / made.scale);
      different += made.scale != divides(absmax).scale ? 1 : 0;
      ++scales;
    }
  }
  EXPECT_GT(different, 0u);
  EXPECT_LT(different, scales / 50);
}

TEST(Nvfp4, QuotientsBeyondFloat32AreItsLargestValue) {
  const ScaleFactory maker = ScaleFactory(ParseFormat("e2m1fn").spec, ScaleRule::kNvfp4)
                                 .ForTensor(std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(maker.TensorScale(), 1 / kMost);
  const Scale made = maker(std::numeric_limits<float>::denorm_min());
  EXPECT_LE(made.inv_scale, kMost);
  EXPECT_GE(made.inv_scale, 0);
}

void ExpectReference(const std::vector<float>& x,
                     MatrixShape shape,
                     const QuantizeOptions& options,
                     const naive::Group& group) {
  const naive::Operand expected = naive::Quantised(
      {shape.rows, shape.cols, x}, {.format = "e2m1fn", .group = group, .rule = ScaleRule::kNvfp4});
  const QuantizedMatrix matrix = Quantize(HostMatrix(x, shape), options);
  std::vector<float> values(x.size());
  DecodeCodes(matrix, HostMatrix(std::span(values), shape));
  size_t zeros = 0;
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t c = 0; c < shape.cols; ++c) {
      const size_t i = r * shape.cols + c;
      const float scale = matrix.Scales()[options.layout.Index(r, c, shape.cols)];
      ASSERT_EQ(scale, expected.scales.data[i]) << r << " " << c;
      ASSERT_EQ(values[i], expected.values.data[i]) << r << " " << c;
      zeros += scale == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(zeros, 0u) << "no scale rounds to zero, which is a case to be tested";
}

void ExpectReferenceOfEachLayout() {
  for (const MatrixShape shape : {MatrixShape{37, 16}, MatrixShape{5, 100}, MatrixShape{64, 80}}) {
    const std::vector<float> x = UnevenBlocks(shape);
    ExpectReference(x, shape, Nvfp4("block:16"), naive::Tiles(1, 16));
    ExpectReference(x, shape, Nvfp4("block:5"), naive::Tiles(1, 5));
  }
  std::vector<float> x = UnevenBlocks({64, 80});
  for (size_t i = 0; i < 32 * 80; ++i) x[i] = std::ldexp(x[i], -30);
  ExpectReference(x, {64, 80}, Nvfp4("tile:16x16"), naive::Tiles(16, 16));
  ExpectReference(x, {64, 80}, Nvfp4("row"), naive::EachRow());
}

TEST(Nvfp4, QuantisesAsTheDefinitionSaysOnEveryBackend) {
  WithEachBackend([] { ExpectReferenceOfEachLayout(); });
}

TEST(Nvfp4, InfinityAndNanDoNotSpoilTheScaleOfTheTensor) {
  std::vector<float> x(64, 1.0f);
  x[3] = kInfinity;
  x[20] = kNaN;
  x[40] = -6.0f;
  const QuantizedMatrix matrix = Quantize(HostMatrix(x, {4, 16}), Nvfp4());
  const float tensor = 1 / (2688 / 6.0f);
  EXPECT_EQ(matrix.Scales()[2], 448 * tensor);
  EXPECT_EQ(matrix.Scales()[0], RoundToE4m3(1.0f / 6 * (2688 / 6.0f)) * tensor);
}

// Groups over all of e4m3fn's numbers, in tensors whose largest magnitudes reach from one of whose
// scale is below float32's normal numbers to nearly its largest number.
TEST(Nvfp4, LevelsOfScalesGiveTheScales) {
  for (int exponent = -140; exponent <= 126; ++exponent) {
    std::vector<float> x(size_t{128} * 16, 0.0f);
    for (uint32_t code = 0; code < 127; ++code) {
      x[size_t{16} * code] = std::ldexp(Decode(kE4M3fn, code) / 448 * 1.9f, exponent);
    }
    const QuantizedMatrix matrix = Quantize(HostMatrix(x, {128, 16}), Nvfp4());
    const float absmax = *std::ranges::max_element(x);
    const float encode = std::min(2688 / absmax, kMost);
    const float tensor = matrix.tensor_scale.Span()[0];
    ASSERT_EQ(tensor, 1 / encode) << exponent;
    const std::vector<uint8_t> codes = GroupScaleCodes(matrix);
    for (size_t i = 0; i < codes.size(); ++i) {
      const float group = Decode(kE4M3fn, codes[i]);
      ASSERT_EQ(group, RoundToE4m3(x[16 * i] / 6 * encode)) << exponent << " " << i;
      ASSERT_EQ(group * tensor, matrix.Scales()[i]) << exponent << " " << i;
    }
  }
}

TEST(Nvfp4, OneLevelOfScalesHasNoCodesOfScales) {
  const std::vector<float> x(16, 1.0f);
  QuantizedMatrix matrix = Quantize(HostMatrix(x, {1, 16}), Nvfp4());
  EXPECT_EQ(GroupScaleCodes(matrix).size(), 1u);
  QuantizeOptions options = Nvfp4();
  options.scale_rule = ScaleRule::kAbsmax;
  QuantizeInto(HostMatrix(x, {1, 16}), options, matrix);
  EXPECT_THROW(GroupScaleCodes(matrix), Error);
}

TEST(Nvfp4, ATensorOfZerosIsZeros) {
  const std::vector<float> x(32, -0.0f);
  const QuantizedMatrix matrix = Quantize(HostMatrix(x, {2, 16}), Nvfp4());
  std::vector<float> out(32, 1.0f);
  Dequantize(matrix, out);
  EXPECT_TRUE(std::ranges::all_of(out, [](float y) { return y == 0 && std::signbit(y); }));
}

TEST(Nvfp4, WhatAScaleOfZeroLosesIsUnderflow) {
  std::vector<float> x(32, 1.0f);
  std::fill(x.begin() + 16, x.end(), 0x1p-30f);
  const ErrorMeasures errors = QuantizationError(x, {2, 16}, Nvfp4());
  EXPECT_EQ(errors.underflow, 16u);
  EXPECT_EQ(errors.overflow, 0u);
}

TEST(Nvfp4, FakeQuantizeIsDequantiseAfterQuantise) {
  const MatrixShape shape{33, 48};
  const std::vector<float> x = UnevenBlocks(shape);
  std::vector<float> expected(x.size()), out(x.size());
  const QuantizedMatrix matrix = Quantize(HostMatrix(x, shape), Nvfp4());
  Dequantize(matrix, expected);
  EXPECT_EQ(FakeQuantize(x, shape, Nvfp4(), out), ScalesOf(matrix));
  EXPECT_EQ(out, expected);
}

// A view of a quantised matrix in memory of somebody else multiplies as the matrix does.
TEST(QuantizedSpan, IsTheSameOperandAsItsMatrix) {
  const MatrixShape shape{24, 32};
  const std::vector<float> x = UnevenBlocks(shape);
  for (const char* layout : {"tensor", "row", "block:16", "tile:8x8"}) {
    const QuantizedMatrix matrix = Quantize(HostMatrix(x, shape), Nvfp4(layout));
    const QuantizedSpan span{
        matrix.format, shape, matrix.layout, matrix.codes.View(), matrix.scales.View()};
    const AccumulationMode mode = ParseAccumulationMode("fp32");
    std::vector<float> expected(shape.rows * shape.rows), product(expected.size());
    Gemm(AsOperand(matrix, false), AsOperand(matrix, false), mode, std::span(expected));
    Gemm(AsOperand(span, false), AsOperand(span, false), mode, std::span(product));
    EXPECT_EQ(product, expected) << layout;
    if (std::string_view(layout) == "row") continue;
    std::vector<float> inner(shape.cols * shape.cols), inner_of_span(inner.size());
    Gemm(AsOperand(matrix, true), AsOperand(matrix, true), mode, std::span(inner));
    Gemm(AsOperand(span, true), AsOperand(span, true), mode, std::span(inner_of_span));
    EXPECT_EQ(inner_of_span, inner) << layout;
  }
}

}  // namespace
}  // namespace numsim
