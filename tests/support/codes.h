// Formats, codes and plans for the tests of arith, judged through decoded
// values.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/reference/inputs.h"
#include "tests/support/special_values.h"

namespace numsim {

inline constexpr Overflow kPolicies[] = {
    Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate};

inline FormatSpec Spec(std::string_view name) { return ParseFormat(name).spec; }

// The value of a code: NaN for NaN, exact otherwise.
inline double Value(const FormatSpec& format, uint32_t code) {
  return static_cast<double>(Decode(format, code));
}
inline double Value(const Operand& a) { return Value(a.format, a.code); }

// The code of a number that the format holds exactly.
inline uint32_t CodeOf(const FormatSpec& format, double value) { return Encode(format, value); }

inline bool IsZero(double x) { return x == 0; }
// Both NaN, or the same number with the same sign.
inline bool SameValue(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y && std::signbit(x) == std::signbit(y);
}

// IEEE 754: the top mantissa bit of a NaN tells quiet from signalling.
inline bool Signals(const Operand& a) {
  const FormatSpec& format = a.format;
  if (format.nan != Nan::kIeee || format.mantissa_bits < 2 || !std::isnan(Value(a))) return false;
  return (a.code >> (format.mantissa_bits - 1) & 1) == 0;
}

inline bool HoldsNegativeZero(const FormatSpec& format) {
  return format.sign == Sign::kSignMagnitude && format.zero == Zero::kSigned;
}

inline std::string Text(const Operand& a) {
  return fmt::format("{} {:#04x} ({:g})", ToString(a.format), a.code, Value(a));
}
inline std::string Text(const EncodePlan& plan) {
  return fmt::format(
      "{} {} {}", ToString(plan.format), ToString(plan.rounding.mode), ToString(plan.overflow));
}
inline std::string Text(const FormatSpec& format, const Rounded& result) {
  return fmt::format("{}, flags {:#04x}", Text(Operand{format, result.code}), result.flags);
}

// Every format of the table of at most 8 bits, and combinations of fields that
// it lacks.
inline std::vector<Format> NarrowFormats() {
  std::vector<Format> formats;
  for (const FormatEntry& entry : FormatTable()) {
    if (entry.spec.Bits() <= 8) formats.push_back({std::string(entry.name), entry.spec});
  }
  for (const Format& custom :
       ParseFormatList("ue5m3,ue4m2:inf=none,nan=none,e4m2,e6m1,e3m3:nan=negative-zero,inf="
                       "top,"
                       "e2m0:inf=none,nan=none,e4m1:nan=all-ones,inf=none")) {
    formats.push_back(custom);
  }
  return formats;
}

// Every code of a format of at most 16 bits.
inline std::vector<Operand> AllCodes(const FormatSpec& format) {
  std::vector<Operand> codes;
  for (uint32_t code = 0; code <= format.CodeMask(); ++code) codes.push_back({format, code});
  return codes;
}

// `n` codes of any format: zeros, ones, ends of the range, NaNs, and random
// codes whose exponents often lie near that of 1.
inline std::vector<Operand> RandomCodes(const FormatSpec& format, size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  const uint32_t one = CodeOf(format, 1.0);
  const uint32_t max = format.MaxFiniteCode();
  const uint32_t special[] = {0, 1, one, max, max + 1, max + 2, format.MagnitudeMask()};
  std::vector<Operand> codes;
  while (codes.size() < n) {
    uint32_t magnitude = random.Next32() & format.MagnitudeMask();
    const uint64_t kind = random.Below(8);
    if (kind == 0) magnitude = special[random.Below(std::size(special))];
    if (kind >= 4) {  // within 2^-4 .. 2^4
      const uint32_t spread = uint32_t{8} << format.mantissa_bits;
      magnitude = one - spread / 2 + static_cast<uint32_t>(random.Below(spread));
    }
    const uint32_t sign = random.Below(2) == 0 ? 0 : format.SignBit();
    codes.push_back({format, (magnitude & format.MagnitudeMask()) | sign});
  }
  return codes;
}

}  // namespace numsim
