#include "numsim/quantize/quantize.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/cast/shared/round_to_element.h"
#include "numsim/formats/named_formats.h"
#include "numsim/formats/value_table.h"
#include "numsim/quantize/internal/joined_rows.h"
#include "numsim/quantize/internal/quantize_device.h"
#include "numsim/quantize/internal/transpose_simd.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/quantize/shared/require_scales.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {
namespace {

// The prefetch distance in elements: far enough for the next row of a matrix that is read twice,
// row by row.
constexpr size_t kAhead = 4 * kPiece;
// Tiles of a transposed store. The rows fill a cache line of the output, the columns are enough for
// the processor's prefetch to pay off, and a tile of codes fits the second-level cache.
constexpr size_t kTileRows = 64;
constexpr size_t kTileCols = 1024;

// A run of at most kPiece elements of one row.
struct Piece {
  size_t row, begin, end;

  size_t Size() const { return end - begin; }
};

// Cuts every row into pieces.
class Pieces {
 public:
  explicit Pieces(MatrixShape shape) : cols_(shape.cols), per_row_(CeilDiv(shape.cols, kPiece)) {
    count_ = shape.rows * per_row_;
  }

  size_t Count() const { return count_; }

  Piece At(size_t i) const {
    const size_t begin = i % per_row_ * kPiece;
    return {i / per_row_, begin, std::min(begin + kPiece, cols_)};
  }

 private:
  size_t cols_, per_row_, count_;
};

// The factors of the elements of a piece.
class PieceFactors {
 public:
  // `factors` holds one factor per scale of the matrix.
  PieceFactors(const Piece& piece, const ScaleGrid& grid, const float* factors)
      : from_(factors + grid.Index(piece.row, piece.begin)),
        size_(piece.Size()),
        run_(grid.tile_cols),
        to_edge_(run_ - piece.begin % run_) {}

  // Returns the factor of all elements, if they share one.
  std::optional<float> One() const {
    if (size_ > to_edge_) return std::nullopt;
    return *from_;
  }

  // Returns the factors as those of runs, if EncodeScaledSimd takes them so.
  std::optional<RunFactors> Runs() const {
    if (size_ <= to_edge_) return RunFactors{from_, RunFactors::kOneRun};
    const bool whole = to_edge_ == run_ && std::has_single_bit(run_);
    if (!whole || run_ < RunFactors::kLeastRun) return std::nullopt;
    return RunFactors{from_, std::countr_zero(run_)};
  }

  // Returns the factors of all elements, one after the other, in `memory` or where they are.
  const float* Each(float (&memory)[kPiece + kSpreadPadding]) const {
    if (run_ == 1) return from_;
    Spread(from_, to_edge_, run_, size_, memory);
    return memory;
  }

 private:
  const float* from_;
  size_t size_, run_, to_edge_;
};

// Writes out[i] = in[i] times its factor, for i < n. `in` may equal `out`.
void ScaleRun(const float* in, size_t n, const PieceFactors& factors, float* out) {
  if (const std::optional<float> one = factors.One()) {
    if (*one != 1 || in != out) Multiply(in, n, *one, out);
    return;
  }
  float memory[kPiece + kSpreadPadding];
  MultiplyEach(in, n, factors.Each(memory), out);
}

// Scales and encodes a prefix of a piece in one pass and returns its length, possibly 0. The next
// piece begins `ahead` elements after this one.
size_t EncodeScaled(const EncodePlan& plan,
                    const float* in,
                    size_t n,
                    size_t ahead,
                    const PieceFactors& factors,
                    uint8_t* codes,
                    const ArrayRandom& random) {
  if (UsesScalarReference() || !EncodesInVectors(plan)) return 0;
  if (const std::optional<RunFactors> runs = factors.Runs()) {
    return EncodeScaledSimd(plan, in, n, *runs, ahead, codes, random);
  }
  float memory[kPiece + kSpreadPadding];
  return EncodeScaledSimd(plan, in, n, {factors.Each(memory), 0}, ahead, codes, random);
}

size_t EncodeScaled(const EncodePlan&,
                    const float*,
                    size_t,
                    size_t,
                    const PieceFactors&,
                    uint16_t*,
                    const ArrayRandom&) {
  return 0;
}

// Writes the codes of a piece. Its elements begin at `in` and its random bits at
// random.first_index. The next piece begins at in + ahead.
template <typename Code>
void QuantizePiece(const EncodePlan& plan,
                   const float* in,
                   size_t ahead,
                   const Piece& piece,
                   const ScaleGrid& grid,
                   const float* inv_scales,
                   Code* codes,
                   const ArrayRandom& random) {
  const PieceFactors factors(piece, grid, inv_scales);
  const size_t n = piece.Size();
  const size_t done = EncodeScaled(plan, in, n, ahead, factors, codes, random);
  if (done == n) return;
  const ArrayRandom left = Advance(random, done);
  if (factors.One() == 1.0f) return EncodeSerial(plan, in + done, n - done, codes + done, left);
  float scaled[kPiece];
  ScaleRun(in, n, factors, scaled);
  EncodeSerial(plan, scaled + done, n - done, codes + done, left);
}

template <typename Code>
void QuantizeInOrder(const EncodePlan& plan,
                     std::span<const float> in,
                     MatrixShape shape,
                     const ScaleGrid& grid,
                     std::span<const float> inv_scales,
                     std::span<Code> codes,
                     const ArrayRandom& random) {
  const Pieces pieces(shape);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      const size_t at = piece.row * shape.cols + piece.begin;
      QuantizePiece(plan,
                    in.data() + at,
                    kAhead,
                    piece,
                    grid,
                    inv_scales.data(),
                    codes.data() + at,
                    Advance(random, at));
    }
  });
}

