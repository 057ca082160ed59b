// Conversions of single numbers that take fewer operations than the rounding rule. They are for a
// device, where a cast at the speed of memory has time for about twenty operations per element.
// They equal the rule for every float32 except NaN, which the caller handles
// (tests/cast/cast_shortcut_test.cc).
//
// How narrower exponent ranges work: let g be the spacing of the target's values at |x|. With e the
// larger of the exponents of |x| and of the target's smallest normal binade, g = 2^(e - m) for m
// mantissa bits. Then c = 2^23 g = 2^(e + 23 - m) is a float32 whose last bit is worth g. So the
// processor rounds |x| + c to a multiple of g, and the bits of that sum minus the bits of c are the
// integer |x| / g, rounded. The ordinal is that integer plus (e - e_min) << m, which follows from
// the exponent of c. Subnormals of the target take the same path, and the sum is far from a carry
// into its exponent. Example, e4m3fn, |x| = 0.78: e = -1, g = 2^-4, c = 2^19,
// |x| + c = 2^19 + 12 g, and the ordinal is 12 + ((-1 + 6) << 3) = 0x34, or 0.75. Ties go to even
// sums, which are even ordinals if m > 0.
//
// Stochastic rounding (variant A) adds with truncation and computes the rest |x| - g floor(|x| / g)
// exactly. With nu = rest / g, it rounds away when nu >= 1 - R / 2^N. Up to 16 random bits that is
// a comparison of floats. For more, it is the carry of the first 32 bits of nu plus R.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

enum class EncodeShortcutKind : uint8_t {
  kNone,
  kNearestNarrower,     // nearest even, ExponentRange::kNarrower
  kNearestSame,         // nearest even, kSame
  kStochasticNarrower,  // variant A
  kStochasticSame,
};

// The constants of one encoding shortcut; c and m are those of the text above.
struct EncodeShortcut {
  EncodeShortcutKind kind = EncodeShortcutKind::kNone;
  bool unsigned_zero = false;
  int cut = 0;              // 23 - m
  int to_sign = 0;          // right shift from the sign bit of a float32 to that of a code
  uint32_t up = 0;          // narrower: bits of c minus exponent bits of |x|; same: half an ulp - 1
  int32_t smallest = 0;     // the bits of the smallest c
  int32_t rebase = 0;       // added to an ordinal when rounding down
  int32_t rebase_away = 0;  // rebase + 1
  int32_t bound = 0;        // the largest ordinal: of the largest value or the overflow after it
  uint32_t sign_bit = 0;    // the sign bit of a code
  uint32_t nan_code = 0;
  uint32_t nan_sign = 0;
  uint32_t random_mask = 0;  // the bits of R in each field of a random word
};

// Returns the shortcut for encoding float32 under the plan. Its kind is kNone if there is none.
EncodeShortcut MakeEncodeShortcut(const EncodePlan& plan) noexcept;

// The float operations of the shortcuts, on the host. They require finite numbers >= 0, except
// where noted.
struct HostFloats {
  // Returns |x|, given the bits of any x.
  static float Magnitude(uint32_t bits) { return std::bit_cast<float>(bits & 0x7FFFFFFFu); }
  // Returns a + b rounded to nearest even, for any numbers.
  static float Add(float a, float b) { return a + b; }
  // Returns a + b rounded toward zero. Operands may be infinite.
  static float AddTowardZero(float a, float b) {
    const float sum = a + b;
    const bool above = static_cast<double>(sum) - static_cast<double>(b) > static_cast<double>(a);
    return above ? std::bit_cast<float>(std::bit_cast<uint32_t>(sum) - 1) : sum;
  }
  // Returns a * b + c. Used only where the result is exact.
  static float MultiplyAdd(float a, float b, float c) {
    return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                              static_cast<double>(c));
  }
  static float Multiply(float a, float b) { return a * b; }
  // Returns the integer part of a < 2^32. For other numbers the result is arbitrary.
  static uint32_t Truncate(float a) { return a < 0x1p32f ? static_cast<uint32_t>(a) : 0; }
  // Returns 2^23 + field kField of the word. Fields have kBits bits, 8 or 16, and are counted from
  // the low end.
  template <int kBits, int kField>
  static float FloatOfField(uint32_t word) {
    constexpr uint32_t kMask = (1u << kBits) - 1;
    return std::bit_cast<float>(0x4B000000u | (word >> (kBits * kField) & kMask));
  }
};

