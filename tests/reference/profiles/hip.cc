#include <cmath>

#include "tests/reference/profiles/conversions.h"

namespace reference {
namespace {

struct Parts {
  bool negative;
  int field;  // of the exponent
  int top_field;
  uint64_t fraction;
  uint64_t significand;  // with the hidden bit of a normal number
  int exponent;          // the number is significand 2^(exponent - mantissa bits)
};

Parts Split(const HipSource& source, uint64_t bits) {
  Parts parts{};
  const int m = source.mantissa_bits;
  parts.top_field = (1 << source.exponent_bits) - 1;
  parts.negative = ((bits >> (m + source.exponent_bits)) & 1) != 0;
  parts.field = static_cast<int>((bits >> m) & static_cast<uint64_t>(parts.top_field));
  parts.fraction = bits & ((uint64_t{1} << m) - 1);
  parts.significand = parts.fraction + (parts.field > 0 ? uint64_t{1} << m : 0);
  parts.exponent = (parts.field > 0 ? parts.field : 1) - parts.top_field / 2;
  return parts;
}

uint32_t LargestCode(const HipTarget& target) {
  if (target.fnuz) return 0x7F;
  return target.mantissa_bits == 3 ? 0x7E : 0x7B;
}

uint32_t OverflowCode(const HipTarget& target, bool negative, bool saturate) {
  const uint32_t sign = negative ? 0x80 : 0;
  if (saturate) return sign | LargestCode(target);
  if (target.fnuz) return 0x80;
  return sign | (target.mantissa_bits == 3 ? 0x7F : 0x7C);
}

// The code of infinities and NaNs, which no setting changes.
uint32_t SpecialCode(const HipTarget& target, const Parts& parts) {
  if (target.fnuz) return 0x80;
  const bool infinity = parts.fraction == 0 && target.mantissa_bits == 2;
  return (parts.negative ? 0x80u : 0u) | (infinity ? 0x7C : 0x7F);
}

// The part of the significand that is left once it stands in the place of the target's binade, and
// the code of that binade's lower end if the number is normal in the target.
struct Placed {
  uint64_t significand;
  uint64_t base;
};

Placed Place(const HipTarget& target, const Parts& parts) {
  const int below = target.min_exponent - parts.exponent;
  if (below >= 0) return {parts.significand >> (below % 64), 0};
  return {parts.significand, static_cast<uint64_t>(-below) << target.mantissa_bits};
}

uint32_t WithSign(const HipTarget& target, bool negative, uint64_t magnitude) {
  if (magnitude == 0 && target.fnuz) return 0;
  return (negative ? 0x80u : 0u) | static_cast<uint32_t>(magnitude);
}

bool Exceeds(const HipTarget& target, const HipSource& source, const Parts& parts) {
  const double magnitude =
      std::ldexp(static_cast<double>(parts.significand), parts.exponent - source.mantissa_bits);
  return magnitude > target.max;
}

}  // namespace

uint32_t HipHost(const HipTarget& target, const HipSource& source, uint64_t bits, bool saturate) {
  const Parts parts = Split(source, bits);
  if (parts.field == parts.top_field) return SpecialCode(target, parts);
  if (Exceeds(target, source, parts)) return OverflowCode(target, parts.negative, saturate);
  const int cut = source.mantissa_bits - target.mantissa_bits;
  const int below = target.min_exponent - parts.exponent;
  // Nearest-even of significand / 2^shift; the code counts such units.
  const int shift = cut + (below > 0 ? below % 64 : 0);
  const Placed placed = Place(target, parts);
  if (shift > source.mantissa_bits + 1) return WithSign(target, parts.negative, 0);
  const uint64_t unit = uint64_t{1} << shift;
  uint64_t code = parts.significand / unit;
  const uint64_t rest = parts.significand % unit;
  if (rest > unit / 2 || (rest == unit / 2 && code % 2 == 1)) ++code;
  return WithSign(target, parts.negative, placed.base + code);
}

uint32_t HipHostStochastic(const HipTarget& target, uint32_t bits, bool saturate, uint32_t random) {
  const HipSource source{23, 8};
  const Parts parts = Split(source, bits);
  if (parts.field == parts.top_field) return SpecialCode(target, parts);
  if (Exceeds(target, source, parts)) return OverflowCode(target, parts.negative, saturate);
  const uint64_t unit = uint64_t{1} << (source.mantissa_bits - target.mantissa_bits);
  const Placed placed = Place(target, parts);
  const uint64_t code = (placed.significand + random % unit) / unit;
  return WithSign(target, parts.negative, placed.base + code);
}

}  // namespace reference