template <typename Code>
void QuantizeColumns(const EncodePlan& plan,
                     std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     std::span<const float> inv_scales,
                     std::span<Code> codes,
                     const ArrayRandom& random) {
  const JoinedColumns joined(shape);
  float repeated[kPiece];
  for (size_t i = 0; i < joined.count; ++i) {
    std::copy(inv_scales.begin(), inv_scales.end(), repeated + i * shape.cols);
  }
  const size_t n = joined.whole.Elements();
  QuantizeInOrder(plan,
                  in.first(n),
                  joined.whole,
                  ScaleGrid(joined.whole, layout),
                  std::span<const float>(repeated, joined.whole.cols),
                  codes.first(n),
                  random);
  if (joined.rest.rows == 0) return;
  QuantizeInOrder(plan,
                  in.subspan(n),
                  joined.rest,
                  ScaleGrid(joined.rest, layout),
                  inv_scales,
                  codes.subspan(n),
                  Advance(random, n));
}

template <typename Code>
void QuantizeTransposed(const EncodePlan& plan,
                        std::span<const float> in,
                        MatrixShape shape,
                        const ScaleGrid& grid,
                        std::span<const float> inv_scales,
                        std::span<Code> codes,
                        const ArrayRandom& random) {
  const size_t tiles_down = CeilDiv(shape.rows, kTileRows);
  const size_t tiles_across = CeilDiv(shape.cols, kTileCols);
  ParallelFor(tiles_down * tiles_across, 1, [&](size_t first, size_t last) {
    Code tile[kTileRows * kTileCols];
    for (size_t t = first; t < last; ++t) {
      // Consecutive tiles fill neighbouring parts of the same output rows.
      const size_t r0 = t % tiles_down * kTileRows;
      const size_t r1 = std::min(r0 + kTileRows, shape.rows);
      const size_t c0 = t / tiles_down * kTileCols;
      const size_t c1 = std::min(c0 + kTileCols, shape.cols);
      for (size_t r = r0; r < r1; ++r) {
        const size_t at = r * shape.cols + c0;
        QuantizePiece(plan,
                      in.data() + at,
                      shape.cols,
                      {r, c0, c1},
                      grid,
                      inv_scales.data(),
                      tile + (r - r0) * kTileCols,
                      Advance(random, at));
      }
      Transpose(tile, kTileCols, r1 - r0, c1 - c0, codes.data() + c0 * shape.rows + r0, shape.rows);
    }
  });
}

template <typename Code>
void QuantizeOnHost(const EncodePlan& plan,
                    std::span<const float> in,
                    MatrixShape shape,
                    ScaleLayout layout,
                    std::span<const float> inv_scales,
                    std::span<Code> codes,
                    const ArrayRandom& random,
                    bool transpose) {
  if (transpose) {
    QuantizeTransposed(plan, in, shape, ScaleGrid(shape, layout), inv_scales, codes, random);
  } else if (JoinedColumns::Serves(shape, layout)) {
    QuantizeColumns(plan, in, shape, layout, inv_scales, codes, random);
  } else {
    JoinRows(shape, layout);
    QuantizeInOrder(plan, in, shape, ScaleGrid(shape, layout), inv_scales, codes, random);
  }
}

template <typename Code>
void QuantizeMatrix(const EncodePlan& plan,
                    ConstFloatSpan in,
                    const ScaleLayout& layout,
                    MatrixSpan<const float> inv_scales,
                    MatrixSpan<Code> codes,
                    const ArrayRandom& random,
                    bool transpose) {
  RequireContiguous(in, "Quantize");
  RequireSize(codes.Elements(), in.Shape(), "Quantize", "codes");
  RequireScales(inv_scales.Elements(), layout, in.Shape(), "Quantize", "inv_scales");
  RequireCodeBytes(sizeof(Code), plan.format.Bits(), "Quantize", "codes");
  const Place place = OnePlace("Quantize", {in.place, inv_scales.place, codes.place});
  if (in.Elements() == 0) return;
  if constexpr (NUMSIM_HAVE_CUDA) {
    const auto run = [&](ConstFloatSpan from, MatrixSpan<const float> factors, Code* to) {
      cuda::Quantize(
          plan, from, layout, factors, transpose ? nullptr : to, transpose ? to : nullptr, random);
    };
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return run(in, inv_scales, codes.data);
    }
    if (UsesDevice() && !plan.format.IsTable()) {
      OffloadedCall call;
      const MatrixSpan<Code> there = call.Room<Code>(codes.Shape());
      run(call.In(in.Float32()), call.In(inv_scales), there.data);
      return call.Out(there, codes);
    }
  }
  QuantizeOnHost(plan,
                 in.Float32().Span(),
                 in.Shape(),
                 layout,
                 inv_scales.Span(),
                 codes.Span(),
                 random,
                 transpose);
}

