#include "numsim/gemm/internal/gemm_panel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/gemm/internal/gemm_scratch.h"
#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {
namespace {

constexpr size_t kMaxWidth = kMaxTileCols;
constexpr size_t kMaxDepth = 4096;  // inner elements of a panel of int8 codes

// Elements of the inner dimension that PackRows handles at a time: they stay in the cache.
constexpr size_t kDepthPiece = 128;
constexpr size_t kPiece = kMaxWidth * kDepthPiece;

// Packs one strip of an operand stored as rows x inner.
void PackRows(
    const GemmOperand& x, size_t width, size_t first_row, InnerRange range, float* panel) {
  float decoded[kPiece];
  const uint8_t* rows[kMaxWidth];
  const size_t valid = std::min(width, x.rows - std::min(first_row, x.rows));
  static constexpr float kZeros[kPiece] = {};
  if (range.Size() == x.inner && width * x.inner <= kPiece) {
    // Whole short rows are stored one after another: they are decoded in one run.
    const float* run = StoredRun(x, first_row * x.inner, valid * x.inner, decoded);
    for (size_t v = 0; v < width; ++v) {
      rows[v] = reinterpret_cast<const uint8_t*>(v < valid ? run + v * x.inner : kZeros);
    }
    return InterleaveRows(rows, width, x.inner, reinterpret_cast<uint32_t*>(panel));
  }
  for (size_t k = range.begin; k < range.end; k += kDepthPiece) {
    const size_t n = std::min(kDepthPiece, range.end - k);
    for (size_t v = 0; v < width; ++v) {
      const float* row =
          v < valid ? StoredRun(x, (first_row + v) * x.inner + k, n, decoded + v * kDepthPiece)
                    : kZeros;
      rows[v] = reinterpret_cast<const uint8_t*>(row);
    }
    InterleaveRows(rows, width, n, reinterpret_cast<uint32_t*>(panel + (k - range.begin) * width));
  }
}

// Copies `depth` rows of kWidth words (`width` words if kWidth is 0), which are from_stride words
// apart, to consecutive memory.
template <size_t kWidth, typename Word>
void CopyRows(const Word* from, size_t from_stride, size_t depth, size_t width, Word* to) {
  const size_t n = kWidth == 0 ? width : kWidth;
  for (size_t k = 0; k < depth; ++k)
    std::memcpy(to + k * n, from + k * from_stride, n * sizeof(*to));
}

// Calls CopyRows with a constant width where possible: the compiler then turns each copy into a few
// moves.
template <typename Word>
void CopyWholeStrip(const Word* from, size_t from_stride, size_t depth, size_t width, Word* to) {
  switch (width) {
    case 6:
      return CopyRows<6>(from, from_stride, depth, width, to);
    case 8:
      return CopyRows<8>(from, from_stride, depth, width, to);
    case 12:
      return CopyRows<12>(from, from_stride, depth, width, to);
    case 16:
      return CopyRows<16>(from, from_stride, depth, width, to);
    case 32:
      return CopyRows<32>(from, from_stride, depth, width, to);
    default:
      return CopyRows<0>(from, from_stride, depth, width, to);
  }
}

// Writes panels of `count` strips from `depth` rows of n words, with `filler` beyond the last word.
template <typename Word>
void CopyStrips(const Word* from,
                size_t from_stride,
                size_t depth,
                size_t n,
                size_t width,
                size_t count,
                Word filler,
                Word* panels,
                size_t panel_stride) {
  for (size_t s = 0; s < count; ++s) {
    const size_t at = std::min(s * width, n), valid = std::min(width, n - at);
    Word* to = panels + s * panel_stride;
    if (valid == width) {
      CopyWholeStrip(from + at, from_stride, depth, width, to);
      continue;
    }
    for (size_t k = 0; k < depth; ++k, to += width) {
      std::copy_n(from + k * from_stride + at, valid, to);
      std::fill_n(to + valid, width - valid, filler);
    }
  }
}

// Packs `count` strips of an operand stored as inner x rows. Requires count * width <= kPiece.
void PackColumns(const GemmOperand& x,
                 size_t width,
                 size_t first,
                 size_t count,
                 InnerRange range,
                 float* panels,
                 size_t panel_stride) {
  const size_t begin = first * width;
  const size_t n = std::min(count * width, x.rows - begin);
  const bool stored = !x.values.Empty();
  float buffer[kPiece];
  // Takes some rows at a time: panels are a power of two apart, and a cache has few places for such
  // addresses.
  const size_t rows = kPiece / n;
  for (size_t k = range.begin; k < range.end; k += rows) {
    const size_t depth = std::min(rows, range.end - k);
    const float* from = stored ? x.values.data + k * x.rows + begin : buffer;
    const size_t from_stride = stored ? x.rows : n;
    if (!stored && n == x.rows) {
      StoredRun(x, k * n, depth * n, buffer);
    } else if (!stored) {
      for (size_t i = 0; i < depth; ++i) {
        StoredRun(x, (k + i) * x.rows + begin, n, buffer + i * n);
      }
    }
    float* const to = panels + (k - range.begin) * width;
    CopyStrips(from, from_stride, depth, n, width, count, 0.0f, to, panel_stride);
  }
}

// Packs one strip of int8 codes stored as rows x inner, in words of 4 codes.
void PackInt8Rows(
    const GemmOperand& x, size_t width, size_t first_row, InnerRange range, uint32_t* panel) {
  const size_t valid = std::min(width, x.rows - std::min(first_row, x.rows));
  const size_t whole = range.Size() / 4, rest = range.Size() % 4;
  static const std::vector<uint8_t> zeros(kMaxDepth);
  const uint8_t* rows[kMaxWidth];
  for (size_t v = 0; v < width; ++v) {
    rows[v] = v < valid ? x.codes8.data + (first_row + v) * x.inner + range.begin : zeros.data();
    if (rest != 0) {
      panel[whole * width + v] = 0;
      std::memcpy(panel + whole * width + v, rows[v] + 4 * whole, rest);
    }
  }
  InterleaveRows(rows, width, whole, panel);
}

// Packs `count` strips of int8 codes stored as inner x rows, with every word XORed with `flips`.
void PackInt8Columns(const GemmOperand& x,
                     size_t width,
                     size_t first,
                     size_t count,
                     InnerRange range,
                     uint32_t flips,
                     uint32_t* panels,
                     size_t panel_stride) {
  const size_t begin = first * width;
  const size_t n = std::min(count * width, x.rows - begin);
  static constexpr uint8_t kNone[kMaxDepth] = {};
  NUMSIM_CHECK(n <= kMaxDepth, "{} vectors", n);
  uint32_t words[kPiece];
  const size_t groups = kPiece / n;  // handled at a time
  for (size_t k = range.begin; k < range.end; k += 4 * groups) {
    const size_t depth = std::min(groups, (range.end - k + 3) / 4);
    for (size_t g = 0; g < depth; ++g) {
      const uint8_t* rows[4];
      for (size_t i = 0; i < 4; ++i) {
        const size_t at = k + 4 * g + i;
        rows[i] = at < range.end ? x.codes8.data + at * x.rows + begin : kNone;
      }
      InterleaveBytes(rows, n, flips, words + g * n);
    }
    uint32_t* const to = panels + (k - range.begin) / 4 * width;
    CopyStrips(words, n, depth, n, width, count, flips, to, panel_stride);
  }
}

// Packs one strip of int8 codes stored as rows x inner in steps of kAmxDepth codes.
void PackInt8RowSteps(
    const GemmOperand& x, size_t width, size_t first_row, InnerRange range, uint8_t* panel) {
  const size_t valid = std::min(width, x.rows - std::min(first_row, x.rows));
  for (size_t k = range.begin; k < range.end; k += kAmxDepth, panel += width * kAmxDepth) {
    const size_t n = std::min(kAmxDepth, range.end - k);
    if (n < kAmxDepth || valid < width) std::fill_n(panel, width * kAmxDepth, uint8_t{0});
    for (size_t v = 0; v < valid; ++v) {
      const uint8_t* const from = x.codes8.data + (first_row + v) * x.inner + k;
      if (n == kAmxDepth) {
        std::memcpy(panel + v * kAmxDepth, from, kAmxDepth);
      } else {
        std::memcpy(panel + v * kAmxDepth, from, n);
      }
    }
  }
}

// Writes the steps of one strip from its `groups` groups of 4 codes per vector.
void StepsFromGroups(const uint32_t* words, size_t groups, size_t width, uint8_t* panel) {
  constexpr size_t kGroups = kAmxDepth / 4;  // of a step
  static constexpr uint32_t kZeros[kMaxWidth] = {};
  for (size_t g = 0; g < groups; g += kGroups, panel += width * kAmxDepth) {
    const uint8_t* rows[kGroups];
    for (size_t i = 0; i < kGroups; ++i) {
      rows[i] = reinterpret_cast<const uint8_t*>(g + i < groups ? words + (g + i) * width : kZeros);
    }
    InterleaveRows(rows, kGroups, width, reinterpret_cast<uint32_t*>(panel));
  }
}

int ExponentOf(int32_t magnitude, const FormatSpec& format) {
  const int exponent = std::ilogb(std::bit_cast<float>(magnitude));
  return std::max(exponent, format.MinExponent());
}

// Checks that every row has a scale in every segment.
void CheckScales(const GemmOperand& x, const char* name) {
  const GemmScales& scales = x.scales;
  if (scales.data.Empty() || x.rows == 0 || x.inner == 0) return;
  NUMSIM_REQUIRE(scales.row_group >= 1, "Gemm: row_group of {} is 0, expected at least 1", name);
  const size_t last_segment = scales.segment == 0 ? 0 : (x.inner - 1) / scales.segment;
  const size_t needed = (x.rows - 1) / scales.row_group * scales.row_stride +
                        last_segment * scales.segment_stride + 1;
  NUMSIM_REQUIRE(scales.data.Elements() >= needed,
                 "Gemm: '{}' has {} scales, expected at least {} for {} rows of {} elements",
                 name,
                 scales.data.Elements(),
                 needed,
                 x.rows,
                 x.inner);
}

// Throws Error unless a matrix that is set has the elements of the operand, and its shape if it has
// gaps between its rows.
template <typename T>
void CheckMatrix(const GemmOperand& x, MatrixSpan<const T> matrix, const char* name) {
  const MatrixShape stored = x.Stored();
  NUMSIM_REQUIRE(
      matrix.Contiguous() || (matrix.rows == stored.rows && matrix.cols == stored.cols),
      "Gemm: '{}' is a {} x {} matrix with stride {}, expected {} x {} or contiguous rows",
      name,
      matrix.rows,
      matrix.cols,
      matrix.stride,
      stored.rows,
      stored.cols);
}

void CheckOperand(const GemmOperand& x, const char* name) {
  const auto is_set = [](const auto& matrix) { return matrix.Elements() != 0; };
  const int arrays = is_set(x.values) + is_set(x.codes8) + is_set(x.codes16);
  NUMSIM_REQUIRE(
      arrays <= 1, "Gemm: '{}' has {} of values, codes8 and codes16, expected one", name, arrays);
  const size_t given = x.values.Elements() + x.codes8.Elements() + x.codes16.Elements();
  RequireSize(given, MatrixShape{x.rows, x.inner}, "Gemm", name);
  if (is_set(x.codes8)) RequireCodeBytes(1, x.format.Bits(), "Gemm", name);
  if (is_set(x.codes16)) RequireCodeBytes(2, x.format.Bits(), "Gemm", name);
  CheckMatrix(x, x.values, name);
  CheckMatrix(x, x.codes8, name);
  CheckMatrix(x, x.codes16, name);
  CheckScales(x, name);
  if (!x.scales.data.Empty() && given != 0) OnePlace("Gemm", {x.place(), x.scales.data.place});
}

}  // namespace

