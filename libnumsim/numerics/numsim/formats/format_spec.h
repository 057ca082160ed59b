// FormatSpec: a number format of up to 32 bits as plain data.
//
// A code is split into sign | exponent field | mantissa field, most significant first. Its
// *magnitude code* is the code without the sign. In every format, larger magnitude codes mean
// larger magnitudes, so rounding, overflow and neighbours are arithmetic on magnitude codes:
//
//   0 .. MaxFiniteCode      finite, ascending
//   InfinityCode            if the format has infinities
//   NaN code(s)             the rest, or the code of "negative zero"
//
// The value of a finite magnitude code with exponent field E, mantissa field M and m mantissa bits
// is
//   E > 0:  (2^m + M) * 2^(E - bias - m)
//   E = 0:  M * 2^(1 - bias - m - subnormal_shift)
// If zero == Zero::kNone (E8M0), the first formula also holds for E = 0.
//
// Integers and fixed point are also such formats. With one exponent bit, the subnormals and the one
// normal binade have the same spacing, so int8 is e1m6 with bias -5 stored in two's complement, and
// uint8 is e1m7 with bias -6. Two's complement has room for one more negative number, which the
// format counts in (full_range) or leaves unused.
//
// Sources: [IEEE754], [OCP-OFP8], [OCP-MX], [P3109], [APFloat]; see docs/references.md.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"

namespace numsim {

// The sign of a format's codes.
enum class Sign : uint8_t {
  kUnsigned,        // no sign bit
  kSignMagnitude,   // top bit is the sign
  kTwosComplement,  // negative code = 2^bits - magnitude code
};

// The zeros of a format.
enum class Zero : uint8_t {
  kSigned,    // +0 and -0
  kUnsigned,  // only +0; -0 encodes as +0
  kNone,      // E8M0: no zero; exponent field 0 is a normal binade, zero encodes as the smallest
};

// The code of infinity.
enum class Infinity : uint8_t {
  kNone,
  kIeee,     // exponent all ones, mantissa zero
  kTopCode,  // the largest magnitude code that is not NaN [P3109]
};

// The codes of NaN.
enum class Nan : uint8_t {
  kNone,
  kIeee,          // exponent all ones, mantissa not zero
  kAllOnes,       // all magnitude bits set
  kNegativeZero,  // only the sign bit set
};

// The result of a finite overflow under Overflow::kNonsaturate.
enum class OverflowTo : uint8_t { kInfinity, kNan, kMax };

// A number format as data; the fields are explained above.
struct FormatSpec {
  int8_t exponent_bits = 0;  // 1 .. 8
  int8_t mantissa_bits = 0;  // 0 .. 23, without the hidden bit
  int16_t bias = 0;
  Sign sign = Sign::kSignMagnitude;
  Zero zero = Zero::kSigned;
  Infinity infinity = Infinity::kNone;
  Nan nan = Nan::kNone;
  OverflowTo overflow_to = OverflowTo::kMax;
  // The spacing of the subnormals is IEEE 754's divided by 2^subnormal_shift, which leaves a
  // *subnormal gap* below the smallest normal. Only bitsandbytes' map has one [bnb].
  int8_t subnormal_shift = 0;
  // Two's complement alone: the most negative code is a number, one step below -MaxFinite. False: it
  // is unused, and the numbers are symmetric.
  bool full_range = false;
  // A result between zero and the smallest normal, once it is rounded, becomes a zero of its sign;
  // codes with E = 0 are read as zero.
  bool flush_subnormals = false;
  // 0, or the number of a table of values (value_table.h). Codes then stand for the values of that
  // table and not for those of the formulas above; only their width follows from the other fields.
  uint8_t table = 0;

  friend constexpr bool operator==(const FormatSpec&, const FormatSpec&) = default;

  // Width of a code in bits, including the sign: 2 .. 32.
  NUMSIM_HOST_DEVICE constexpr int Bits() const { return MagnitudeBits() + (IsSigned() ? 1 : 0); }
  NUMSIM_HOST_DEVICE constexpr int MagnitudeBits() const { return exponent_bits + mantissa_bits; }
  // Bytes of the smallest unsigned integer type that holds a code: 1, 2 or 4.
  NUMSIM_HOST_DEVICE constexpr int StorageBytes() const {
    return Bits() <= 8 ? 1 : Bits() <= 16 ? 2 : 4;
  }
  NUMSIM_HOST_DEVICE constexpr bool IsTable() const { return table != 0; }
  NUMSIM_HOST_DEVICE constexpr bool IsSigned() const { return sign != Sign::kUnsigned; }
  // Mask of the sign bit in a code; 0 for an unsigned format.
  NUMSIM_HOST_DEVICE constexpr uint32_t SignBit() const {
    return IsSigned() ? uint32_t{1} << MagnitudeBits() : 0;
  }
  // Mask of all bits of a code.
  NUMSIM_HOST_DEVICE constexpr uint32_t CodeMask() const {
    return static_cast<uint32_t>((uint64_t{1} << Bits()) - 1);
  }
  NUMSIM_HOST_DEVICE constexpr uint32_t MagnitudeMask() const {
    return static_cast<uint32_t>((uint64_t{1} << MagnitudeBits()) - 1);
  }

