#include "numsim/kernels/quantize.h"

#include <algorithm>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/kernels/cast_serial.h"
#include "numsim/kernels/quantize_simd.h"

namespace numsim {
namespace {

// Elements handled at a time: scaled values stay in the first-level cache.
constexpr size_t kPiece = 1024;
// Pieces, rows or tiles that are worth a thread.
constexpr size_t kPiecesPerGrain = 16;
// Tiles of a transposed store: rows that fill a cache line of the output, columns that keep the
// tile in the first-level cache and are long enough to encode at full speed.
constexpr size_t kTileRows = 64;
constexpr size_t kTileCols = 256;

// A run of at most kPiece elements of one row that share a scale, except under kColumn.
struct Piece {
  size_t row, begin, end;
};

// Cuts every row into pieces that do not straddle two blocks.
class Pieces {
 public:
  Pieces(MatrixShape shape, const ScaleLayout& layout) : shape_(shape) {
    segment_ = layout.granularity == Granularity::kBlock ? layout.block : shape.cols;
    segment_ = std::clamp<size_t>(segment_, 1, std::max<size_t>(shape.cols, 1));
    per_segment_ = (segment_ + kPiece - 1) / kPiece;
    per_row_ = (shape.cols + segment_ - 1) / segment_ * per_segment_;
  }

  size_t Count() const { return shape_.rows * per_row_; }

  // May be empty (begin >= end) at the end of a row.
  Piece At(size_t i) const {
    const size_t in_row = i % per_row_;
    const size_t segment_begin = in_row / per_segment_ * segment_;
    const size_t segment_end = std::min(segment_begin + segment_, shape_.cols);
    const size_t begin = segment_begin + in_row % per_segment_ * kPiece;
    return {i / per_row_, begin, std::min(begin + kPiece, segment_end)};
  }

 private:
  MatrixShape shape_;
  size_t segment_, per_segment_, per_row_;
};

// out[0 .. end-begin) = in * factor over columns [begin, end) of a row. `scales` holds a factor for
// each scale of the layout. Columns must lie in one block.
void ScaleRun(const float* in,
              const Piece& piece,
              MatrixShape shape,
              const ScaleLayout& layout,
              const float* factors,
              float* out) {
  const size_t n = piece.end - piece.begin;
  const float* from = factors + layout.Index(piece.row, piece.begin, shape.cols);
  if (layout.granularity == Granularity::kColumn) {
    MultiplyEach(in, n, from, out);
  } else {
    Multiply(in, n, *from, out);
  }
}

void AbsmaxColumns(std::span<const float> in, MatrixShape shape, std::span<float> absmax) {
  ParallelFor(shape.cols, kTileCols, [&](size_t begin, size_t end) {
    for (size_t r = 0; r < shape.rows; ++r) {
      AccumulateAbsmax(in.data() + r * shape.cols + begin, end - begin, absmax.data() + begin);
    }
  });
}

template <typename Code>
void QuantizeInOrder(const EncodePlan& plan,
                     std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     std::span<const float> multipliers,
                     std::span<Code> codes,
                     const ArrayRandom& random) {
  const Pieces pieces(shape, layout);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    float scaled[kPiece];
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      if (piece.begin >= piece.end) continue;
      const size_t at = piece.row * shape.cols + piece.begin;
      ScaleRun(in.data() + at, piece, shape, layout, multipliers.data(), scaled);
      EncodeSerial(plan,
                   scaled,
                   piece.end - piece.begin,
                   codes.data() + at,
                   {random.stream, random.first_index + at});
    }
  });
}

// One tile: rows [r0, r1) x columns [c0, c1) of the input, stored transposed.
template <typename Code>
void QuantizeTile(const EncodePlan& plan,
                  const float* in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  const float* multipliers,
                  Code* codes,
                  const ArrayRandom& random,
                  size_t r0,
                  size_t c0) {
  const size_t r1 = std::min(r0 + kTileRows, shape.rows);
  const size_t c1 = std::min(c0 + kTileCols, shape.cols);
  float scaled[kTileCols];
  Code tile[kTileRows][kTileCols];
  for (size_t r = r0; r < r1; ++r) {
    const float* row = in + r * shape.cols;
    for (size_t c = c0; c < c1;) {
      // Up to the end of the block that column c lies in.
      const bool blocks = layout.granularity == Granularity::kBlock;
      const size_t stop = blocks ? std::min(c1, (c / layout.block + 1) * layout.block) : c1;
      ScaleRun(row + c, {r, c, stop}, shape, layout, multipliers, scaled + (c - c0));
      c = stop;
    }
    EncodeSerial(plan,
                 scaled,
                 c1 - c0,
                 tile[r - r0],
                 {random.stream, random.first_index + r * shape.cols + c0});
  }
  for (size_t c = c0; c < c1; ++c) {
    Code* out = codes + c * shape.rows + r0;
    for (size_t r = r0; r < r1; ++r) out[r - r0] = tile[r - r0][c - c0];
  }
}

template <typename Code>
void QuantizeTransposed(const EncodePlan& plan,
                        std::span<const float> in,
                        MatrixShape shape,
                        const ScaleLayout& layout,
                        std::span<const float> multipliers,
                        std::span<Code> codes,
                        const ArrayRandom& random) {
  const size_t tiles_down = (shape.rows + kTileRows - 1) / kTileRows;
  const size_t tiles_across = (shape.cols + kTileCols - 1) / kTileCols;
  ParallelFor(tiles_down * tiles_across, 1, [&](size_t first, size_t last) {
    for (size_t t = first; t < last; ++t) {
      // Tiles that follow one another fill neighbouring parts of the same output rows.
      QuantizeTile(plan,
                   in.data(),
                   shape,
                   layout,
                   multipliers.data(),
                   codes.data(),
                   random,
                   t % tiles_down * kTileRows,
                   t / tiles_down * kTileCols);
    }
  });
}

