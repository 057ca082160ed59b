// Calls of quantize/ whose arrays do not fit their shape or layout throw Error and write nothing.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "tests/support/quantized_codes.h"

namespace numsim {
namespace {

constexpr MatrixShape kMisusedShape{20, 10};

QuantizeOptions ByLayout(std::string_view layout, std::string_view format = "e4m3fn") {
  return {.format = ParseFormat(format).spec, .layout = ParseScaleLayout(layout)};
}

// A block without elements, which no text gives.
ScaleLayout Empty(Granularity granularity, size_t tile_rows = 0) {
  return {.granularity = granularity, .block = 0, .tile_rows = tile_rows};
}

// The arrays of one matrix of kMisusedShape with one scale per row; a test changes the size of one.
struct MisusedArrays {
  std::vector<float> in = std::vector<float>(200, 1.0f), out = in;
  std::vector<float> scales = std::vector<float>(20, 1.0f), inv_scales = scales;
  std::vector<uint8_t> codes = std::vector<uint8_t>(200);
};

const ScaleLayout kByRow{.granularity = Granularity::kRow};

std::string QuantizeError(const MisusedArrays& arrays, const ScaleLayout& layout = kByRow) {
  MisusedArrays x = arrays;
  const EncodePlan plan = MakeEncodePlan(ParseFormat("e4m3fn").spec);
  return ErrorOf(
      [&] { Quantize(plan, HostMatrix(x.in, kMisusedShape), layout, x.inv_scales, x.codes); });
}

std::string DequantizeError(const MisusedArrays& arrays) {
  MisusedArrays x = arrays;
  const FormatSpec format = ParseFormat("e4m3fn").spec;
  return ErrorOf(
      [&] { Dequantize(format, x.codes, kByRow, x.scales, HostMatrix(x.out, kMisusedShape)); });
}

std::string FakeQuantizeError(const MisusedArrays& arrays) {
  MisusedArrays x = arrays;
  const EncodePlan plan = MakeEncodePlan(ParseFormat("e4m3fn").spec);
  return ErrorOf(
      [&] { FakeQuantize(plan, x.in, kMisusedShape, kByRow, x.inv_scales, x.scales, x.out); });
}

std::string AbsmaxError(const MisusedArrays& arrays) {
  MisusedArrays x = arrays;
  return ErrorOf([&] { Absmax(HostMatrix(x.in, kMisusedShape), kByRow, x.scales); });
}

TEST(QuantizeMisuse, ArraysThatFitDoNotThrow) {
  EXPECT_EQ(QuantizeError({}), kNoError);
  EXPECT_EQ(DequantizeError({}), kNoError);
  EXPECT_EQ(FakeQuantizeError({}), kNoError);
  EXPECT_EQ(AbsmaxError({}), kNoError);
}

TEST(QuantizeMisuse, EveryArrayIsChecked) {
  MisusedArrays in, codes, scales, inv_scales, out;
  in.in.resize(100);
  codes.codes.resize(201);
  scales.scales.resize(19);
  inv_scales.inv_scales.resize(10);
  out.out.resize(0);
  const std::string elements = " elements, expected 200 (20 x 10)";
  const std::string of_row = " elements, expected 20 (layout row of 20 x 10)";
  EXPECT_EQ(QuantizeError(in), "HostMatrix: 'values' has 100" + elements);
  EXPECT_EQ(QuantizeError(codes), "Quantize: 'codes' has 201" + elements);
  EXPECT_EQ(QuantizeError(inv_scales), "Quantize: 'inv_scales' has 10" + of_row);
  EXPECT_EQ(DequantizeError(codes), "Dequantize: 'codes' has 201" + elements);
  EXPECT_EQ(DequantizeError(scales), "Dequantize: 'scales' has 19" + of_row);
  EXPECT_EQ(DequantizeError(out), "HostMatrix: 'values' has 0" + elements);
  EXPECT_EQ(FakeQuantizeError(in), "FakeQuantize: 'in' has 100" + elements);
  EXPECT_EQ(FakeQuantizeError(inv_scales), "FakeQuantize: 'inv_scales' has 10" + of_row);
  EXPECT_EQ(FakeQuantizeError(scales), "FakeQuantize: 'scales' has 19" + of_row);
  EXPECT_EQ(FakeQuantizeError(out), "FakeQuantize: 'out' has 0" + elements);
  EXPECT_EQ(AbsmaxError(in), "HostMatrix: 'values' has 100" + elements);
  EXPECT_EQ(AbsmaxError(scales), "Absmax: 'absmax' has 19" + of_row);
}

TEST(QuantizeMisuse, CodesThatAreTooNarrowThrow) {
  MisusedArrays x;
  const FormatSpec fp16 = ParseFormat("fp16").spec;
  ExpectErrors({
      {[&] {
         Quantize(
             MakeEncodePlan(fp16), HostMatrix(x.in, kMisusedShape), kByRow, x.inv_scales, x.codes);
       },
       "Quantize: 'codes' has codes of 8 bits, and the format has 16"},
      {[&] { Dequantize(fp16, x.codes, kByRow, x.scales, HostMatrix(x.out, kMisusedShape)); },
       "Dequantize: 'codes' has codes of 8 bits, and the format has 16"},
  });
}

TEST(QuantizeMisuse, BlocksAndTilesWithoutElementsThrow) {
  const auto error = [](const std::string& function, const std::string& layout) {
    return function + ": the layout " + layout +
           " has blocks without elements, expected at least one";
  };
  EXPECT_EQ(QuantizeError({}, Empty(Granularity::kBlock)), error("Quantize", "block:0"));
  EXPECT_EQ(QuantizeError({}, Empty(Granularity::kTile, 4)), error("Quantize", "tile:4x0"));
  ScaleLayout flat = Empty(Granularity::kTile);
  flat.block = 4;
  EXPECT_EQ(QuantizeError({}, flat), error("Quantize", "tile:0x4"));
  MisusedArrays x;
  QuantizeOptions options = ByLayout("row");
  options.layout = Empty(Granularity::kBlock);
  EXPECT_EQ(ErrorOf([&] { Quantize(HostMatrix(x.in, kMisusedShape), options); }),
            error("Quantize", "block:0"));
  EXPECT_EQ(ErrorOf([&] { FakeQuantize(x.in, kMisusedShape, options, x.out); }),
            error("FakeQuantize", "block:0"));
}

// Every layout takes its own way through Quantize; row and block:4 once read beyond the array.
TEST(QuantizedMatrixMisuse, AMatrixOfAnotherSizeThrowsUnderEveryLayout) {
  const std::vector<float> in(100, 1.0f);
  for (const char* layout : {"tensor", "row", "column", "block:4", "tile:4x4"}) {
    for (const bool transpose : {false, true}) {
      QuantizeOptions options = ByLayout(layout);
      options.order = transpose ? CodeOrder::kTransposed : CodeOrder::kInput;
      EXPECT_EQ(ErrorOf([&] { Quantize(HostMatrix(in, kMisusedShape), options); }),
                "HostMatrix: 'values' has 100 elements, expected 200 (20 x 10)")
          << layout;
    }
  }
}

TEST(QuantizedMatrixMisuse, WhatIsRefusedLeavesTheResultAsItWas) {
  const std::vector<float> first = {1, 2, 3, 4};
  QuantizedMatrix result = Quantize(HostMatrix(first, {2, 2}), ByLayout("row"));
  const QuantizedMatrix before = result;
  const std::vector<float> in(100, 1.0f);
  EXPECT_NE(ErrorOf([&] { QuantizeInto(HostMatrix(in, kMisusedShape), ByLayout("row"), result); }),
            kNoError);
  EXPECT_NE(ErrorOf([&] {
              QuantizeUnder(Scale{},
                            HostMatrix(std::span<const float>(in), kMisusedShape),
                            ByLayout("tensor"),
                            result);
            }),
            kNoError);
  EXPECT_EQ(Codes8Of(result), Codes8Of(before));
  EXPECT_EQ(ScalesOf(result), ScalesOf(before));
  EXPECT_EQ(result.shape.rows, 2u);
}

TEST(QuantizedMatrixMisuse, EachFunctionNamesItselfAndTheArgument) {
  const std::vector<float> right(200, 1.0f), wrong(100, 1.0f);
  std::vector<float> out(200), short_out(100);
  QuantizedMatrix result;
  const QuantizedMatrix matrix = Quantize(HostMatrix(right, kMisusedShape), ByLayout("row"));
  QuantizeOptions transpose = ByLayout("row");
  transpose.order = CodeOrder::kTransposed;
  const QuantizedMatrix transposed = Quantize(HostMatrix(right, kMisusedShape), transpose);
  const std::string elements = "has 100 elements, expected 200 (20 x 10)";
  ExpectErrors({
      {[&] {
         QuantizeUnder(Scale{},
                       HostMatrix(std::span<const float>(wrong), kMisusedShape),
                       ByLayout("tensor"),
                       result);
       },
       "HostMatrix: 'values' " + elements},
      {[&] {
         QuantizeUnder(Scale{},
                       HostMatrix(std::span<const float>(right), kMisusedShape),
                       ByLayout("column"),
                       result);
       },
       "QuantizeUnder: one scale for the layout column, expected tensor"},
      {[&] { Quantize(HostMatrix(right, kMisusedShape), ByLayout("row", "fp32")); },
       "Quantize: the format fp32 has 32 bits, expected at most 16"},
      {[&] { Dequantize(matrix, short_out); }, "Dequantize: 'out' " + elements},
      {[&] { Dequantize(transposed, out); },
       "QuantizedSpan: the codes are transposed, expected in order"},
      {[&] { FakeQuantize(wrong, kMisusedShape, ByLayout("row"), out); },
       "FakeQuantize: 'in' " + elements},
      {[&] { FakeQuantize(right, kMisusedShape, ByLayout("row"), short_out); },
       "FakeQuantize: 'out' " + elements},
      {[&] { QuantizationError(wrong, kMisusedShape, ByLayout("row")); },
       "QuantizationError: 'in' " + elements},
      {[&] { QuantizationError(wrong, matrix, out); }, "QuantizationError: 'in' " + elements},
      {[&] { QuantizationError(right, matrix, short_out); }, "Dequantize: 'out' " + elements},
  });
}

TEST(QuantizedMatrixMisuse, AMatrixWhosePartsDoNotFitThrows) {
  const std::vector<float> in(200, 1.0f);
  QuantizedMatrix matrix = Quantize(HostMatrix(in, kMisusedShape), ByLayout("row"));
  std::vector<float> out(200);
  matrix.scales.Resize(1, 19);
  EXPECT_EQ(ErrorOf([&] { Dequantize(matrix, out); }),
            "Dequantize: 'scales' has 19 elements, expected 20 (layout row of 20 x 10)");
}

TEST(DelayedScaleMisuse, HistoryAndMaximaAreChecked) {
  const FormatSpec format = ParseFormat("e4m3fn").spec;
  ExpectErrors({
      {[&] { DelayedScale(format, {.history = 0}); },
       "DelayedScale: a history of 0 maxima, expected at least 1"},
      {[&] { DelayedScale(format, {.margin = 33}); },
       "DelayedScale: margin 33, expected -32 to 32"},
      {[&] { DelayedScale(format, {.margin = INT_MIN}); },
       "DelayedScale: margin -2147483648, expected -32 to 32"},
      {[&] { DelayedScale(format, {.history = 2}).Record(-1); },
       "DelayedScale::Record: absmax is -1, expected no negative number"},
  });
}

}  // namespace
}  // namespace numsim
