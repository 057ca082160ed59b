#include "numsim/quantize/quantized_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"
#include "tests/support/quantized_codes.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

QuantizeOptions Options(std::string_view format,
                        std::string_view layout,
                        ScaleRule rule = ScaleRule::kAbsmax) {
  QuantizeOptions options;
  options.format = ParseFormat(format).spec;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = rule;
  return options;
}

std::vector<float> Normals(size_t n, float scale) {
  std::vector<float> draws(n);
  FillNormal({.seed = 3, .stream = 4}, 0, draws);
  for (float& x : draws) x *= scale;
  return draws;
}

// Eq. 1 of [SwitchBack]: round(127 / absmax * x), worked out by hand.
TEST(QuantizedMatrix, Int8CodesAreTheRoundedShareOfTheRowsMaximum) {
  const std::vector<float> in = {1.0f,
                                 -2.0f,
                                 0.5f,
                                 0.25f,  //
                                 127.0f,
                                 63.4f,
                                 -1.6f,
                                 -0.4f,  //
                                 0.0f,
                                 0.0f,
                                 -0.0f,
                                 0.0f,  //
                                 0.01f,
                                 0.02f,
                                 0.03f,
                                 -0.04f};
  const QuantizedMatrix matrix = Quantize(HostMatrix(in, {4, 4}), Options("int8", "row"));
  const auto code = [](int x) { return static_cast<uint8_t>(x); };
  // 127 / 2 * 1 = 63.5: a tie, to even; 31.75; 15.875.  31.75, 63.5 (tie), 95.25.
  EXPECT_EQ(Codes8Of(matrix),
            (std::vector<uint8_t>{code(64),
                                  code(-127),
                                  code(32),
                                  code(16),  //
                                  code(127),
                                  code(63),
                                  code(-2),
                                  code(0),  //
                                  code(0),
                                  code(0),
                                  code(0),
                                  code(0),  //
                                  code(32),
                                  code(64),
                                  code(95),
                                  code(-127)}));
  EXPECT_EQ(ScalesOf(matrix), (std::vector<float>{2.0f / 127, 1.0f, 1.0f, 0.04f / 127}));
  EXPECT_TRUE(Codes16Of(matrix).empty());
}

TEST(QuantizedMatrix, AnAllZeroScaleIsOneAndGivesZeros) {
  for (const char* layout : {"tensor", "row", "column", "block:3", "tile:2x1", "tile:2x3"}) {
    for (ScaleRule rule : {ScaleRule::kAbsmax, ScaleRule::kPow2Ceil, ScaleRule::kE8m0}) {
      const QuantizeOptions options = Options("e4m3fn", layout, rule);
      const std::vector<float> in(12, 0.0f);
      const QuantizedMatrix matrix = Quantize(HostMatrix(in, {3, 4}), options);
      EXPECT_EQ(Codes8Of(matrix), std::vector<uint8_t>(12, 0)) << layout;
      EXPECT_EQ(ScalesOf(matrix), std::vector<float>(options.layout.Count(3, 4), 1.0f)) << layout;
    }
  }
}

TEST(QuantizedMatrix, TheLargestElementOfARowBecomesTheLargestValue) {
  const std::vector<float> in = Normals(40 * 33, 0.37f);
  for (const FormatEntry& entry : FormatTable()) {
    if (entry.spec.Bits() > 8 || !entry.spec.IsSigned()) continue;
    const QuantizedMatrix matrix = Quantize(HostMatrix(in, {40, 33}), Options(entry.name, "row"));
    for (size_t r = 0; r < 40; ++r) {
      size_t largest = 33 * r;
      for (size_t i = 33 * r; i < 33 * (r + 1); ++i) {
        if (std::abs(in[i]) > std::abs(in[largest])) largest = i;
      }
      const float value = Decode(entry.spec, Codes8Of(matrix)[largest]);
      EXPECT_EQ(value, std::copysign(MaxFinite(entry.spec), in[largest])) << entry.name;
    }
  }
}

