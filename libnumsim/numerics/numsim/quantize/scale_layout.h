// Layouts of scales: the groups of elements of a matrix that share a scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

// Which elements of a matrix share a scale.
enum class Granularity : uint8_t {
  kTensor,  // one scale for the whole matrix
  kRow,     // one per row
  kColumn,  // one per column
  kBlock,   // one per `block` consecutive elements of a row; the last block may be shorter
  kTile,    // one per tile of tile_rows x block elements; tiles at the edges may be smaller
};

// A layout of scales: a granularity and the size of its groups.
struct ScaleLayout {
  Granularity granularity = Granularity::kTensor;
  size_t block = 0;      // columns of a block or tile: >= 1 under kBlock and kTile
  size_t tile_rows = 0;  // rows of a tile: >= 1 under kTile

  friend bool operator==(const ScaleLayout&, const ScaleLayout&) = default;

  // Returns the number of blocks or tiles along a row. Requires kBlock or kTile.
  size_t BlocksPerRow(size_t cols) const { return cols / block + (cols % block != 0 ? 1 : 0); }

  // Returns the number of tiles along a column. Requires kTile.
  size_t TileBands(size_t rows) const { return rows / tile_rows + (rows % tile_rows != 0 ? 1 : 0); }

  // Returns the number of scales of a rows x cols matrix. Scales are stored in the order of their
  // rows or columns, and those of blocks and tiles in row-major order.
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

  // Returns the index of the scale of element (row, col).
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

// Returns the layout of the transposed matrix: its elements (col, row) share scales exactly as the
// elements (row, col) of the original do. A block becomes a tile of one column, and such a tile
// becomes a block.
ScaleLayout Transposed(const ScaleLayout& layout);

// Converts between a layout and its text: tensor, row, column, block:N or tile:ROWSxCOLS. Parsing
// throws Error, listing these forms, for any other text.
ScaleLayout ParseScaleLayout(std::string_view text);
std::string ToString(const ScaleLayout& layout);

}  // namespace numsim