const float* StoredRun(const GemmOperand& x, size_t at, size_t n, float* buffer) {
  if (!x.values.Empty()) return x.values.data + at;
  if (!x.codes8.Empty()) {
    DecodeSerial(x.format, x.codes8.data + at, n, buffer);
  } else {
    DecodeSerial(x.format, x.codes16.data + at, n, buffer);
  }
  return buffer;
}

size_t SegmentLength(const GemmOperand& a, const GemmOperand& b) {
  const size_t segment = std::max(a.scales.segment, b.scales.segment);
  NUMSIM_REQUIRE((a.scales.segment == 0 || a.scales.segment == segment) &&
                     (b.scales.segment == 0 || b.scales.segment == segment),
                 "Gemm: scales in segments of {} in a and of {} in b, expected equal segments",
                 a.scales.segment,
                 b.scales.segment);
  return segment == 0 ? std::max<size_t>(a.inner, 1) : segment;
}

void CheckProduct(const GemmOperand& a, const GemmOperand& b, size_t results) {
  CheckOperand(a, "a");
  CheckOperand(b, "b");
  NUMSIM_REQUIRE(a.inner == b.inner,
                 "Gemm: 'a' has inner = {} and 'b' has inner = {}, expected equal",
                 a.inner,
                 b.inner);
  RequireSize(results, MatrixShape{a.rows, b.rows}, "Gemm", "out");
}