TEST(QuantizedMatrix, NanAndInfinityDoNotSpoilTheirRow) {
  const std::vector<float> in = {1.0f,
                                 kNaN,
                                 -2.0f,
                                 kInfinity,  //
                                 1.0f,
                                 0.0f,
                                 -2.0f,
                                 -kInfinity,
                                 kNaN,
                                 kInfinity,
                                 kNaN,
                                 0.0f};
  const QuantizedMatrix matrix = Quantize(HostMatrix(in, {3, 4}), Options("e4m3fn", "row"));
  EXPECT_EQ(ScalesOf(matrix), (std::vector<float>{2.0f / 448, 2.0f / 448, 1.0f}));
  std::vector<float> out(12);
  Dequantize(matrix, out);
  EXPECT_EQ(out[0], 224.0f * (2.0f / 448));
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(out[2], -448.0f * (2.0f / 448));
  EXPECT_EQ(out[3], 448.0f * (2.0f / 448));  // saturates
  EXPECT_EQ(out[7], -448.0f * (2.0f / 448));
  EXPECT_TRUE(std::isnan(out[8]));
  EXPECT_EQ(out[9], 448.0f);
  EXPECT_EQ(out[11], 0.0f);
}

TEST(QuantizedMatrix, Int8IsOffByAtMostHalfAStep) {
  for (const char* layout : {"tensor", "row", "column", "block:16", "tile:16x1", "tile:10x10"}) {
    const std::vector<float> in = Normals(64 * 48, 5.0f);
    const QuantizeOptions options = Options("int8", layout);
    const QuantizedMatrix matrix = Quantize(HostMatrix(in, {64, 48}), options);
    std::vector<float> out(in.size());
    Dequantize(matrix, out);
    for (size_t i = 0; i < in.size(); ++i) {
      const float step = ScalesOf(matrix)[options.layout.Index(i / 48, i % 48, 48)];
      // The products before and after the rounding are rounded themselves.
      EXPECT_LE(std::abs(out[i] - in[i]), step * 0.5001f) << layout << " " << in[i];
    }
  }
}

TEST(QuantizedMatrix, E4m3NormalsAreOffByAtMostHalfAnUlpOfThemselves) {
  const std::vector<float> in = Normals(64 * 48, 5.0f);
  const QuantizeOptions options = Options("e4m3fn", "row");
  const QuantizedMatrix matrix = Quantize(HostMatrix(in, {64, 48}), options);
  std::vector<float> out(in.size());
  Dequantize(matrix, out);
  size_t normals = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const float scale = ScalesOf(matrix)[i / 48];
    if (std::abs(in[i]) < 1.001f * MinNormal(options.format) * scale) continue;
    ++normals;
    EXPECT_LE(std::abs(out[i] - in[i]), std::abs(in[i]) * 0x1.0001p-4f) << in[i];
  }
  EXPECT_GT(normals, in.size() / 2);
}

TEST(QuantizedMatrix, SixteenBitFormatsTakeSixteenBitCodes) {
  const std::vector<float> in = {1.0f, -2.0f};
  const QuantizedMatrix matrix =
      Quantize(HostMatrix(in, {1, 2}), Options("bf16", "tensor", ScaleRule::kNone));
  EXPECT_EQ(Codes16Of(matrix), (std::vector<uint16_t>{0x3F80, 0xC000}));
  EXPECT_TRUE(Codes8Of(matrix).empty());
}

TEST(QuantizedMatrix, TransposedHoldsTheSameCodesAndScales) {
  const std::vector<float> in = Normals(67 * 130, 1.0f);
  for (const char* layout : {"tensor", "row", "column", "block:32", "tile:32x1", "tile:9x20"}) {
    QuantizeOptions options = Options("e4m3fn", layout);
    options.rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
    const QuantizedMatrix plain = Quantize(HostMatrix(in, {67, 130}), options);
    options.order = CodeOrder::kTransposed;
    const QuantizedMatrix transposed = Quantize(HostMatrix(in, {67, 130}), options);
    EXPECT_EQ(transposed.order, CodeOrder::kTransposed);
    EXPECT_EQ(ScalesOf(transposed), ScalesOf(plain));
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(Codes8Of(transposed)[i % 130 * 67 + i / 130], Codes8Of(plain)[i])
          << layout << " " << i;
    }
  }
}