template <typename Code>
void DequantizeOnHost(const FormatSpec& format,
                      std::span<const Code> codes,
                      MatrixShape shape,
                      ScaleLayout layout,
                      std::span<const float> scales,
                      std::span<float> out) {
  JoinRows(shape, layout);
  const ScaleGrid grid(shape, layout);
  const Pieces pieces(shape);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      const size_t at = piece.row * shape.cols + piece.begin;
      DecodeSerial(format, codes.data() + at, piece.Size(), out.data() + at);
      const PieceFactors factors(piece, grid, scales.data());
      ScaleRun(out.data() + at, piece.Size(), factors, out.data() + at);
    }
  });
}

template <typename Code>
void DequantizeMatrix(const FormatSpec& format,
                      MatrixSpan<const Code> codes,
                      const ScaleLayout& layout,
                      MatrixSpan<const float> scales,
                      FloatSpan out) {
  RequireContiguous(out, "Dequantize");
  RequireSize(codes.Elements(), out.Shape(), "Dequantize", "codes");
  RequireScales(scales.Elements(), layout, out.Shape(), "Dequantize", "scales");
  RequireCodeBytes(sizeof(Code), format.Bits(), "Dequantize", "codes");
  const Place place = OnePlace("Dequantize", {codes.place, scales.place, out.place});
  if (codes.Empty()) return;
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(format, "a device");
      return cuda::Dequantize(format, codes.data, layout, scales, out);
    }
    if (UsesDevice() && !format.IsTable()) {
      OffloadedCall call;
      const MatrixSpan<float> there = call.Room<float>(out.Shape());
      cuda::Dequantize(format, call.In(codes).data, layout, call.In(scales), there);
      call.Out(there, out.Float32());
      return RoundToElement(out);
    }
  }
  DequantizeOnHost(format, codes.Span(), out.Shape(), layout, scales.Span(), out.Float32().Span());
  RoundToElement(out);
}

}  // namespace

void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              MatrixSpan<uint8_t> codes,
              const ArrayRandom& random,
              bool transpose) {
  QuantizeMatrix(plan, in, layout, inv_scales, codes, random, transpose);
}

void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              MatrixSpan<uint16_t> codes,
              const ArrayRandom& random,
              bool transpose) {
  QuantizeMatrix(plan, in, layout, inv_scales, codes, random, transpose);
}

void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  std::span<const float> inv_scales,
                  std::span<const float> scales,
                  std::span<float> out,
                  const ArrayRandom& random) {
  RequireSize(in.size(), shape, "FakeQuantize", "in");
  RequireSize(out.size(), shape, "FakeQuantize", "out");
  RequireScales(inv_scales.size(), layout, shape, "FakeQuantize", "inv_scales");
  RequireScales(scales.size(), layout, shape, "FakeQuantize", "scales");
  if (in.empty()) return;
  ScaleLayout joined = layout;
  JoinRows(shape, joined);
  const ScaleGrid grid(shape, joined);
  const Pieces pieces(shape);
  ParallelFor(pieces.Count(), kPiecesPerGrain, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Piece piece = pieces.At(i);
      const size_t at = piece.row * shape.cols + piece.begin;
      const size_t n = piece.Size();
      float* to = out.data() + at;
      ScaleRun(in.data() + at, n, PieceFactors(piece, grid, inv_scales.data()), to);
      FakeQuantizeSerial(plan, to, n, to, Advance(random, at));
      ScaleRun(to, n, PieceFactors(piece, grid, scales.data()), to);
    }
  });
}

void Dequantize(const FormatSpec& format,
                MatrixSpan<const uint8_t> codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out) {
  DequantizeMatrix(format, codes, layout, scales, out);
}

void Dequantize(const FormatSpec& format,
                MatrixSpan<const uint16_t> codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out) {
  DequantizeMatrix(format, codes, layout, scales, out);
}

void Convert(ConstFloatSpan in, FloatSpan out) {
  RequireContiguous(in, "Convert");
  RequireContiguous(out, "Convert");
  RequireSize(out.Elements(), in.Elements(), "Convert", "out");
  const Place place = OnePlace("Convert", {in.place, out.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return cuda::Convert(in, out);
  }
  const bool rounds = out.element != Element::kFloat32;
  const FormatSpec format = rounds ? kBf16 : kFp32;
  FakeQuantize(
      MakeEncodePlan(format, Rounding{}, Overflow::kNonsaturate), in.Float32(), out.Float32());
}

}  // namespace numsim
