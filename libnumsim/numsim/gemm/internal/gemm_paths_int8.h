// Exact sums of int8 products on x86 processors with instructions for them, as paths for
// gemm_tiles.h. Total is int32_t for segments of up to kInt8InInt32 products, else double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "numsim/base/shared/float_environment.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {

// The longest segment of int8 products that is summed in int32.
inline constexpr size_t kInt8InInt32 = size_t{1} << 16;

// Adds the products of one block to the totals of a tile of kSize elements. multiply(fresh, sums)
// adds them to int32 sums, which start at 0 if `fresh`.
template <size_t kSize, typename Total, class Multiply>
void AddBlock(bool first, Total* totals, const Multiply& multiply) {
  if constexpr (std::is_same_v<Total, int32_t>) {
    multiply(first, totals);
  } else {
    alignas(64) int32_t sums[kSize];
    multiply(true, sums);
    if (first) std::fill_n(totals, kSize, Total{0});
    for (size_t i = 0; i < kSize; ++i) totals[i] += sums[i];
  }
}

template <typename Total>
class VnniPath {
 public:
  using Packed = uint8_t;
  using Result = Total;
  using Environment = DefaultFloatEnvironment;
  struct State {
    alignas(64) Total total[kMaxTile];
  };

  VnniPath(const GemmOperand& a, const GemmOperand& b)
      : a_(a), b_(b), sums_a_((a.rows + shape.rows - 1) / shape.rows * shape.rows) {}

  const TileShape shape = kVnniTile;
  const size_t block = 2048;

  size_t PanelSize(size_t width, size_t depth) const { return width * Groups(depth) * 4; }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) {
    const size_t stride = PanelSize(shape.rows, range.Size());
    PackInt8Panels(a_, shape.rows, first, count, range, 0, panels, stride);
    int32_t* const sums = sums_a_.data() + first * shape.rows;
    for (size_t s = 0; s < count; ++s) {
      SumVnniPanel(panels + s * stride, Groups(range.Size()), sums + s * shape.rows);
    }
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    const size_t stride = PanelSize(shape.cols, range.Size());
    PackInt8Panels(b_, shape.cols, first, count, range, 0x80, panels, stride);
  }
  void Clear(State&) const {}  // Multiply clears the sums itself
  void Multiply(const uint8_t* a,
                const uint8_t* b,
                size_t strip,
                size_t depth,
                size_t from,
                State& state) const {
    const int32_t* const sums_a = sums_a_.data() + strip * shape.rows;
    AddBlock<kVnniTile.rows * kVnniTile.cols>(
        from == 0, state.total, [&](bool fresh, int32_t* sums) {
          MultiplyVnniTile(a, b, Groups(depth), sums_a, fresh, sums);
        });
  }
  const Total* Finish(State& state) const { return state.total; }

 private:
  static size_t Groups(size_t depth) { return (depth + 3) / 4; }

  const GemmOperand& a_;
  const GemmOperand& b_;
  std::vector<int32_t> sums_a_;  // sums of the vectors of A over the packed block
};

template <typename Total>
class AmxPath {
 public:
  using Packed = uint8_t;
  using Result = Total;
  struct State {
    alignas(64) Total total[kAmxTile.rows * kAmxTile.cols];
  };
  struct Environment {
    DefaultFloatEnvironment floats;
    AmxTiles tiles;
  };

  AmxPath(const GemmOperand& a, const GemmOperand& b) : a_(a), b_(b) {}

  const TileShape shape = kAmxTile;
  const size_t block = 2048;

  size_t PanelSize(size_t width, size_t depth) const { return width * Steps(depth) * kAmxDepth; }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    PackInt8Steps(a_, shape.rows, first, count, range, panels, PanelSize(shape.rows, range.Size()));
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    const size_t stride = PanelSize(shape.cols, range.Size());
    PackInt8Panels(b_, shape.cols, first, count, range, 0, panels, stride);
    const size_t filled = (range.Size() + 3) / 4 * 4 * shape.cols;
    for (size_t s = 0; s < count; ++s) {
      std::fill(panels + s * stride + filled, panels + (s + 1) * stride, uint8_t{0});
    }
  }
  void Clear(State&) const {}  // Multiply clears the sums itself
  void Multiply(
      const uint8_t* a, const uint8_t* b, size_t, size_t depth, size_t from, State& state) const {
    AddBlock<kAmxTile.rows * kAmxTile.cols>(from == 0, state.total, [&](bool fresh, int32_t* sums) {
      MultiplyAmxTile(a, b, Steps(depth), fresh, sums);
    });
  }
  const Total* Finish(State& state) const { return state.total; }

 private:
  static size_t Steps(size_t depth) { return (depth + kAmxDepth - 1) / kAmxDepth; }

  const GemmOperand& a_;
  const GemmOperand& b_;
};

}  // namespace numsim
