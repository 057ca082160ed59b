// The block-scaled accumulation modes as paths for gemm_tiles.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/gemm/internal/gemm_block_scaled_simd.h"
#include "numsim/gemm/internal/gemm_paths.h"

namespace numsim {

// The scales of one operand as the unit takes them: for each vector, one per block.
struct UnitScales {
  size_t rows = 0;
  size_t block = 0;  // elements that share a scale; 0: all of a vector
  size_t blocks = 1;
  std::vector<float> values;  // rows x blocks

  DotScales Of(size_t row) const {
    return {std::span(values).subspan(row * blocks, blocks), block};
  }
  // Returns the scale of element k. NaN, and what is beyond the last vector, counts as zero.
  float At(size_t row, size_t k) const {
    if (row >= rows) return 0;
    const float scale = values[row * blocks + (block == 0 ? 0 : k / block)];
    return std::isnan(scale) ? 0 : scale;
  }
};

// A mode with groups: the sums of groups are products in float32, which holds them exactly.
class ScaledGroupsPath {
 public:
  using Packed = float;
  using Result = float;
  using Environment = DefaultFloatEnvironment;
  struct State {
    float acc[kMaxTile];
  };

  ScaledGroupsPath(const GemmOperand& a,
                   const UnitScales& scales_a,
                   const GemmOperand& b,
                   const UnitScales& scales_b,
                   const AccumulationMode& mode)
      : shape(Float32Tile()),
        block(1024 / static_cast<size_t>(mode.chunk) * static_cast<size_t>(mode.chunk)),
        a_(a),
        b_(b),
        scales_a_(scales_a),
        scales_b_(scales_b),
        fraction_bits_(mode.fraction_bits),
        chunk_(static_cast<size_t>(mode.chunk)),
        group_(static_cast<size_t>(mode.group)),
        least_exponent_(mode.format.MinExponent()) {}

  const TileShape shape;
  const size_t block;
  static constexpr bool copies = false;

  // Values, then for each group the scales of the vectors, and then their exponents.
  size_t PanelSize(size_t width, size_t depth) const {
    return width * (depth + Groups(depth) * kFloatsOfScale);
  }
  void PackA(size_t first, size_t count, InnerRange range, float* panels) const {
    Pack(a_, scales_a_, shape.rows, first, count, range, panels);
  }
  void PackB(size_t first, size_t count, InnerRange range, float* panels) const {
    Pack(b_, scales_b_, shape.cols, first, count, range, panels);
  }
  void Multiply(const float* a, const float* b, size_t, size_t depth, size_t, State& state) const {
    constexpr size_t kMostGroups = 4;
    alignas(64) float sums[kMostGroups * kMaxTile];
    const size_t tile = shape.rows * shape.cols, groups = Groups(depth);
    ScaledGroups step{.fraction_bits = fraction_bits_,
                      .count = 0,
                      .sums = sums,
                      .scales_a = Scales(a, shape.rows, depth),
                      .scales_b = Scales(b, shape.cols, depth),
                      .exponents_a = Exponents(a, shape.rows, depth),
                      .exponents_b = Exponents(b, shape.cols, depth)};
    for (size_t g = 0; g < groups; g += step.count) {
      step.count = std::min(chunk_ / group_, groups - g);
      for (size_t i = 0; i < step.count; ++i) {
        const size_t k = (g + i) * group_;
        MultiplyTile(a + k * shape.rows,
                     b + k * shape.cols,
                     std::min(group_, depth - k),
                     true,
                     sums + i * tile);
      }
      AddScaledGroups(step, state.acc);
      step.scales_a += step.count * shape.rows;
      step.scales_b += step.count * shape.cols;
      step.exponents_a += step.count * shape.rows;
      step.exponents_b += step.count * shape.cols;
    }
  }
  void Clear(State& state) const { state = {}; }
  const float* Finish(State& state) const { return state.acc; }

 private:
  static constexpr size_t kFloatsOfScale = 3;  // a double and an int32

  size_t Groups(size_t depth) const { return (depth + group_ - 1) / group_; }
  // Return the places of scales and exponents in a panel.
  size_t ScalesAt(size_t width, size_t depth) const { return width * depth; }
  size_t ExponentsAt(size_t width, size_t depth) const {
    return width * (depth + 2 * Groups(depth));
  }
  const double* Scales(const float* panel, size_t width, size_t depth) const {
    return reinterpret_cast<const double*>(panel + ScalesAt(width, depth));
  }
  const int32_t* Exponents(const float* panel, size_t width, size_t depth) const {
    return reinterpret_cast<const int32_t*>(panel + ExponentsAt(width, depth));
  }