TEST(QuantizedMatrix, FakeQuantizeIsQuantizeThenDequantize) {
  const std::vector<float> in = Normals(37 * 90, 2.0f);
  for (const char* format : {"int8", "e4m3fn", "e2m1fn", "fp16"}) {
    for (const char* layout : {"tensor", "row", "column", "block:32", "tile:32x1", "tile:9x20"}) {
      const QuantizeOptions options = Options(format, layout, ScaleRule::kPow2Floor);
      const QuantizedMatrix matrix = Quantize(HostMatrix(in, {37, 90}), options);
      std::vector<float> apart(in.size()), at_once(in.size());
      Dequantize(matrix, apart);
      EXPECT_EQ(FakeQuantize(in, {37, 90}, options, at_once), ScalesOf(matrix));
      EXPECT_EQ(at_once, apart) << format << " " << layout;
    }
  }
}

// Scales and codes are made a few rows at a time where scales allow it. Long and short rows, tiles
// that end inside the matrix, and draws that go on from band to band.
TEST(QuantizedMatrix, EqualsScalesOfTheWholeMatrixThenCodesOfTheWholeMatrix) {
  const ExecutionState state;
  for (const MatrixShape shape : {MatrixShape{37, 9000}, {300, 100}, {1000, 7}, {1, 50}}) {
    const std::vector<float> in = Normals(shape.Elements(), 2.0f);
    for (const char* layout : {"tensor", "row", "column", "block:32", "tile:8x1", "tile:30x64"}) {
      QuantizeOptions options = Options("e4m3fn", layout);
      options.rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
      options.random = {{.seed = 5, .stream = 6}, 77};
      std::vector<float> scales(options.layout.Count(shape.rows, shape.cols));
      Absmax(HostMatrix(in, shape), options.layout, scales);
      std::vector<float> inv_scales;
      for (float& scale : scales) {
        const Scale made = MakeScale(options.format, scale, options.scale_rule);
        inv_scales.push_back(made.inv_scale);
        scale = made.scale;
      }
      std::vector<uint8_t> codes(in.size());
      const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
      Quantize(plan,
               HostMatrix(in, shape),
               options.layout,
               inv_scales,
               std::span(codes),
               options.random);
      for (const int threads : {1, 3}) {
        SetThreadCount(threads);
        const QuantizedMatrix matrix = Quantize(HostMatrix(in, shape), options);
        EXPECT_EQ(ScalesOf(matrix), scales) << layout << ", rows of " << shape.cols;
        EXPECT_EQ(Codes8Of(matrix), codes) << layout << ", rows of " << shape.cols;
      }
    }
  }
}

TEST(QuantizedMatrix, UnderAGivenScaleTheMatrixItselfDoesNotMatter) {
  const std::vector<float> in = {1.0f, -3.0f, 1000.0f, 0.26f, kNaN, -kInfinity};
  QuantizeOptions options = Options("int8", "tensor");
  QuantizedMatrix matrix;
  QuantizeUnder(Scale{0.5f, 2.0f}, HostMatrix(std::span<const float>(in), {2, 3}), options, matrix);
  EXPECT_EQ(ScalesOf(matrix), std::vector<float>{0.5f});
  EXPECT_EQ(Codes8Of(matrix), (std::vector<uint8_t>{2, 0xFA, 127, 1, 127, 0x81}));
  options.order = CodeOrder::kTransposed;
  QuantizedMatrix transposed;
  QuantizeUnder(
      Scale{0.5f, 2.0f}, HostMatrix(std::span<const float>(in), {2, 3}), options, transposed);
  EXPECT_EQ(transposed.order, CodeOrder::kTransposed);
  EXPECT_EQ(Codes8Of(transposed), (std::vector<uint8_t>{2, 1, 0xFA, 127, 127, 0x81}));
}

TEST(QuantizedMatrix, AGivenScaleIsForTheWholeTensor) {
  const std::vector<float> in(6, 1.0f);
  QuantizedMatrix matrix;
  EXPECT_EQ(ErrorOf([&] {
              QuantizeUnder(Scale{},
                            HostMatrix(std::span<const float>(in), {2, 3}),
                            Options("int8", "row"),
                            matrix);
            }),
            "QuantizeUnder: one scale for the layout row, expected tensor");
}

