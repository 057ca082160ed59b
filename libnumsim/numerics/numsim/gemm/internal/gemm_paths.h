// The accumulation modes that have a tile kernel, as paths for gemm_tiles.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_scratch.h"
#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {

// A float32 accumulator that restarts every `promote` products: its value is added to a Total.
template <typename Total>
struct PromotedState {
  float acc[kMaxTile];
  Total total[kMaxTile];

  void Promote(size_t n) { PromoteSums(acc, total, n); }
};

// Returns the finished sums. Without promotion they are the accumulators themselves, whose zeros
// may be negative.
template <typename Total>
const Total* Finished(PromotedState<Total>& state, size_t promote, size_t tile) {
  if constexpr (std::is_same_v<Total, float>) {
    if (promote == 0) return state.acc;
  }
  state.Promote(tile);
  return state.total;
}

// Cuts `depth` products, the first of which is product `from` of the segment, where promotions are
// due. Calls multiply(offset, n) for each part and promotes between them. promote == 0: never.
template <typename Total, class Multiply>
void MultiplyInParts(size_t promote,
                     size_t from,
                     size_t depth,
                     size_t tile,
                     PromotedState<Total>& state,
                     const Multiply& multiply) {
  for (size_t done = 0; done < depth;) {
    const size_t left = promote == 0 ? depth : promote - (from + done) % promote;
    const size_t n = std::min(left, depth - done);
    multiply(done, n);
    done += n;
    if (promote != 0 && (from + done) % promote == 0) state.Promote(tile);
  }
}

// Modes fp32 and fp32-chunked. With Total = double also exact sums of integers that are so small
// that float32 holds the sum of `promote` products.
template <typename Total>
class Float32Path {
 public:
  using Packed = float;
  using State = PromotedState<Total>;
  using Result = Total;
  using Environment = DefaultFloatEnvironment;

  Float32Path(const GemmOperand& a, const GemmOperand& b, size_t promote)
      : shape(Float32Tile()), copies(!b.values.Empty()), a_(a), b_(b), promote_(promote) {}

  const TileShape shape;
  const size_t block = 1024;
  const bool copies;

  size_t PanelSize(size_t width, size_t depth) const { return width * depth; }
  void PackA(size_t first, size_t count, InnerRange range, float* panels) const {
    PackFloatPanels(
        a_, shape.rows, first, count, range, panels, PanelSize(shape.rows, range.Size()));
  }
  void PackB(size_t first, size_t count, InnerRange range, float* panels) const {
    PackFloatPanels(
        b_, shape.cols, first, count, range, panels, PanelSize(shape.cols, range.Size()));
  }
  void Multiply(
      const float* a, const float* b, size_t, size_t depth, size_t from, State& state) const {
    const auto part = [&](size_t k, size_t n) {
      MultiplyTile(a + k * shape.rows, b + k * shape.cols, n, from + k == 0, state.acc);
    };
    MultiplyInParts(promote_, from, depth, shape.rows * shape.cols, state, part);
  }
  // MultiplyTile clears the accumulators itself, and without promotion float totals are not used.
  void Clear(State& state) const {
    if (promote_ != 0 || !std::is_same_v<Total, float>)
      std::fill_n(state.total, shape.rows * shape.cols, Total{0});
  }
  const Total* Finish(State& state) const {
    return Finished(state, promote_, shape.rows * shape.cols);
  }

 private:
  const GemmOperand& a_;
  const GemmOperand& b_;
  size_t promote_;
};

// Selects the part of a value that takes part in a float64 product.
class Slice {
 public:
  // Takes the whole value; with `finite_only`, NaN and infinities count as 0.
  explicit Slice(bool finite_only = false) : finite_only_(finite_only) {}
  // Takes `bits` bits of |x| 2^-unit from bit `from` on, as an integer with the sign of x. NaN and
  // infinities count as 0.
  Slice(int unit, int from, int bits)
      : finite_only_(true),
        cut_(true),
        down_(std::ldexp(1.0, -unit - from)),
        wrap_(std::ldexp(1.0, bits)),
        unwrap_(std::ldexp(1.0, -bits)) {}

