// Operands of inner products for the tests of accumulation: codes of a format in distributions in
// which rules differ.
#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/inputs.h"

namespace numsim {

enum class Spread {
  kAllCodes,     // every code, and often one of zeros, infinities, NaN, smallest and largest
  kFiniteCodes,  // every finite code alike
  kNormal,       // about normally distributed, a tenth of them zero or tiny
  kCancelling,   // large products in pairs that cancel, small ones between them
  kExponents,    // 2^-8 .. 2^8, every binade alike
};
inline constexpr Spread kSpreads[] = {Spread::kAllCodes,
                                      Spread::kFiniteCodes,
                                      Spread::kNormal,
                                      Spread::kCancelling,
                                      Spread::kExponents};
inline constexpr Spread kFiniteSpreads[] = {
    Spread::kFiniteCodes, Spread::kNormal, Spread::kCancelling, Spread::kExponents};

inline void PrintTo(Spread spread, std::ostream* os) {
  constexpr const char* kNames[] = {
      "all codes", "finite codes", "normal", "cancelling", "exponents"};
  *os << kNames[static_cast<int>(spread)];
}

// Which factor of a product: pairs cancel where one side changes its sign and the other does not.
enum class Side { kLeft, kRight };

inline double UnitRandom(oracle::TestRandom& random) {
  return std::ldexp(static_cast<double>(random.Next() >> 11), -53);
}

// Elements 2 i and 2 i + 1 of kCancelling are a pair; others draw each element by itself.
inline double SpreadValue(
    Spread spread, Side side, size_t k, double before, oracle::TestRandom& random) {
  const double sign = random.Below(2) != 0 ? -1 : 1;
  const double uniform = UnitRandom(random);
  switch (spread) {
    case Spread::kNormal: {
      if (random.Below(10) == 0) return sign * (random.Below(2) != 0 ? 0 : std::ldexp(uniform, -9));
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += UnitRandom(random);
      return sum;
    }
    case Spread::kCancelling: {
      const bool large = k / 2 % 3 == 0;
      if (!large) return sign * std::ldexp(1 + uniform, -static_cast<int>(random.Below(6)));
      if (k % 2 == 0) return sign * 100 * (1 + uniform);
      return side == Side::kLeft ? -before : before;
    }
    default:
      return sign * std::ldexp(1 + uniform, static_cast<int>(random.Below(17)) - 8);
  }
}

inline bool IsFiniteCode(const FormatSpec& format, uint32_t code) {
  const ValueClass c = Classify(format, code);
  return c != ValueClass::kInfinity && c != ValueClass::kNan;
}

// A zero, infinity, NaN, or a smallest or largest finite number, of either sign.
inline uint32_t EdgeCode(const FormatSpec& format, oracle::TestRandom& random) {
  const uint32_t sign = random.Below(2) != 0 ? format.SignBit() : 0;
  switch (random.Below(6)) {
    case 0:
      return format.HasNan() ? format.NanCode() : sign;
    case 1:
      return 1 | sign;
    case 2:
      return format.MaxFiniteCode() | sign;
    case 3:
      return sign;
    default:
      return format.HasInfinity() ? format.InfinityCode() | sign : sign;
  }
}

inline uint32_t AnyCode(const FormatSpec& format, bool finite, oracle::TestRandom& random) {
  uint32_t code = random.Next32() & format.CodeMask();
  for (int i = 0; !IsFiniteCode(format, code) && (finite || i < 1); ++i) {
    code = random.Next32() & format.CodeMask();
  }
  return code;
}

// `n` codes of `format`. Values of int8 are 20 times as large.
inline std::vector<uint32_t> SpreadCodes(
    const FormatSpec& format, Spread spread, Side side, size_t n, oracle::TestRandom& random) {
  std::vector<uint32_t> codes(n);
  const double unit =
      format.sign == Sign::kTwosComplement && spread != Spread::kCancelling ? 20 : 1;
  const uint32_t edge = EdgeCode(format, random);
  double before = 0;
  for (size_t k = 0; k < n; ++k) {
    if (spread == Spread::kAllCodes || spread == Spread::kFiniteCodes) {
      const bool finite = spread == Spread::kFiniteCodes;
      codes[k] = !finite && random.Below(8) == 0 ? edge : AnyCode(format, finite, random);
      continue;
    }
    before = SpreadValue(spread, side, k, before, random);
    codes[k] = Encode(format, unit * before, {}, Overflow::kSaturate);
  }
  return codes;
}

inline std::vector<float> ValuesOf(const FormatSpec& format, const std::vector<uint32_t>& codes) {
  std::vector<float> values;
  values.reserve(codes.size());
  for (const uint32_t code : codes) values.push_back(Decode(format, code));
  return values;
}

}  // namespace numsim
