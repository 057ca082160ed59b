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

// How the paths below use VNNI and AMX. `parts` panels of each operand that lie one after another are
// multiplied as one long panel. The panels of A belong to strip `strip` and start at part `part`.

class VnniPanels {
 public:
  using Environment = DefaultFloatEnvironment;
  static constexpr TileShape kShape = kVnniTile;

  VnniPanels(size_t rows, size_t parts)
      : strips_((rows + kShape.rows - 1) / kShape.rows), sums_a_(strips_ * parts * kShape.rows) {}

  static size_t Size(size_t width, size_t depth) { return width * Groups(depth) * 4; }

  static void PackA(const GemmOperand& a,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t* panels,
                    size_t stride) {
    PackInt8Panels(a, kShape.rows, first, count, range, 0, panels, stride);
  }
  static void PackB(const GemmOperand& b,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t* panels,
                    size_t stride) {
    PackInt8Panels(b, kShape.cols, first, count, range, 0x80, panels, stride);
  }
  // Takes note of one packed part of A.
  void Note(size_t strip, size_t part, size_t depth, const uint8_t* panel) {
    SumVnniPanel(panel, Groups(depth), sums_a_.data() + (part * strips_ + strip) * kShape.rows);
  }

  void Multiply(const uint8_t* a,
                const uint8_t* b,
                size_t strip,
                size_t part,
                size_t parts,
                size_t depth,
                bool fresh,
                int32_t* sums) const {
    int32_t sums_a[kShape.rows] = {};
    for (size_t i = part; i < part + parts; ++i) {
      const int32_t* const from = sums_a_.data() + (i * strips_ + strip) * kShape.rows;
      for (size_t r = 0; r < kShape.rows; ++r) sums_a[r] += from[r];
    }
    MultiplyVnniTile(a, b, parts * Groups(depth), sums_a, fresh, sums);
  }

 private:
  static size_t Groups(size_t depth) { return (depth + 3) / 4; }

  size_t strips_;
  std::vector<int32_t> sums_a_;  // sums of the vectors of A over the packed block
};

class AmxPanels {
 public:
  struct Environment {
    DefaultFloatEnvironment floats;
    AmxTiles tiles;
  };
  static constexpr TileShape kShape = kAmxTile;

  AmxPanels(size_t, size_t) {}

  static size_t Size(size_t width, size_t depth) { return width * Steps(depth) * kAmxDepth; }

  static void PackA(const GemmOperand& a,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t* panels,
                    size_t stride) {
    PackInt8Steps(a, kShape.rows, first, count, range, panels, stride);
  }
  static void PackB(const GemmOperand& b,
                    size_t first,
                    size_t count,
                    InnerRange range,
                    uint8_t* panels,
                    size_t stride) {
    PackInt8Panels(b, kShape.cols, first, count, range, 0, panels, stride);
    const size_t filled = (range.Size() + 3) / 4 * 4 * kShape.cols;
    const size_t size = Size(kShape.cols, range.Size());
    for (size_t s = 0; s < count; ++s) {
      std::fill(panels + s * stride + filled, panels + s * stride + size, uint8_t{0});
    }
  }
  void Note(size_t, size_t, size_t, const uint8_t*) {}

  void Multiply(const uint8_t* a,
                const uint8_t* b,
                size_t,
                size_t,
                size_t parts,
                size_t depth,
                bool fresh,
                int32_t* sums) const {
    MultiplyAmxTile(a, b, parts * Steps(depth), fresh, sums);
  }

 private:
  static size_t Steps(size_t depth) { return (depth + kAmxDepth - 1) / kAmxDepth; }
};

template <class Panels, typename Total>
class Int8Path {
 public:
  using Packed = uint8_t;
  using Result = Total;
  using Environment = typename Panels::Environment;
  static constexpr size_t kTile = Panels::kShape.rows * Panels::kShape.cols;
  struct State {
    alignas(64) Total total[kTile];
  };

  Int8Path(const GemmOperand& a, const GemmOperand& b) : a_(a), b_(b), panels_(a.rows, 1) {}

  const TileShape shape = Panels::kShape;
  const size_t block = 2048;
  static constexpr bool copies = true;

  size_t PanelSize(size_t width, size_t depth) const { return Panels::Size(width, depth); }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) {
    const size_t stride = PanelSize(shape.rows, range.Size());
    Panels::PackA(a_, first, count, range, panels, stride);
    for (size_t s = 0; s < count; ++s) {
      panels_.Note(first + s, 0, range.Size(), panels + s * stride);
    }
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    Panels::PackB(b_, first, count, range, panels, PanelSize(shape.cols, range.Size()));
  }
  void Clear(State&) const {}  // Multiply clears the sums itself
  void Multiply(const uint8_t* a,
                const uint8_t* b,
                size_t strip,
                size_t depth,
                size_t from,
                State& state) const {
    AddBlock<kTile>(from == 0, state.total, [&](bool fresh, int32_t* sums) {
      panels_.Multiply(a, b, strip, 0, 1, depth, fresh, sums);
    });
  }
  const Total* Finish(State& state) const { return state.total; }

 private:
  const GemmOperand& a_;
  const GemmOperand& b_;
  Panels panels_;
};

template <typename Total>
using VnniPath = Int8Path<VnniPanels, Total>;
template <typename Total>
using AmxPath = Int8Path<AmxPanels, Total>;

}  // namespace numsim