  bool IsWhole() const { return !finite_only_; }

  double operator()(float x) const {
    if (finite_only_ && !std::isfinite(x)) return 0;
    if (!cut_) return x;
    const double shifted = std::trunc(x * down_);
    return shifted - std::trunc(shifted * unwrap_) * wrap_;
  }

 private:
  bool finite_only_;
  bool cut_ = false;
  double down_ = 1, wrap_ = 1, unwrap_ = 1;
};

// Mode fp64, and exact sums of slices that fit float64.
class Float64Path {
 public:
  using Packed = double;
  using Result = double;
  using Environment = DefaultFloatEnvironment;
  struct State {
    double acc[kMaxTile];
  };

  Float64Path(const GemmOperand& a, const GemmOperand& b, const Slice& of_a, const Slice& of_b)
      : shape(Float64Tile()), a_(a), b_(b), slice_a_(of_a), slice_b_(of_b) {}

  const TileShape shape;
  const size_t block = 512;
  static constexpr bool copies = false;

  size_t PanelSize(size_t width, size_t depth) const { return width * depth; }
  void PackA(size_t first, size_t count, InnerRange range, double* panels) const {
    Pack(a_, slice_a_, shape.rows, first, count, range, panels);
  }
  void PackB(size_t first, size_t count, InnerRange range, double* panels) const {
    Pack(b_, slice_b_, shape.cols, first, count, range, panels);
  }
  void Multiply(
      const double* a, const double* b, size_t, size_t depth, size_t from, State& state) const {
    MultiplyTile(a, b, depth, from == 0, state.acc);
  }
  void Clear(State&) const {}  // MultiplyTile clears the accumulators itself
  const double* Finish(State& state) const { return state.acc; }

 private:
  void Pack(const GemmOperand& operand,
            const Slice& slice,
            size_t width,
            size_t first,
            size_t count,
            InnerRange range,
            double* panels) const {
    const size_t size = PanelSize(width, range.Size()), n = count * size;
    float* const values = Scratch<float>(ScratchUse::kPacking, n);
    PackFloatPanels(operand, width, first, count, range, values, size);
    if (slice.IsWhole()) {
      std::copy_n(values, n, panels);
    } else {
      std::transform(values, values + n, panels, slice);
    }
  }

  const GemmOperand& a_;
  const GemmOperand& b_;
  Slice slice_a_, slice_b_;
};

inline AlignedFactor FactorOf(const GemmOperand& operand, const OperandRange& range) {
  const bool in_window =
      range.low_exponent >= -kAlignedWindow && range.high_exponent <= kAlignedWindow;
  return {operand.format.mantissa_bits + 1,
          range.high_exponent - range.low_exponent,
          range.high_exponent - range.unit,
          in_window};
}

// Modes of kind kAligned with ProductOrder kAscending or kBytePairs.
class AlignedPath {
 public:
  using Packed = uint8_t;
  using State = PromotedState<float>;
  using Result = float;
  using Environment = DefaultFloatEnvironment;

  AlignedPath(const GemmOperand& a,
              const OperandRange& range_a,
              const GemmOperand& b,
              const OperandRange& range_b,
              const AccumulationMode& mode,
              AlignedLanes lanes)
      : shape(AreOfFloat64(lanes) ? Float64Tile() : Float32Tile()),
        block(Block(mode)),
        a_(a),
        b_(b),
        grid_a_{a.format.MinExponent(), range_a.low_exponent, range_a.unit},
        grid_b_{b.format.MinExponent(), range_b.low_exponent, range_b.unit},
        sums_{mode.fraction_bits,
              mode.chunk,
              lanes,
              range_a.unit + range_b.unit,
              range_a.low_exponent + range_b.low_exponent},
        promote_(static_cast<size_t>(mode.promote)),
        byte_pairs_(mode.order == ProductOrder::kBytePairs) {}