// Returns (1 - R / 2^N) / 2^23, with R at the top of field kField of the word and zeros below it in
// the field. Fields have kBits bits, 8 or 16.
template <class Floats, int kBits, int kField>
NUMSIM_INLINE float AwayThreshold(uint32_t word) {
  constexpr float kFields = static_cast<float>(1 << kBits);
  constexpr float kUnit = 0x1p-23f / kFields;
  return Floats::MultiplyAdd(
      Floats::template FloatOfField<kBits, kField>(word), -kUnit, (0x1p23f + kFields) * kUnit);
}

// Subtracting the bits of c from this constant gives the bits of 2^55 / c = 2^32 / g.
inline constexpr uint32_t kTwoTo55OverC = (2u * 127 + 55) << 23;

// Returns the bits of c for |x|. For infinity and numbers near it, c is the smallest c or infinity;
// in both cases the ordinal exceeds the bound.
NUMSIM_INLINE uint32_t UnitBits(const EncodeShortcut& s, uint32_t bits) {
  const int32_t c = static_cast<int32_t>((bits & 0x7F800000u) + s.up);
  return static_cast<uint32_t>(c > s.smallest ? c : s.smallest);
}

// Returns ordinal + rebase, limited to the bound.
NUMSIM_INLINE uint32_t Bounded(const EncodeShortcut& s, uint32_t ordinal, int32_t rebase = 0) {
  const int32_t rebased = static_cast<int32_t>(ordinal + static_cast<uint32_t>(rebase));
  return static_cast<uint32_t>(rebased < s.bound ? rebased : s.bound);
}

// The functions below return the ordinal that the rule gives, with overflow handled. Each requires
// a shortcut of its own kind.
template <class Floats>
NUMSIM_INLINE uint32_t OrdinalNearestNarrower(const EncodeShortcut& s, uint32_t bits) {
  const uint32_t c = UnitBits(s, bits);
  const float sum = Floats::Add(Floats::Magnitude(bits), std::bit_cast<float>(c));
  return Bounded(s, std::bit_cast<uint32_t>(sum) - c + (c >> s.cut), s.rebase);
}

// R is at the top of field kField of the word, whose fields have kBits bits. Bits below R are
// ignored.
template <class Floats, int kBits, int kField>
NUMSIM_INLINE uint32_t OrdinalStochasticNarrower(const EncodeShortcut& s,
                                                 uint32_t bits,
                                                 uint32_t word) {
  const uint32_t c_bits = UnitBits(s, bits);
  const float c = std::bit_cast<float>(c_bits);
  const float magnitude = Floats::Magnitude(bits);
  const float sum = Floats::AddTowardZero(magnitude, c);
  const float rest = Floats::Add(magnitude, -Floats::Add(sum, -c));
  const uint32_t down = std::bit_cast<uint32_t>(sum) - c_bits + (c_bits >> s.cut);
  const uint32_t random = word & s.random_mask;
  if constexpr (kBits == 32) {
    const float per_unit = std::bit_cast<float>(kTwoTo55OverC - c_bits);
    const uint32_t nu = Floats::Truncate(Floats::Multiply(rest, per_unit));
    const uint64_t sums = (uint64_t{down} << 32 | nu) + random;
    return Bounded(s, static_cast<uint32_t>(sums >> 32), s.rebase);
  } else {
    const float threshold = Floats::Multiply(AwayThreshold<Floats, kBits, kField>(random), c);
    return Bounded(s, down, rest >= threshold ? s.rebase_away : s.rebase);
  }
}

