#include "numsim/quantize/given_scales.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/shared/require_scales.h"

namespace numsim {
namespace {

using Shape = std::vector<size_t>;
using Dimensions = std::span<const size_t>;

size_t Product(Dimensions shape) {
  size_t product = 1;
  for (const size_t extent : shape) product *= extent;
  return product;
}

std::string Text(Dimensions shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

Dimensions WithoutOnesAtTheEnd(Dimensions shape) {
  while (!shape.empty() && shape.back() == 1) shape = shape.first(shape.size() - 1);
  return shape;
}

bool IsPrefix(Dimensions prefix, Dimensions shape) {
  return prefix.size() <= shape.size() && std::ranges::equal(prefix, shape.first(prefix.size()));
}

// The whole array as one matrix, for one scale.
ScalePlacement OneForAll(Dimensions codes) {
  const MatrixStack stack = StackOf(codes);
  return {{1, {stack.matrices * stack.shape.rows, stack.shape.cols}}, {Granularity::kTensor}};
}

// One scale per index of the first dimensions, but not one per element.
std::optional<ScalePlacement> PerFirstIndices(Dimensions codes, Dimensions scales) {
  const Dimensions first = WithoutOnesAtTheEnd(scales);
  if (first.empty() || first.size() == codes.size() || !IsPrefix(first, codes)) return std::nullopt;
  return ScalePlacement{{1, {Product(first), Product(codes.subspan(first.size()))}},
                        {Granularity::kRow}};
}

// Returns the dimensions before the matrices, then the grid of scales of one matrix.
Shape GridOf(Dimensions codes, const ScaleLayout& layout) {
  Shape grid(codes.begin(),
             codes.end() - static_cast<ptrdiff_t>(std::min<size_t>(codes.size(), 2)));
  for (const size_t extent : ShapeOfScales(layout, StackOf(codes).shape)) grid.push_back(extent);
  return grid;
}

std::optional<ScalePlacement> PerColumn(Dimensions codes, Dimensions scales) {
  const ScaleLayout layout = {Granularity::kColumn};
  const MatrixStack stack = StackOf(codes);
  const bool flat = stack.matrices == 1 && std::ranges::equal(scales, Shape{stack.shape.cols});
  if (!flat && !std::ranges::equal(scales, GridOf(codes, layout))) return std::nullopt;
  return ScalePlacement{stack, layout};
}

std::optional<ScalePlacement> PlaceByLayout(Dimensions codes,
                                            Dimensions scales,
                                            const ScaleLayout& layout) {
  if (layout.granularity == Granularity::kTensor && Product(scales) == 1) return OneForAll(codes);
  if (layout.granularity == Granularity::kColumn) return PerColumn(codes, scales);
  const Shape grid = GridOf(codes, layout);
  if (std::ranges::equal(WithoutOnesAtTheEnd(scales), WithoutOnesAtTheEnd(grid))) {
    return ScalePlacement{StackOf(codes), layout};
  }
  if (layout.granularity == Granularity::kRow) return PerFirstIndices(codes, scales);
  return std::nullopt;
}

std::optional<ScalePlacement> PlaceByShape(Dimensions codes, Dimensions scales) {
  if (Product(scales) == 1) return OneForAll(codes);
  if (const auto rows = PerFirstIndices(codes, scales)) return rows;
  return PerColumn(codes, scales);
}

}  // namespace

MatrixStack StackOf(std::span<const size_t> shape) {
  if (shape.size() < 2) return {1, {1, Product(shape)}};
  const size_t before = shape.size() - 2;
  return {Product(shape.first(before)), {shape[before], shape[before + 1]}};
}

MatrixStack FirstDimensionAsRows(std::span<const size_t> shape) {
  if (shape.size() < 2) return StackOf(shape);
  return {1, {shape[0], Product(shape.subspan(1))}};
}

std::vector<size_t> ShapeOfScales(const ScaleLayout& layout, MatrixShape shape) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return {};
    case Granularity::kRow:
      return {shape.rows, 1};
    case Granularity::kColumn:
      return {1, shape.cols};
    case Granularity::kBlock:
      return {shape.rows, layout.BlocksPerRow(shape.cols)};
    case Granularity::kTile:
      return {layout.TileBands(shape.rows), layout.BlocksPerRow(shape.cols)};
  }
  return {};
}

ScalePlacement PlaceScales(std::span<const size_t> codes,
                           std::span<const size_t> scales,
                           const std::optional<ScaleLayout>& named,
                           const std::optional<ScaleLayout>& usual) {
  if (!named) {
    if (const auto placement = PlaceByShape(codes, scales)) return *placement;
  }
  const std::optional<ScaleLayout>& layout = named ? named : usual;
  if (!layout) {
    throw Error::Format(
        "scales of shape {} for codes of shape {}: the shapes do not tell which codes share a scale; "
        "name it, as block:N or tile:ROWSxCOLS",
        Text(scales),
        Text(codes));
  }
  RequireLayout(*layout, "PlaceScales");
  if (const auto placement = PlaceByLayout(codes, scales, *layout)) return *placement;
  throw Error::Format("scales of shape {} for codes of shape {}: {} has scales of shape {}{}",
                      Text(scales),
                      Text(codes),
                      ToString(*layout),
                      Text(GridOf(codes, *layout)),
                      named ? "" : "; name another with block:N or tile:ROWSxCOLS");
}

QuantizedMatrix FromCodes(const FormatSpec& format,
                          MatrixShape shape,
                          const ScaleLayout& layout,
                          std::span<const uint8_t> code_bytes,
                          std::span<const float> scales) {
  NUMSIM_REQUIRE(format.Bits() <= 16,
                 "FromCodes: the format {} has {} bits, expected at most 16",
                 ToString(format),
                 format.Bits());
  const auto width = static_cast<size_t>(format.StorageBytes());
  NUMSIM_REQUIRE(code_bytes.size() == shape.Elements() * width,
                 "FromCodes: {} bytes of codes, expected {} for {} x {}",
                 code_bytes.size(),
                 shape.Elements() * width,
                 shape.rows,
                 shape.cols);
  RequireScales(scales.size(), layout, shape, "FromCodes", "scales");
  QuantizedMatrix matrix;
  matrix.format = format;
  matrix.shape = shape;
  matrix.layout = layout;
  std::ranges::copy(code_bytes, matrix.codes.Resize(1, code_bytes.size()).Span().begin());
  std::ranges::copy(scales, matrix.scales.Resize(1, scales.size()).Span().begin());
  const auto check = [&](auto codes) {
    for (size_t i = 0; i < codes.size(); ++i) {
      NUMSIM_REQUIRE(codes[i] <= format.CodeMask(),
                     "code {} is {:#x}, which exceeds the {} bits of {}",
                     i,
                     codes[i],
                     format.Bits(),
                     ToString(format));
    }
  };
  if (width == 1) {
    check(matrix.Codes8());
  } else {
    check(matrix.Codes16());
  }
  return matrix;
}

}  // namespace numsim