  const TileShape shape;
  const size_t block;
  static constexpr bool copies = false;

  size_t PanelSize(size_t width, size_t depth) const {
    return AlignedPanelSize(sums_, width, Padded(depth));
  }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    Pack(a_, true, shape.rows, first, count, range, panels);
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    Pack(b_, false, shape.cols, first, count, range, panels);
  }
  void Multiply(
      const uint8_t* a, const uint8_t* b, size_t, size_t depth, size_t from, State& state) const {
    const size_t padded = Padded(depth);
    const auto part = [&](size_t k, size_t n) {
      AlignedMultiplyTile(sums_, AlignedRun{a, b, padded, k, k + n}, state.acc);
    };
    MultiplyInParts(promote_, from, padded, shape.rows * shape.cols, state, part);
  }
  void Clear(State& state) const { state = {}; }
  const float* Finish(State& state) const {
    return Finished(state, promote_, shape.rows * shape.cols);
  }

 protected:
  const AlignedSums& sums() const { return sums_; }

 private:
  static constexpr size_t kPairGroup = 32;

  // Returns a block size of whole chunks and, for byte pairs, also of whole groups of 32.
  static size_t Block(const AccumulationMode& mode) {
    const size_t chunk = static_cast<size_t>(mode.chunk);
    const bool pairs = mode.order == ProductOrder::kBytePairs;
    const size_t unit = pairs ? std::lcm(chunk, kPairGroup) : chunk;
    return unit * std::max<size_t>(1, 1024 / unit);
  }
  // For byte pairs, a tensor core reads zeros beyond the end.
  size_t Padded(size_t depth) const {
    return byte_pairs_ ? (depth + kPairGroup - 1) / kPairGroup * kPairGroup : depth;
  }
  // Returns the position at which product k of a block is packed.
  static size_t Place(size_t k) {
    const size_t in_group = k % kPairGroup;
    const size_t half = in_group % 4 / 2;
    return k - in_group + half * (kPairGroup / 2) + in_group / 4 * 2 + in_group % 2;
  }

  void Pack(const GemmOperand& operand,
            bool is_a,
            size_t width,
            size_t first,
            size_t count,
            InnerRange range,
            uint8_t* panels) const {
    const size_t depth = range.Size(), padded = Padded(depth);
    const size_t stored = width * depth, reordered = byte_pairs_ ? width * padded : 0;
    float* const values = Scratch<float>(ScratchUse::kPacking, count * stored + reordered);
    PackFloatPanels(operand, width, first, count, range, values, stored);
    for (size_t s = 0; s < count; ++s) {
      const float* from = values + s * stored;
      if (byte_pairs_) from = ReorderPairs(from, width, depth, padded, values + count * stored);
      FillAlignedPanel(sums_,
                       is_a,
                       is_a ? grid_a_ : grid_b_,
                       from,
                       padded,
                       panels + s * PanelSize(width, depth));
    }
  }

  static const float* ReorderPairs(
      const float* from, size_t width, size_t depth, size_t padded, float* to) {
    std::fill_n(to, width * padded, 0.0f);
    for (size_t k = 0; k < depth; ++k) std::copy_n(from + k * width, width, to + Place(k) * width);
    return to;
  }

  const GemmOperand& a_;
  const GemmOperand& b_;
  AlignedGrid grid_a_, grid_b_;
  AlignedSums sums_;
  size_t promote_;
  bool byte_pairs_;
};

// The same for lanes kFloatTiles.
class AlignedTilesPath : public AlignedPath {
 public:
  using AlignedPath::AlignedPath;
  struct Environment {
    DefaultFloatEnvironment floats;
    AmxTiles tiles{kAmxPowersTile.rows};
  };
};

}  // namespace numsim