  void Pack(const GemmOperand& operand,
            const UnitScales& scales,
            size_t width,
            size_t first,
            size_t count,
            InnerRange range,
            float* panels) const {
    const size_t depth = range.Size(), size = PanelSize(width, depth);
    PackFloatPanels(operand, width, first, count, range, panels, size);
    for (size_t s = 0; s < count; ++s) {
      float* const panel = panels + s * size;
      auto* values = reinterpret_cast<double*>(panel + ScalesAt(width, depth));
      auto* exponents = reinterpret_cast<int32_t*>(panel + ExponentsAt(width, depth));
      for (size_t k = range.begin; k < range.end; k += group_) {
        for (size_t v = 0; v < width; ++v, ++values, ++exponents) {
          const float scale = scales.At((first + s) * width + v, k);
          *values = scale;
          *exponents = scale == 0 ? kNoScaleExponent : std::max(std::ilogb(scale), least_exponent_);
        }
      }
    }
  }

  const GemmOperand& a_;
  const GemmOperand& b_;
  const UnitScales& scales_a_;
  const UnitScales& scales_b_;
  int fraction_bits_;
  size_t chunk_, group_;
  int least_exponent_;
};

// A mode without groups whose scales are powers of two, as the aligned sum of the operands without
// scales: before each chunk the accumulator is divided by the scales of the chunk, after it multiplied
// by them. Both are exact if no number leaves the normal range of float32.
class ScaledAlignedPath : public AlignedPath {
 public:
  ScaledAlignedPath(const GemmOperand& a,
                    const OperandRange& range_a,
                    const UnitScales& scales_a,
                    const GemmOperand& b,
                    const OperandRange& range_b,
                    const UnitScales& scales_b,
                    const AccumulationMode& aligned,
                    AlignedLanes lanes)
      : AlignedPath(a, range_a, b, range_b, aligned, lanes),
        scales_a_(scales_a),
        scales_b_(scales_b),
        chunk_(static_cast<size_t>(aligned.chunk)) {}

  // The panel of the aligned sum, then the scales as AlignedRun has them.
  size_t PanelSize(size_t width, size_t depth) const {
    return Values(width, depth) + (2 * Chunks(depth) * width * sizeof(float) + 63) / 64 * 64;
  }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    for (size_t s = 0; s < count; ++s) {
      uint8_t* const panel = panels + s * PanelSize(shape.rows, range.Size());
      AlignedPath::PackA(first + s, 1, range, panel);
      PackScales(scales_a_, shape.rows, first + s, range, panel);
    }
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    for (size_t s = 0; s < count; ++s) {
      uint8_t* const panel = panels + s * PanelSize(shape.cols, range.Size());
      AlignedPath::PackB(first + s, 1, range, panel);
      PackScales(scales_b_, shape.cols, first + s, range, panel);
    }
  }
  void Multiply(
      const uint8_t* a, const uint8_t* b, size_t, size_t depth, size_t, State& state) const {
    const AlignedRun run{.a = a,
                         .b = b,
                         .panel_depth = depth,
                         .begin = 0,
                         .end = depth,
                         .scales_a = Scales(a, shape.rows, depth),
                         .scales_b = Scales(b, shape.cols, depth)};
    AlignedMultiplyTile(sums(), run, state.acc);
  }

 private:
  const float* Scales(const uint8_t* panel, size_t width, size_t depth) const {
    return reinterpret_cast<const float*>(panel + Values(width, depth));
  }
  size_t Chunks(size_t depth) const { return (depth + chunk_ - 1) / chunk_; }
  size_t Values(size_t width, size_t depth) const { return AlignedPath::PanelSize(width, depth); }

  void PackScales(const UnitScales& scales,
                  size_t width,
                  size_t strip,
                  InnerRange range,
                  uint8_t* panel) const {
    auto* to = reinterpret_cast<float*>(panel + Values(width, range.Size()));
    for (size_t k = range.begin; k < range.end; k += chunk_) {
      for (size_t v = 0; v < width; ++v, ++to) {
        const float scale = scales.At(strip * width + v, k);
        to[width] = scale == 0 ? 1 : scale;  // of no vector, or of one whose results are NaN
        to[0] = 1 / to[width];
      }
      to += width;
    }
  }

  const UnitScales& scales_a_;
  const UnitScales& scales_b_;
  size_t chunk_;
};

}  // namespace numsim
