// Row-scaled NVFP4 (ScaleRule::kNvfp4Row): each row is a tensor of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/epilogue.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

constexpr MatrixShape kShape{19, 72};  // the last block has eight elements

QuantizeOptions Options(const char* layout, ScaleRule rule = ScaleRule::kNvfp4Row) {
  QuantizeOptions options;
  options.format = kE2M1fn;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = rule;
  return options;
}

// Rows of magnitudes that differ by more than e4m3fn's range, one of them zero.
std::vector<float> UnevenRows(MatrixShape shape) {
  std::vector<float> x(shape.Elements());
  FillNormal({.seed = 4, .stream = 2}, 0, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<int>(i / shape.cols);
    x[i] = row == 3 ? 0 : std::ldexp(x[i], 5 * (row % 7) - static_cast<int>(i / 16 % 3));
  }
  return x;
}

std::vector<float> Transposed(const std::vector<float>& x, MatrixShape shape) {
  std::vector<float> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    result[i % shape.cols * shape.rows + i / shape.cols] = x[i];
  }
  return result;
}

QuantizedMatrix RowAlone(const std::vector<float>& x, size_t row) {
  return Quantize(
      HostMatrix(std::span(x).subspan(row * kShape.cols, kShape.cols), {1, kShape.cols}),
      Options("block:16", ScaleRule::kNvfp4Inverse));
}

template <typename T>
std::vector<T> Part(std::span<const T> all, size_t row, size_t each) {
  const auto part = all.subspan(row * each, each);
  return {part.begin(), part.end()};
}

TEST(Nvfp4Row, EachRowIsATensorOfItsOwn) {
  const std::vector<float> x = UnevenRows(kShape);
  const QuantizedMatrix all = Quantize(HostMatrix(std::span(x), kShape), Options("block:16"));
  const std::vector<uint8_t> groups = GroupScaleCodes(all);
  ASSERT_EQ(all.tensor_scale.View().Elements(), kShape.rows);
  for (size_t row = 0; row < kShape.rows; ++row) {
    SCOPED_TRACE(row);
    const QuantizedMatrix one = RowAlone(x, row);
    EXPECT_EQ(Part(all.Codes8(), row, kShape.cols), Part(one.Codes8(), 0, kShape.cols));
    EXPECT_EQ(Part(all.Scales(), row, 5), Part(one.Scales(), 0, 5));
    EXPECT_EQ(all.tensor_scale.Span()[row], one.tensor_scale.Span()[0]);
    EXPECT_EQ(Part(std::span<const uint8_t>(groups), row, 5), GroupScaleCodes(one));
  }
  // One scale for all of it is another matter.
  const QuantizedMatrix tensor =
      Quantize(HostMatrix(std::span(x), kShape), Options("block:16", ScaleRule::kNvfp4Inverse));
  EXPECT_NE(Part(tensor.Codes8(), 0, x.size()), Part(all.Codes8(), 0, x.size()));
}

TEST(Nvfp4Row, BlocksOfColumnsAreTheTransposes) {
  const std::vector<float> x = UnevenRows(kShape);
  const QuantizedMatrix rows = Quantize(HostMatrix(std::span(x), kShape), Options("block:16"));
  const std::vector<float> t = Transposed(x, kShape);
  const QuantizedMatrix columns =
      Quantize(HostMatrix(std::span(t), {kShape.cols, kShape.rows}), Options("tile:16x1"));
  std::vector<float> a(x.size()), b(x.size());
  Dequantize(rows, FloatSpan(HostMatrix(std::span(a), kShape)));
  Dequantize(columns, FloatSpan(HostMatrix(std::span(b), {kShape.cols, kShape.rows})));
  EXPECT_EQ(Transposed(a, kShape), b);
  EXPECT_EQ(Part(std::span<const float>(rows.tensor_scale.Span()), 0, kShape.rows),
            Part(std::span<const float>(columns.tensor_scale.Span()), 0, kShape.rows));
  const std::vector<uint8_t> of_rows = GroupScaleCodes(rows), of_columns = GroupScaleCodes(columns);
  for (size_t i = 0; i < of_rows.size(); ++i) {
    EXPECT_EQ(of_rows[i], of_columns[i % 5 * kShape.rows + i / 5]) << i;
  }
}

TEST(Nvfp4Row, EntersTheUnitWithTheScaleOfItsRow) {
  const std::vector<float> x = UnevenRows(kShape);
  std::vector<float> w(32 * kShape.cols);
  FillNormal({.seed = 5, .stream = 2}, 0, w);
  const QuantizedMatrix a = Quantize(HostMatrix(std::span(x), kShape), Options("block:16"));
  const QuantizedMatrix b =
      Quantize(HostMatrix(std::span(w), {32, kShape.cols}), Options("block:16", ScaleRule::kNvfp4));
  const AccumulationMode mode = ParseAccumulationMode("mxf4nvf4");
  for (const Epilogue epilogue : {Epilogue::kFloat64, Epilogue::kFloat32LeftFirst}) {
    std::vector<float> y(kShape.rows * 32), row_y(32), flipped(y.size());
    Gemm(AsOperand(a, false), AsOperand(b, false), mode, epilogue, y);
    for (size_t row = 0; row < kShape.rows; ++row) {
      const QuantizedMatrix one = RowAlone(x, row);
      Gemm(AsOperand(one, false), AsOperand(b, false), mode, epilogue, row_y);
      EXPECT_EQ(Part(std::span<const float>(y), row, 32), row_y) << row;
    }
    if (epilogue != Epilogue::kFloat64) continue;
    Gemm(AsOperand(b, false), AsOperand(a, false), mode, epilogue, flipped);
    EXPECT_EQ(Transposed(y, {kShape.rows, 32}), flipped);
  }
}

TEST(Nvfp4Row, IsForBlocksAlone) {
  const std::vector<float> x(64, 1.0f);
  for (const char* layout : {"tensor", "row", "tile:4x4"}) {
    EXPECT_THAT(
        ErrorOf([&] {
          Quantize(HostMatrix(std::span(x), {4, 16}), Options(layout));
        }),
        HasSubstr(std::string("nvfp4-row is for blocks of rows or columns, not for the layout ") +
                  layout));
  }
  EXPECT_EQ(Quantize(HostMatrix(std::span<const float>(), {0, 16}), Options("block:16"))
                .tensor_scale.View()
                .Elements(),
            0u);
}

}  // namespace
}  // namespace numsim
