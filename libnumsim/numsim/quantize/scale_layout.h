// Which elements of a matrix share a scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

enum class Granularity : uint8_t {
  kTensor,  // one scale
  kRow,     // one a row
  kColumn,  // one a column
  kBlock,   // one for each `block` consecutive elements of a row; the last may be shorter
  kTile,    // one for each tile of tile_rows x block elements; the last ones may be smaller
};

struct ScaleLayout {
  Granularity granularity = Granularity::kTensor;
  size_t block = 0;      // columns of a block or tile: >= 1 under kBlock and kTile
  size_t tile_rows = 0;  // rows of a tile: >= 1 under kTile

  friend bool operator==(const ScaleLayout&, const ScaleLayout&) = default;

  // Scales a row has, except under kTensor (one in all) and kRow (one).
  size_t BlocksPerRow(size_t cols) const { return cols / block + (cols % block != 0 ? 1 : 0); }

  // Rows of tiles.
  size_t TileBands(size_t rows) const { return rows / tile_rows + (rows % tile_rows != 0 ? 1 : 0); }

  // Number of scales of a rows x cols matrix. Order: by row or column; blocks and tiles row by row.
  size_t Count(size_t rows, size_t cols) const {
    switch (granularity) {
      case Granularity::kTensor:
        return 1;
      case Granularity::kRow:
        return rows;
      case Granularity::kColumn:
        return cols;
      case Granularity::kBlock:
        return rows * BlocksPerRow(cols);
      case Granularity::kTile:
        return TileBands(rows) * BlocksPerRow(cols);
    }
    return 0;
  }

  // Index of the scale of element (row, col).
  size_t Index(size_t row, size_t col, size_t cols) const {
    switch (granularity) {
      case Granularity::kTensor:
        return 0;
      case Granularity::kRow:
        return row;
      case Granularity::kColumn:
        return col;
      case Granularity::kBlock:
        return row * BlocksPerRow(cols) + col / block;
      case Granularity::kTile:
        return row / tile_rows * BlocksPerRow(cols) + col / block;
    }
    return 0;
  }
};

// The layout of the transposed matrix: element (col, row) there shares scales as (row, col) here. A
// block becomes a tile of one column, and such a tile a block.
ScaleLayout Transposed(const ScaleLayout& layout);

// tensor, row, column, block:N or tile:ROWSxCOLS. Throws Error listing them.
ScaleLayout ParseScaleLayout(std::string_view text);
std::string ToString(const ScaleLayout& layout);

}  // namespace numsim