TEST(QuantizedMatrix, MemoryThatIsUsedAgainHoldsNothingOfBefore) {
  QuantizedMatrix matrix;
  for (const char* const format : {"int8", "bf16", "e4m3fn", "fp16"}) {
    for (const char* const layout : {"row", "tensor", "column", "block:2"}) {
      for (const MatrixShape shape : {MatrixShape{3, 4}, MatrixShape{2, 3}, MatrixShape{0, 5}}) {
        std::vector<float> in(shape.Elements());
        for (size_t i = 0; i < in.size(); ++i) in[i] = 0.3f * static_cast<float>(i) - 1;
        QuantizeOptions options = Options(format, layout);
        options.order = shape.rows == 2 ? CodeOrder::kTransposed : CodeOrder::kInput;
        QuantizeInto(HostMatrix(in, shape), options, matrix);
        const QuantizedMatrix fresh = Quantize(HostMatrix(in, shape), options);
        EXPECT_EQ(Codes8Of(matrix), Codes8Of(fresh)) << format << layout;
        EXPECT_EQ(Codes16Of(matrix), Codes16Of(fresh)) << format << layout;
        EXPECT_EQ(ScalesOf(matrix), ScalesOf(fresh)) << format << layout;
        EXPECT_EQ(matrix.order, fresh.order);
      }
    }
  }
}

// Code and scale of element k of vector `row`, as gemm.h states them.
struct OperandElement {
  uint32_t code;
  float scale;
};

OperandElement ElementOf(const GemmOperand& operand, size_t row, size_t k) {
  const size_t at = operand.transposed ? k * operand.rows + row : row * operand.inner + k;
  const size_t segment = operand.scales.segment == 0 ? 0 : k / operand.scales.segment;
  const uint32_t code = operand.codes8.Empty() ? operand.codes16.data[at] : operand.codes8.data[at];
  return {code, operand.scales.At(row, segment)};
}

// An operand by rows or by columns, stored either way, has the codes and scales of the matrix.
void CheckOperand(const char* format, const char* layout, bool stored_transposed, bool by_columns) {
  constexpr MatrixShape kShape{67, 45};
  const std::vector<float> in = Normals(kShape.Elements(), 1.0f);
  QuantizeOptions options = Options(format, layout);
  const QuantizedMatrix plain = Quantize(HostMatrix(in, kShape), options);
  options.order = stored_transposed ? CodeOrder::kTransposed : CodeOrder::kInput;
  const QuantizedMatrix matrix = Quantize(HostMatrix(in, kShape), options);
  const GemmOperand operand = AsOperand(matrix, by_columns);
  ASSERT_EQ(operand.rows, by_columns ? kShape.cols : kShape.rows);
  ASSERT_EQ(operand.inner, by_columns ? kShape.rows : kShape.cols);
  EXPECT_EQ(operand.format, options.format);
  for (size_t r = 0; r < kShape.rows; ++r) {
    for (size_t c = 0; c < kShape.cols; ++c) {
      const OperandElement element =
          by_columns ? ElementOf(operand, c, r) : ElementOf(operand, r, c);
      const size_t at = r * kShape.cols + c;
      const uint32_t code = Codes8Of(plain).empty() ? Codes16Of(plain)[at] : Codes8Of(plain)[at];
      ASSERT_EQ(element.code, code) << r << ", " << c;
      ASSERT_EQ(element.scale, ScalesOf(plain)[options.layout.Index(r, c, kShape.cols)])
          << r << ", " << c;
    }
  }
}

TEST(AsOperand, HasTheCodesAndScalesOfTheMatrixHoweverStored) {
  for (const bool stored_transposed : {false, true}) {
    SCOPED_TRACE(stored_transposed);
    for (const char* layout :
         {"tensor", "row", "block:8", "block:45", "block:100", "tile:8x1", "tile:8x9"}) {
      SCOPED_TRACE(layout);
      CheckOperand("int8", layout, stored_transposed, false);
      CheckOperand("fp16", layout, stored_transposed, false);
    }
    for (const char* layout :
         {"tensor", "column", "block:8", "tile:8x1", "tile:67x1", "tile:100x1", "tile:8x9"}) {
      SCOPED_TRACE(layout);
      CheckOperand("int8", layout, stored_transposed, true);
      CheckOperand("fp16", layout, stored_transposed, true);
    }
  }
}