NUMSIM_INLINE uint32_t OrdinalNearestSame(const EncodeShortcut& s, uint32_t bits) {
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t odd = magnitude >> s.cut & 1;
  return Bounded(s, (magnitude + odd + s.up) >> s.cut);
}

// R is passed as for OrdinalStochasticNarrower. The fraction has 23 - m bits.
template <int kBits, int kField>
NUMSIM_INLINE uint32_t OrdinalStochasticSame(const EncodeShortcut& s,
                                             uint32_t bits,
                                             uint32_t word) {
  constexpr uint32_t kTopField = ~uint32_t{0} << (32 - kBits);
  const uint32_t top = word << (32 - kBits * (kField + 1)) & (s.random_mask & kTopField);
  return Bounded(s, ((bits & 0x7FFFFFFFu) + (top >> (32 - s.cut))) >> s.cut);
}

// Returns the code of an ordinal. Not for NaN and, if unsigned_zero is set, not for ordinal 0,
// whose code is 0.
NUMSIM_INLINE uint32_t SignedCode(const EncodeShortcut& s, uint32_t bits, uint32_t ordinal) {
  return ordinal | (bits >> s.to_sign & s.sign_bit);
}

// Returns the code of a NaN.
NUMSIM_INLINE uint32_t NanOf(const EncodeShortcut& s, uint32_t bits) {
  return s.nan_code | (bits >> s.to_sign & s.sign_bit & s.nan_sign);
}

// The constants of one decoding shortcut. The fields of a magnitude, placed in those of a float32,
// give the value divided by a power of two, also if that float32 is subnormal.
struct DecodeShortcut {
  bool usable = false;
  bool has_specials = false;  // codes above max_placed are infinity or NaN
  bool nan_is_negative_zero = false;
  bool has_infinity = false;
  int to_top = 0;           // left shift to the top of the word: 32 - Bits()
  int down = 0;             // right shift from there to the fields of a float32
  uint32_t mask = 0;        // the bits of sign and magnitude in the fields of a float32
  uint32_t max_placed = 0;  // the largest finite magnitude, placed in the fields of a float32
  uint32_t infinity_placed = 0;
  uint32_t nan_sign = 0;  // the sign bit of a float32 if NaNs have a sign, else 0
  float scale = 1;        // the power of two
};

// Returns the shortcut for decoding the format. It is not usable if the format is not
// sign-magnitude, lacks a zero, has a subnormal gap, or has exponents beyond those that a float32
// and the power of two can represent; nor if values are float32 subnormals, unless the smallest
// normal exponent is that of float32.
DecodeShortcut MakeDecodeShortcut(const FormatSpec& format) noexcept;

// Returns the float32 bits of the value of a code. Bits above the format's width are ignored.
// Requires s.usable.
template <class Floats>
NUMSIM_INLINE uint32_t DecodeByShortcut(const DecodeShortcut& s, uint32_t code) {
  const int32_t top = static_cast<int32_t>(code << s.to_top);
  const uint32_t placed = static_cast<uint32_t>(top >> s.down) & s.mask;
  uint32_t bits = std::bit_cast<uint32_t>(Floats::Multiply(std::bit_cast<float>(placed), s.scale));
  if (s.has_specials) {
    const uint32_t magnitude = placed & 0x7FFFFFFFu;
    const bool infinite = s.has_infinity && magnitude == s.infinity_placed;
    const uint32_t special =
        infinite ? (placed & 0x80000000u) | 0x7F800000u : (placed & s.nan_sign) | 0x7FC00000u;
    if (magnitude > s.max_placed) bits = special;
  }
  if (s.nan_is_negative_zero && placed == 0x80000000u) bits = 0x7FC00000u;
  return bits;
}

}  // namespace numsim
