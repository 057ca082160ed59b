// Exact sums by int8 digits. The values of an operand are integers in units of its smallest bit.
// They are cut into digits to base 256, from -128 to 127, and the products of digits are added up by
// the instructions for int8: the scheme of [Ozaki] in integers. Products of digits of the same
// weight share a sum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_digits_simd.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_paths_int8.h"
#include "numsim/gemm/internal/gemm_scratch.h"

namespace numsim {

// `Limbs` numbers of 64 bits hold a sum: limb i counts in units of 2^(32 i).
template <class Panels, int Limbs>
class DigitPath {
 public:
  using Packed = uint8_t;
  using Result = double;
  using Environment = typename Panels::Environment;
  static constexpr size_t kTile = Panels::kShape.rows * Panels::kShape.cols;
  struct State {
    alignas(64) int64_t limbs[Limbs][kTile];
    alignas(64) double sums[kTile];
  };

  DigitPath(const GemmOperand& a, const GemmOperand& b, const DigitPlan& plan)
      : a_(a), b_(b), plan_(plan), panels_(a.rows, static_cast<size_t>(plan.a.digits)) {}

  const TileShape shape = Panels::kShape;
  const size_t block = kBlock;
  static constexpr bool copies = false;

  // The panel of a strip holds those of all its digits: A's from the lowest on, B's from the highest
  // on. So the products of one weight are those of neighbouring digits in both.
  size_t PanelSize(size_t width, size_t depth) const {
    const int digits = std::max(plan_.a.digits, plan_.b.digits);
    return static_cast<size_t>(digits) * Panels::Size(width, depth);
  }
  void PackA(size_t first, size_t count, InnerRange range, uint8_t* panels) {
    const size_t depth = range.Size(), stride = PanelSize(shape.rows, depth);
    const GemmOperand cut = Cut(a_, plan_.a, first * shape.rows, count * shape.rows, range);
    for (int i = 0; i < plan_.a.digits; ++i) {
      uint8_t* const to = panels + static_cast<size_t>(i) * Panels::Size(shape.rows, depth);
      Panels::PackA(Digit(cut, i), 0, count, {0, depth}, to, stride);
      for (size_t s = 0; s < count; ++s) {
        panels_.Note(first + s, static_cast<size_t>(i), depth, to + s * stride);
      }
    }
  }
  void PackB(size_t first, size_t count, InnerRange range, uint8_t* panels) const {
    const size_t depth = range.Size(), stride = PanelSize(shape.cols, depth);
    const GemmOperand cut = Cut(b_, plan_.b, first * shape.cols, count * shape.cols, range);
    for (int i = 0; i < plan_.b.digits; ++i) {
      const auto place = static_cast<size_t>(plan_.b.digits - 1 - i);
      uint8_t* const to = panels + place * Panels::Size(shape.cols, depth);
      Panels::PackB(Digit(cut, i), 0, count, {0, depth}, to, stride);
    }
  }
  void Multiply(
      const uint8_t* a, const uint8_t* b, size_t strip, size_t depth, size_t, State& state) const {
    const size_t size_a = Panels::Size(shape.rows, depth);
    const size_t size_b = Panels::Size(shape.cols, depth);
    const int digits_a = plan_.a.digits, digits_b = plan_.b.digits;
    alignas(64) int32_t sums[kTile];
    for (int weight = 0; weight < digits_a + digits_b - 1; ++weight) {
      const int first = std::max(0, weight - digits_b + 1), last = std::min(weight, digits_a - 1);
      const auto from_a = static_cast<size_t>(first);
      const auto from_b = static_cast<size_t>(digits_b - 1) - static_cast<size_t>(weight - first);
      const auto parts = static_cast<size_t>(last - first) + 1;
      panels_.Multiply(
          a + from_a * size_a, b + from_b * size_b, strip, from_a, parts, depth, true, sums);
      const int limb = std::min(weight / kDigitsPerLimb, Limbs - 1);
      AddShifted(sums, 8 * (weight - kDigitsPerLimb * limb), kTile, state.limbs[limb]);
    }
  }
  void Clear(State& state) const { std::fill_n(state.limbs[0], Limbs * kTile, int64_t{0}); }
  const double* Finish(State& state) const {
    const int unit = plan_.a.unit + plan_.b.unit;
    if constexpr (Limbs == 1) {
      RoundToOdd(state.limbs[0], unit, kTile, state.sums);
    } else {
      RoundToOdd(state.limbs[0], state.limbs[1], unit, kTile, state.sums);
    }
    return state.sums;
  }

 private:
  static constexpr int kDigitsPerLimb = 4;
  static constexpr size_t kBlock = 1024;
  static_assert(kBlock * kMostDigits <= kInt8InInt32, "an int32 holds the products of one weight");

  // Returns vectors [first, first + count), as far as there are so many, and the range of an operand
  // as int8 codes: the lowest digits, after which the others follow in memory.
  static GemmOperand Cut(
      const GemmOperand& x, const DigitCut& how, size_t first, size_t count, InnerRange range) {
    const size_t rows = std::min(count, x.rows - first), depth = range.Size();
    const size_t lines = x.transposed ? depth : rows, length = x.transposed ? rows : depth;
    const size_t pitch = x.transposed ? x.rows : x.inner;
    const size_t from = x.transposed ? range.begin * pitch + first : first * pitch + range.begin;
    const size_t size = rows * depth;
    auto* const codes =
        Scratch<uint8_t>(ScratchUse::kDigits, size * static_cast<size_t>(how.digits));
    float* const buffer = Scratch<float>(ScratchUse::kPacking, length);
    for (size_t i = 0; i < lines; ++i) {
      const float* const values = StoredRun(x, from + i * pitch, length, buffer);
      CutIntoDigits(values, length, how.unit, how.digits, codes + i * length, size);
    }
    return {.format = NamedFormat("int8"),
            .codes8 = {codes, 1, size},
            .rows = rows,
            .inner = depth,
            .transposed = x.transposed};
  }
  static GemmOperand Digit(GemmOperand cut, int i) {
    cut.codes8.data += static_cast<size_t>(i) * cut.codes8.Elements();
    return cut;
  }

  const GemmOperand& a_;
  const GemmOperand& b_;
  DigitPlan plan_;
  Panels panels_;
};

}  // namespace numsim
