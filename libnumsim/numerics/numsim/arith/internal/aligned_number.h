// Numbers that tensor cores align by their exponents, and what becomes of their sum.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "numsim/formats/named_formats.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

inline constexpr int kF32MinExponent = -126;
inline constexpr int kF32MaxExponent = 127;
inline constexpr int kLeastAlignment = -133;  // of NVIDIA's tensor cores
inline constexpr uint32_t kF32Infinity = 0x7F800000;
inline constexpr uint32_t kF32Nan = 0x7FC00000;

// (-1)^negative * significand * 2^lowest, and the exponent by which a tensor core aligns it: that
// of its binade, or the least exponent for a subnormal.
struct Aligned {
  bool negative = false;
  uint64_t significand = 0;
  int lowest = 0;
  int exponent = 0;
};

inline Aligned AlignedValue(const Unrounded& x, int min_exponent) {
  const int binade = x.exponent + static_cast<int>(std::bit_width(x.significand)) - 1;
  return {x.negative,
          x.significand,
          x.exponent,
          x.significand == 0 ? min_exponent : std::max(binade, min_exponent)};
}

inline Aligned AlignedProduct(const Aligned& a, const Aligned& b) {
  return {a.negative != b.negative,
          a.significand * b.significand,
          a.lowest + b.lowest,
          a.exponent + b.exponent};
}

// The non-finite values among addends.
struct Specials {
  bool nan = false;
  bool infinity[2] = {false, false};  // positive, negative

  void AddInfinity(bool negative) { infinity[negative ? 1 : 0] = true; }
  void Add(const Unrounded& x) {
    nan = nan || x.kind == NumberKind::kNan;
    if (x.kind == NumberKind::kInfinity) AddInfinity(x.negative);
  }
  // Adds the product a * b.
  void Add(const Unrounded& a, const Unrounded& b) {
    const auto is_zero = [](const Unrounded& x) {
      return x.kind == NumberKind::kFinite && x.significand == 0;
    };
    const bool infinite = a.kind == NumberKind::kInfinity || b.kind == NumberKind::kInfinity;
    if (a.kind == NumberKind::kNan || b.kind == NumberKind::kNan ||
        (infinite && (is_zero(a) || is_zero(b)))) {
      nan = true;
    } else if (infinite) {
      AddInfinity(a.negative != b.negative);
    }
  }
  // Returns the bits of the float32 sum if any addend was not finite.
  std::optional<uint32_t> Sum() const {
    if (nan || (infinity[0] && infinity[1])) return kF32Nan;
    if (infinity[0]) return kF32Infinity;
    if (infinity[1]) return kF32Infinity | kFp32.SignBit();
    return std::nullopt;
  }
};

// Returns x in units of 2^unit, truncated toward zero. Requires the result to fit.
inline int64_t Truncated(const Aligned& x, int unit) {
  const int up = x.lowest - unit;
  const uint64_t magnitude = up >= 0     ? x.significand << std::min(up, 63)
                             : up <= -64 ? 0
                                         : x.significand >> -up;
  return x.negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

inline Aligned F32Accumulator(uint32_t bits) {
  return AlignedValue(ExactValue(kFp32, bits), kF32MinExponent);
}

// Returns sum * 2^unit truncated to `bits` (at most 23) fraction bits of its own exponent, as
// float32 bits; never -0.
inline uint32_t TruncatedF32(int64_t sum, int unit, int bits) {
  static const EncodePlan plan = MakeEncodePlan(kFp32, {.mode = RoundingMode::kTowardZero});
  if (sum == 0) return 0;  // for any unit, even one beyond float32
  const uint32_t sign = sum < 0 ? kFp32.SignBit() : 0;
  uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int width = static_cast<int>(std::bit_width(magnitude));
  if (unit + width - 1 > kF32MaxExponent) return sign | kF32Infinity;
  const int cut = std::max(width - 1 - bits, 0);
  magnitude = magnitude >> cut << cut;
  const uint32_t code = EncodeUnrounded(plan, {NumberKind::kFinite, false, unit, magnitude}).code;
  return code == 0 ? 0 : sign | code;
}

}  // namespace numsim
