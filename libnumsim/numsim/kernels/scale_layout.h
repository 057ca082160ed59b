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
};

struct ScaleLayout {
  Granularity granularity = Granularity::kTensor;
  size_t block = 0;  // >= 1 under kBlock

  friend bool operator==(const ScaleLayout&, const ScaleLayout&) = default;

  // Scales a row has, except under kTensor (one in all) and kRow (one).
  size_t BlocksPerRow(size_t cols) const { return cols / block + (cols % block != 0 ? 1 : 0); }

  // Number of scales of a rows x cols matrix. Order: by row or column; blocks row by row.
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
    }
    return 0;
  }
};

// tensor, row, column or block:N. Throws Error listing them.
ScaleLayout ParseScaleLayout(std::string_view text);
std::string Name(const ScaleLayout& layout);

}  // namespace numsim