template <typename Code>
void QuantizeMatrix(const EncodePlan& plan,
                    std::span<const float> in,
                    MatrixShape shape,
                    const ScaleLayout& layout,
                    std::span<const float> multipliers,
                    std::span<Code> codes,
                    const ArrayRandom& random,
                    bool transpose) {
  NUMSIM_CHECK(in.size() == shape.Elements() && codes.size() == in.size(),
               "{} values, {} codes, {} x {}",
               in.size(),
               codes.size(),
               shape.rows,
               shape.cols);
  NUMSIM_CHECK(multipliers.size() == layout.Count(shape.rows, shape.cols),
               "{} multipliers",
               multipliers.size());
  if (in.empty()) return;
  if (transpose) {
    QuantizeTransposed(plan, in, shape, layout, multipliers, codes, random);
  } else {
    QuantizeInOrder(plan, in, shape, layout, multipliers, codes, random);
  }
}

template <typename Code>
void DequantizeMatrix(const FormatSpec& format,
                      std::span<const Code> codes,
                      MatrixShape shape,
                      const ScaleLayout& layout,
                      std::span<const float> scales,
                      std::span<float> out) {
  NUMSIM_CHECK(codes.size() == shape.Elements() && out.size() == codes.size() &&
                   scales.size() == layout.Count(shape.rows, shape.cols),
               "{} codes, {} values, {} scales, {} x {}",
               codes.size(),
               out.size(),
               scales.size(),
               shape.rows,
               shape.cols);
  if (codes.empty()) return;
  const Pieces pieces(shape, layout);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      if (piece.begin >= piece.end) continue;
      const size_t at = piece.row * shape.cols + piece.begin;
      DecodeSerial(format, codes.data() + at, piece.end - piece.begin, out.data() + at);
      ScaleRun(out.data() + at, piece, shape, layout, scales.data(), out.data() + at);
    }
  });
}

}  // namespace

void Absmax(std::span<const float> in,
            MatrixShape shape,
            const ScaleLayout& layout,
            std::span<float> absmax) noexcept {
  NUMSIM_CHECK(
      in.size() == shape.Elements() && absmax.size() == layout.Count(shape.rows, shape.cols),
      "{} values, {} maxima, {} x {}",
      in.size(),
      absmax.size(),
      shape.rows,
      shape.cols);
  std::fill(absmax.begin(), absmax.end(), 0.0f);
  if (in.empty()) return;
  if (layout.granularity == Granularity::kColumn) return AbsmaxColumns(in, shape, absmax);
  const Pieces pieces(shape, layout);
  std::vector<float> maxima(pieces.Count());
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      if (piece.begin >= piece.end) continue;
      maxima[i] =
          FiniteAbsmax(in.data() + piece.row * shape.cols + piece.begin, piece.end - piece.begin);
    }
  });
  for (size_t i = 0; i < maxima.size(); ++i) {
    const Piece piece = pieces.At(i);
    if (piece.begin >= piece.end) continue;
    float& max = absmax[layout.Index(piece.row, piece.begin, shape.cols)];
    max = std::max(max, maxima[i]);
  }
}

void Quantize(const EncodePlan& plan,
              std::span<const float> in,
              MatrixShape shape,
              const ScaleLayout& layout,
              std::span<const float> multipliers,
              std::span<uint8_t> codes,
              const ArrayRandom& random,
              bool transpose) noexcept {
  QuantizeMatrix(plan, in, shape, layout, multipliers, codes, random, transpose);
}

void Quantize(const EncodePlan& plan,
              std::span<const float> in,
              MatrixShape shape,
              const ScaleLayout& layout,
              std::span<const float> multipliers,
              std::span<uint16_t> codes,
              const ArrayRandom& random,
              bool transpose) noexcept {
  QuantizeMatrix(plan, in, shape, layout, multipliers, codes, random, transpose);
}

void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  std::span<const float> multipliers,
                  std::span<const float> scales,
                  std::span<float> out,
                  const ArrayRandom& random) noexcept {
  const size_t count = layout.Count(shape.rows, shape.cols);
  NUMSIM_CHECK(in.size() == shape.Elements() && out.size() == in.size() &&
                   multipliers.size() == count && scales.size() == count,
               "{} values, {} x {}, {} scales",
               in.size(),
               shape.rows,
               shape.cols,
               scales.size());
  if (in.empty()) return;
  const Pieces pieces(shape, layout);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      if (piece.begin >= piece.end) continue;
      const size_t at = piece.row * shape.cols + piece.begin;
      const size_t n = piece.end - piece.begin;
      float* to = out.data() + at;
      ScaleRun(in.data() + at, piece, shape, layout, multipliers.data(), to);
      FakeQuantizeSerial(plan, to, n, to, {random.stream, random.first_index + at});
      ScaleRun(to, piece, shape, layout, scales.data(), to);
    }
  });
}

void Dequantize(const FormatSpec& format,
                std::span<const uint8_t> codes,
                MatrixShape shape,
                const ScaleLayout& layout,
                std::span<const float> scales,
                std::span<float> out) noexcept {
  DequantizeMatrix(format, codes, shape, layout, scales, out);
}

void Dequantize(const FormatSpec& format,
                std::span<const uint16_t> codes,
                MatrixShape shape,
                const ScaleLayout& layout,
                std::span<const float> scales,
                std::span<float> out) noexcept {
  DequantizeMatrix(format, codes, shape, layout, scales, out);
}

}  // namespace numsim