TEST(AsOperand, HasNoSegmentsWhereAVectorHasOneScale) {
  const std::vector<float> in = Normals(8 * 10, 1.0f);
  const auto segment = [&](const char* layout, bool by_columns) {
    const QuantizedMatrix matrix = Quantize(HostMatrix(in, {8, 10}), Options("int8", layout));
    return AsOperand(matrix, by_columns).scales.segment;
  };
  EXPECT_EQ(segment("row", false), 0u);
  EXPECT_EQ(segment("block:10", false), 0u);
  EXPECT_EQ(segment("block:9", false), 9u);
  EXPECT_EQ(segment("tile:3x5", false), 5u);
  EXPECT_EQ(segment("column", true), 0u);
  EXPECT_EQ(segment("tile:8x1", true), 0u);
  EXPECT_EQ(segment("tile:7x1", true), 7u);
}

// One scale per element of the inner dimension: each product is scaled by itself.
TEST(AsOperand, ScalesAcrossTheInnerDimensionCutSegmentsOfOneElement) {
  const std::vector<float> in = Normals(4 * 5, 1.0f);
  const QuantizedMatrix by_row = Quantize(HostMatrix(in, {4, 5}), Options("int8", "row"));
  const QuantizedMatrix by_column = Quantize(HostMatrix(in, {4, 5}), Options("int8", "column"));
  const GemmScales along_column = AsOperand(by_row, true).scales;
  const GemmScales along_row = AsOperand(by_column, false).scales;
  EXPECT_EQ(along_column.segment, 1u);
  EXPECT_EQ(along_row.segment, 1u);
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(along_column.At(3, k), by_row.Scales()[k]);
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(along_row.At(2, k), by_column.Scales()[k]);
}

// Int8 with scale 1: underflow below and at 0.5, overflow at 127.5 and beyond.
TEST(QuantizationError, CountsUnderflowAndOverflowByHand) {
  const std::vector<float> in = {0.0f, 0.5f, 0.51f, -0.25f, 127.4f, 127.5f, -200.0f, kNaN};
  for (const char* layout : {"tensor", "row", "column", "block:3", "tile:2x1", "tile:1x3"}) {
    const ErrorMeasures error =
        QuantizationError(in, {2, 4}, Options("int8", layout, ScaleRule::kNone));
    EXPECT_EQ(error.elements, 8u) << layout;
    EXPECT_EQ(error.nonfinite, 1u) << layout;
    EXPECT_EQ(error.measured, 7u) << layout;
    EXPECT_EQ(error.underflow, 2u) << layout;
    EXPECT_EQ(error.overflow, 2u) << layout;
    EXPECT_EQ(error.max_error, 73.0) << layout;
    EXPECT_EQ(error.UnderflowShare(), 2.0 / 7) << layout;
  }
}

// e2m1fn: values 0 0.5 1 1.5 2 3 4 6, the next would be 8. MX scales: 2^(floor log2 A - 2).
TEST(QuantizationError, CountsEachElementInUnitsOfItsOwnScale) {
  const std::vector<float> in = {7.5f,
                                 6.9f,
                                 0.25f,
                                 0.125f,  // A = 7.5: scale 1
                                 0.75f,
                                 0.7f,
                                 0.03f,
                                 0.01f};  // A = 0.75: scale 1/8
  const auto measure = [&](const char* layout, ScaleRule rule) {
    return QuantizationError(in, {2, 4}, Options("e2m1fn", layout, rule));
  };
  // Scale 1 for all: 7.5 overflows; 0.25 (a tie to even), 0.125, 0.03 and 0.01 become 0.
  EXPECT_EQ(measure("tensor", ScaleRule::kE8m0).overflow, 1u);
  EXPECT_EQ(measure("tensor", ScaleRule::kE8m0).underflow, 4u);
  // Row 1: 0.75 is 6, 0.7 is 5.6, 0.03 is 0.24 and 0.01 is 0.08.
  EXPECT_EQ(measure("row", ScaleRule::kE8m0).overflow, 1u);
  EXPECT_EQ(measure("row", ScaleRule::kE8m0).underflow, 4u);
  // Pairs, scales 1, 1/16, 1/8, 1/256: 7.5 overflows and 0.03, which is 7.68; 0.01 is 2.56.
  EXPECT_EQ(measure("block:2", ScaleRule::kE8m0).overflow, 2u);
  EXPECT_EQ(measure("block:2", ScaleRule::kE8m0).underflow, 0u);
  EXPECT_EQ(measure("block:2", ScaleRule::kPow2Ceil).overflow, 0u);
  // A scale each: the largest values 7.5, 6.9, ... are within a factor of two of 4.
  EXPECT_EQ(measure("block:1", ScaleRule::kE8m0).underflow, 0u);
  // 7.5, 0.03 (2^-6 * 1.92) overflow; 0.75 and 0.7 are 6 and 5.6, 0.25 and 0.125 4, 0.01 5.12.
  EXPECT_EQ(measure("block:1", ScaleRule::kE8m0).overflow, 2u);
  // Columns: maxima 7.5, 6.9, 0.25, 0.125: scales 1, 1, 1/16, 1/32.
  EXPECT_EQ(measure("column", ScaleRule::kE8m0).overflow, 1u);
  EXPECT_EQ(measure("column", ScaleRule::kE8m0).underflow, 0u);
  EXPECT_EQ(measure("tile:2x1", ScaleRule::kE8m0).overflow, 1u);
  EXPECT_EQ(measure("tile:2x1", ScaleRule::kE8m0).underflow, 0u);
  // Halves, maxima 7.5 and 0.25: scales 1 and 1/16, in whose units 0.01 is 0.16 and becomes 0.
  EXPECT_EQ(measure("tile:2x2", ScaleRule::kE8m0).overflow, 1u);
  EXPECT_EQ(measure("tile:2x2", ScaleRule::kE8m0).underflow, 1u);
}

