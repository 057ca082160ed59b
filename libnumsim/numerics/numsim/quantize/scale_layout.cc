#include "numsim/quantize/scale_layout.h"

#include <fmt/format.h>

#include <charconv>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Returns the number written in `text`, which must consist of digits only; 0 for other text.
size_t ParseSize(std::string_view text) {
  size_t size = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, size);
  return status == std::errc() && stop == end ? size : 0;
}

}  // namespace

ScaleLayout Transposed(const ScaleLayout& layout) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return layout;
    case Granularity::kRow:
      return {Granularity::kColumn};
    case Granularity::kColumn:
      return {Granularity::kRow};
    case Granularity::kBlock:
      return {Granularity::kTile, 1, layout.block};
    case Granularity::kTile:
      if (layout.block == 1) return {Granularity::kBlock, layout.tile_rows};
      return {Granularity::kTile, layout.tile_rows, layout.block};
  }
  return layout;
}

ScaleLayout ParseScaleLayout(std::string_view text) {
  if (text == "tensor") return {Granularity::kTensor};
  if (text == "row") return {Granularity::kRow};
  if (text == "column") return {Granularity::kColumn};
  if (text.starts_with("block:")) {
    const size_t block = ParseSize(text.substr(6));
    if (block >= 1) return {Granularity::kBlock, block};
  }
  if (text.starts_with("tile:")) {
    const std::string_view sizes = text.substr(5);
    const size_t cross = sizes.find('x');
    if (cross != std::string_view::npos) {
      const size_t rows = ParseSize(sizes.substr(0, cross));
      const size_t cols = ParseSize(sizes.substr(cross + 1));
      if (rows >= 1 && cols >= 1) return {Granularity::kTile, cols, rows};
    }
  }
  throw Error::Format(
      "granularity '{}' is not one of tensor, row, column, block:N, tile:ROWSxCOLS with sizes >= 1",
      text);
}

std::string ToString(const ScaleLayout& layout) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return "tensor";
    case Granularity::kRow:
      return "row";
    case Granularity::kColumn:
      return "column";
    case Granularity::kBlock:
      return fmt::format("block:{}", layout.block);
    case Granularity::kTile:
      return fmt::format("tile:{}x{}", layout.tile_rows, layout.block);
  }
  return "?";
}

}  // namespace numsim
