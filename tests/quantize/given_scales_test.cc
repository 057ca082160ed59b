// Codes with given scales, against loops over the elements.
#include "numsim/quantize/given_scales.h"

#include <gtest/gtest.h>

#include <string>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using Shape = std::vector<size_t>;

std::string TextOf(const ScalePlacement& placement) {
  return fmt::format("{} of {}x{} by {}",
                     placement.stack.matrices,
                     placement.stack.shape.rows,
                     placement.stack.shape.cols,
                     ToString(placement.layout));
}

std::string ByShape(const Shape& codes, const Shape& scales, const char* usual = nullptr) {
  std::optional<ScaleLayout> layout;
  if (usual != nullptr) layout = ParseScaleLayout(usual);
  return TextOf(PlaceScales(codes, scales, std::nullopt, layout));
}

std::string ByName(const Shape& codes, const Shape& scales, const char* named) {
  return TextOf(PlaceScales(codes, scales, ParseScaleLayout(named)));
}

TEST(PlaceScales, TheShapeTellsScalesOfTensorsRowsAndColumns) {
  for (const Shape& one : {Shape{}, Shape{1}, Shape{1, 1}}) {
    EXPECT_EQ(ByShape({4, 6}, one), "1 of 4x6 by tensor");
    EXPECT_EQ(ByShape({3, 4, 6}, one), "1 of 12x6 by tensor");
  }
  EXPECT_EQ(ByShape({4, 6}, {4}), "1 of 4x6 by row");
  EXPECT_EQ(ByShape({4, 6}, {4, 1}), "1 of 4x6 by row");
  EXPECT_EQ(ByShape({4, 4}, {4}), "1 of 4x4 by row");
  EXPECT_EQ(ByShape({4, 6}, {1, 6}), "1 of 4x6 by column");
  EXPECT_EQ(ByShape({4, 6}, {6}), "1 of 4x6 by column");
  EXPECT_EQ(ByShape({8, 3, 5, 5}, {8, 1, 1, 1}), "1 of 8x75 by row");
  EXPECT_EQ(ByShape({2, 4, 6}, {2}), "1 of 2x24 by row");
  EXPECT_EQ(ByShape({2, 4, 6}, {2, 4, 1}), "1 of 8x6 by row");
  EXPECT_EQ(ByShape({2, 4, 6}, {2, 1, 6}), "2 of 4x6 by column");
  EXPECT_EQ(ByShape({6}, {}), "1 of 1x6 by tensor");
}

// The last blocks are partial: 300 = 2 * 128 + 44, and 5 = 2 * 2 + 1.
TEST(PlaceScales, BlocksHaveTheNamedSizeAndNotTheQuotientOfTheShapes) {
  EXPECT_EQ(ByName({300, 200}, {3, 2}, "tile:128x128"), "1 of 300x200 by tile:128x128");
  EXPECT_EQ(ByName({300, 200}, {300, 2}, "block:128"), "1 of 300x200 by block:128");
  EXPECT_EQ(ByName({5, 3}, {3, 2}, "tile:2x2"), "1 of 5x3 by tile:2x2");
  EXPECT_EQ(ByName({7, 5, 3}, {7, 3, 2}, "tile:2x2"), "7 of 5x3 by tile:2x2");
  EXPECT_EQ(ByName({7, 5, 3}, {7}, "tensor"), "7 of 5x3 by tensor");
  EXPECT_EQ(ByName({100, 100}, {1, 1}, "tile:128x128"), "1 of 100x100 by tile:128x128");
  EXPECT_EQ(ByShape({5, 70}, {5, 3}, "block:32"), "1 of 5x70 by block:32");
  EXPECT_EQ(
      ErrorOf([] {
        ByShape({300, 200}, {3, 2});
      }),
      "scales of shape (3, 2) for codes of shape (300, 200): the shapes do not tell which codes "
      "share a scale; name it, as block:N or tile:ROWSxCOLS");
  EXPECT_EQ(
      ErrorOf([] {
        ByShape({300, 200}, {2, 2}, "tile:128x128");
      }),
      "scales of shape (2, 2) for codes of shape (300, 200): tile:128x128 has scales of shape "
      "(3, 2); name another with block:N or tile:ROWSxCOLS");
  EXPECT_EQ(
      ErrorOf([] {
        ByName({300, 200}, {3, 3}, "tile:128x128");
      }),
      "scales of shape (3, 3) for codes of shape (300, 200): tile:128x128 has scales of shape "
      "(3, 2)");
  for (const char* const named : {"row", "column", "tensor", "block:3"}) {
    EXPECT_NE(ErrorOf([&] { ByName({4, 6}, {2, 2}, named); }), "no error") << named;
  }
  EXPECT_NE(ErrorOf([] { ByName({4, 4}, {1, 4}, "row"); }), "no error");
}