  // Magnitude code of the largest finite value.
  NUMSIM_HOST_DEVICE constexpr uint32_t MaxFiniteCode() const {
    if (ReservesTopExponent()) return (TopExponentCode()) - 1;
    return MagnitudeMask() - (nan == Nan::kAllOnes ? 1 : 0) -
           (infinity == Infinity::kTopCode ? 1 : 0);
  }
  // Magnitude code of the finite value farthest from zero on one side.
  NUMSIM_HOST_DEVICE constexpr uint32_t LastFiniteCode(bool negative) const {
    return MaxFiniteCode() + (negative && full_range ? 1 : 0);
  }
  NUMSIM_HOST_DEVICE constexpr bool HasInfinity() const { return infinity != Infinity::kNone; }
  // Magnitude code of infinity. Requires HasInfinity().
  NUMSIM_HOST_DEVICE constexpr uint32_t InfinityCode() const { return MaxFiniteCode() + 1; }
  NUMSIM_HOST_DEVICE constexpr bool HasNan() const { return nan != Nan::kNone; }
  // Code of the canonical NaN with the sign bit clear. kIeee: quiet, with the rest of the payload
  // zero. kNegativeZero: the sign bit itself. Requires HasNan().
  NUMSIM_HOST_DEVICE constexpr uint32_t NanCode() const {
    switch (nan) {
      case Nan::kIeee:
        return TopExponentCode() | (uint32_t{1} << (mantissa_bits - 1));
      case Nan::kAllOnes:
        return MagnitudeMask();
      case Nan::kNegativeZero:
        return SignBit();
      case Nan::kNone:
        break;
    }
    return 0;
  }
  // True if there are NaN codes of both signs.
  NUMSIM_HOST_DEVICE constexpr bool NanHasSign() const {
    return IsSigned() && (nan == Nan::kIeee || nan == Nan::kAllOnes);
  }

  // True for integers and fixed point: equally spaced numbers without special codes or -0. They have
  // no exponent, so nothing underflows.
  NUMSIM_HOST_DEVICE constexpr bool IsFixedPoint() const {
    return exponent_bits == 1 && sign != Sign::kSignMagnitude && zero == Zero::kUnsigned &&
           infinity == Infinity::kNone && nan == Nan::kNone && subnormal_shift == 0 &&
           !flush_subnormals && table == 0;
  }
  // True if the numbers are those of the formulas above on both sides of zero, subnormals included:
  // what the rounding shortcuts for arrays require.
  NUMSIM_HOST_DEVICE constexpr bool HasPlainGrid() const {
    return subnormal_shift == 0 && !full_range && !flush_subnormals && table == 0;
  }

  // Exponent of the smallest normal binade: it spans [2^e, 2^(e+1)).
  NUMSIM_HOST_DEVICE constexpr int MinExponent() const {
    return (zero == Zero::kNone ? 0 : 1) - bias;
  }
  // log2 of the spacing of the subnormals. The spacing is also the smallest positive value, unless
  // mantissa_bits == 0 or zero == kNone.
  NUMSIM_HOST_DEVICE constexpr int SubnormalExponent() const {
    return MinExponent() - mantissa_bits - subnormal_shift;
  }
  // Exponent of the binade of the largest finite value, which may be a subnormal.
  NUMSIM_HOST_DEVICE constexpr int MaxExponent() const {
    const uint32_t max = MaxFiniteCode();
    const int field = static_cast<int>(max >> mantissa_bits);
    if (field > 0) return field - bias;
    return SubnormalExponent() + static_cast<int>(std::bit_width(max)) - 1;
  }

 private:
  NUMSIM_HOST_DEVICE constexpr bool ReservesTopExponent() const {
    return infinity == Infinity::kIeee || nan == Nan::kIeee;
  }
  NUMSIM_HOST_DEVICE constexpr uint32_t TopExponentCode() const {
    return ((uint32_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
};

// The class of a code. kUnused: the most negative code of a two's complement grid.
enum class ValueClass : uint8_t { kZero, kSubnormal, kNormal, kInfinity, kNan, kUnused };

// Returns the class of a code. A subnormal of a format that flushes them is a zero. Requires
// code <= format.CodeMask().
constexpr ValueClass Classify(const FormatSpec& format, uint32_t code) {
  uint32_t magnitude = code;
  if (format.sign == Sign::kTwosComplement) {
    if (code == format.SignBit())
      return format.full_range ? ValueClass::kNormal : ValueClass::kUnused;
    if (code & format.SignBit()) magnitude = (0u - code) & format.CodeMask();
  } else {
    if (format.nan == Nan::kNegativeZero && code == format.SignBit()) return ValueClass::kNan;
    magnitude = code & ~format.SignBit();
  }
  if (magnitude > format.MaxFiniteCode()) {
    const bool infinite = format.HasInfinity() && magnitude == format.InfinityCode();
    return infinite ? ValueClass::kInfinity : ValueClass::kNan;
  }
  if (format.zero == Zero::kNone) return ValueClass::kNormal;
  if (magnitude == 0) return ValueClass::kZero;
  if ((magnitude >> format.mantissa_bits) != 0) return ValueClass::kNormal;
  return format.flush_subnormals ? ValueClass::kZero : ValueClass::kSubnormal;
}

}  // namespace numsim