void PackFloatPanels(const GemmOperand& operand,
                     size_t width,
                     size_t first,
                     size_t count,
                     InnerRange range,
                     float* panels,
                     size_t panel_stride) {
  if (operand.transposed) {
    const size_t most = kPiece / width;
    for (size_t s = 0; s < count; s += most) {
      const size_t n = std::min(most, count - s);
      PackColumns(operand, width, first + s, n, range, panels + s * panel_stride, panel_stride);
    }
    return;
  }
  for (size_t s = 0; s < count; ++s) {
    PackRows(operand, width, (first + s) * width, range, panels + s * panel_stride);
  }
}

void PackInt8Panels(const GemmOperand& operand,
                    size_t width,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t flip,
                    uint8_t* panels,
                    size_t panel_stride) {
  NUMSIM_CHECK(range.Size() <= kMaxDepth, "{} products", range.Size());
  const size_t groups = (range.Size() + 3) / 4;
  const uint32_t flips = flip * 0x01010101u;
  if (operand.transposed) {
    uint32_t* const to = reinterpret_cast<uint32_t*>(panels);
    return PackInt8Columns(operand, width, first, count, range, flips, to, panel_stride / 4);
  }
  for (size_t s = 0; s < count; ++s) {
    uint32_t* panel = reinterpret_cast<uint32_t*>(panels + s * panel_stride);
    PackInt8Rows(operand, width, (first + s) * width, range, panel);
    if (flips != 0) {
      for (size_t i = 0; i < groups * width; ++i) panel[i] ^= flips;
    }
  }
}