TEST(QuantizationError, AbsmaxNeverOverflows) {
  const std::vector<float> in = Normals(50 * 40, 3.0f);
  for (const char* format : {"int8", "e4m3fn", "e5m2", "e2m1fn"}) {
    for (const char* layout : {"tensor", "row", "column", "block:8", "tile:8x1", "tile:20x30"}) {
      EXPECT_EQ(QuantizationError(in, {50, 40}, Options(format, layout)).overflow, 0u) << format;
    }
  }
}

TEST(QuantizationError, OfAnEmptyMatrixIsEmpty) {
  for (const char* layout : {"tensor", "row", "column", "block:8", "tile:8x8"}) {
    EXPECT_EQ(QuantizationError({}, {0, 4}, Options("int8", layout)).elements, 0u);
    EXPECT_EQ(QuantizationError({}, {4, 0}, Options("int8", layout)).elements, 0u);
  }
}

TEST(UsualScaleRule, ScalesNarrowFormatsAlone) {
  EXPECT_EQ(UsualScaleRule(ParseFormat("int8").spec), ScaleRule::kAbsmax);
  EXPECT_EQ(UsualScaleRule(ParseFormat("e2m1fn").spec), ScaleRule::kAbsmax);
  EXPECT_EQ(UsualScaleRule(ParseFormat("bf16").spec), ScaleRule::kNone);
}

TEST(QuantizedMatrix, AResultOfBf16IsRoundedOnceWhenItIsStored) {
  std::vector<float> in(7 * 48);
  FillNormal({.seed = 5}, 0, in);
  std::vector<float> bf16 = in;
  const EncodePlan to_bf16 = MakeEncodePlan(kBf16);
  FakeQuantize(to_bf16, bf16, bf16);
  QuantizeOptions options;
  options.format = ParseFormat("e4m3fn").spec;
  options.layout = ParseScaleLayout("row");
  const MatrixShape shape{7, 48};
  std::vector<float> out(in.size());
  const FloatSpan stored(out.data(), shape, Place(), Element::kBfloat16);
  const ConstFloatSpan read(bf16.data(), shape, Place(), Element::kBfloat16);
  WithEachBackend([&] {
    const QuantizedMatrix matrix = Quantize(read, options);
    const QuantizedMatrix same = Quantize(HostMatrix(bf16, shape), options);
    EXPECT_TRUE(std::ranges::equal(matrix.Codes8(), same.Codes8()));
    EXPECT_TRUE(std::ranges::equal(matrix.Scales(), same.Scales()));
    std::vector<float> want(in.size());
    Dequantize(matrix, want);
    FakeQuantize(to_bf16, want, want);
    Dequantize(matrix, stored);
    EXPECT_EQ(out, want);
    DecodeCodes(matrix, want);  // numbers of e4m3fn are numbers of bf16
    DecodeCodes(matrix, stored);
    EXPECT_EQ(out, want);
    Convert(in, stored);
    EXPECT_EQ(out, bf16);
    Convert(stored, want);
    EXPECT_EQ(want, bf16);
  });
}

}  // namespace
}  // namespace numsim