TEST(FromCodes, ValuesAreCodesTimesTheirScales) {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  constexpr size_t kRows = 5, kCols = 7;
  std::vector<uint8_t> codes(kRows * kCols);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(5 * i);
  for (const char* const text : {"tensor", "row", "column", "block:3", "tile:2x3", "tile:9x9"}) {
    const ScaleLayout layout = ParseScaleLayout(text);
    std::vector<float> scales(layout.Count(kRows, kCols));
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.1f * static_cast<float>(i + 1);
    const QuantizedMatrix matrix = FromCodes(format, {kRows, kCols}, layout, codes, scales);
    std::vector<float> values(codes.size());
    Dequantize(matrix, std::span<float>(values));
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kCols; ++c) {
        size_t scale = 0;
        if (layout.granularity == Granularity::kRow) scale = r;
        if (layout.granularity == Granularity::kColumn) scale = c;
        if (layout.granularity == Granularity::kBlock) scale = r * 3 + c / 3;
        if (std::string(text) == "tile:2x3") scale = r / 2 * 3 + c / 3;
        const float expected = Decode(format, codes[r * kCols + c]) * scales[scale];
        EXPECT_EQ(values[r * kCols + c], expected) << text << " " << r << " " << c;
      }
    }
  }
}

TEST(FromCodes, WrongSizesAndCodesThrow) {
  const FormatSpec fp4 = FindFormat("e2m1fn")->spec;
  const std::vector<float> one = {1};
  const auto make = [&](const FormatSpec& format, std::vector<uint8_t> codes, const char* layout) {
    return ErrorOf([&] { FromCodes(format, {1, 2}, ParseScaleLayout(layout), codes, one); });
  };
  EXPECT_EQ(make(fp4, {1, 15}, "tensor"), "no error");
  EXPECT_EQ(make(fp4, {1, 16}, "tensor"), "code 1 is 0x10, which exceeds the 4 bits of e2m1fn");
  EXPECT_EQ(make(fp4, {1}, "tensor"), "FromCodes: 1 bytes of codes, expected 2 for 1 x 2");
  EXPECT_NE(make(fp4, {1, 1}, "column"), "no error");
  EXPECT_NE(make(FindFormat("fp32")->spec, std::vector<uint8_t>(8), "tensor"), "no error");
}

TEST(StackOf, TheLastTwoDimensionsAreAMatrix) {
  const auto text = [](const MatrixStack& stack) {
    return fmt::format("{} {}x{}", stack.matrices, stack.shape.rows, stack.shape.cols);
  };
  EXPECT_EQ(text(StackOf(Shape{})), "1 1x1");
  EXPECT_EQ(text(StackOf(Shape{5})), "1 1x5");
  EXPECT_EQ(text(StackOf(Shape{4, 5})), "1 4x5");
  EXPECT_EQ(text(StackOf(Shape{2, 3, 4, 5})), "6 4x5");
  EXPECT_EQ(text(FirstDimensionAsRows(Shape{2, 3, 4, 5})), "1 2x60");
  EXPECT_EQ(text(FirstDimensionAsRows(Shape{5})), "1 1x5");
}

}  // namespace
}  // namespace numsim