void PackInt8Steps(const GemmOperand& operand,
                   size_t width,
                   size_t first,
                   size_t count,
                   InnerRange range,
                   uint8_t* panels,
                   size_t panel_stride) {
  if (!operand.transposed) {
    for (size_t s = 0; s < count; ++s) {
      PackInt8RowSteps(operand, width, (first + s) * width, range, panels + s * panel_stride);
    }
    return;
  }
  const size_t groups = (range.Size() + 3) / 4, size = groups * width;
  uint32_t* const words = Scratch<uint32_t>(ScratchUse::kPacking, count * size);
  PackInt8Panels(
      operand, width, first, count, range, 0, reinterpret_cast<uint8_t*>(words), 4 * size);
  for (size_t s = 0; s < count; ++s) {
    StepsFromGroups(words + s * size, groups, width, panels + s * panel_stride);
  }
}

OperandRange RangeOf(const GemmOperand& operand) {
  const size_t lines = operand.transposed ? operand.inner : operand.rows;
  const size_t length = operand.transposed ? operand.rows : operand.inner;
  std::vector<Magnitudes> found(lines);
  ParallelFor(lines, 1 + 16384 / std::max<size_t>(length, 1), [&](size_t begin, size_t end) {
    std::vector<float> buffer(length);
    for (size_t i = begin; i < end; ++i) {
      AddMagnitudes(StoredRun(operand, i * length, length, buffer.data()), length, found[i]);
    }
  });
  OperandRange result;
  Magnitudes all;
  for (size_t i = 0; i < lines; ++i) {
    all.smallest = std::min(all.smallest, found[i].smallest);
    all.largest = std::max(all.largest, found[i].largest);
    all.finite = all.finite && found[i].finite;
    if (!found[i].finite && !operand.transposed) result.nonfinite.push_back(i);
  }
  if (all.largest != 0) {
    result.zero = false;
    result.low_exponent = ExponentOf(all.smallest, operand.format);
    result.high_exponent = ExponentOf(all.largest, operand.format);
    const FormatSpec& format = operand.format;
    const bool subnormal = result.low_exponent <= format.MinExponent();
    result.unit =
        subnormal ? format.SubnormalExponent() : result.low_exponent - format.mantissa_bits;
  }
  if (operand.transposed && !all.finite) {
    std::vector<bool> marked(operand.rows);
    for (size_t k = 0; k < lines; ++k) {
      if (found[k].finite) continue;
      for (size_t row = 0; row < operand.rows; ++row) {
        if (!std::isfinite(OperandValue(operand, row, k))) marked[row] = true;
      }
    }
    for (size_t row = 0; row < operand.rows; ++row) {
      if (marked[row]) result.nonfinite.push_back(row);
    }
  }
  return result;
}

float OperandValue(const GemmOperand& operand, size_t row, size_t k) {
  float value;
  const size_t at = operand.transposed ? k * operand.rows + row : row * operand.inner + k;
  return *StoredRun(operand, at, 1, &value);
}

}  // namespace numsim
