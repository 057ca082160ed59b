// Edge cases of float64 operands.
#include <bit>
#include <cmath>

#include "numsim/formats/decode.h"
#include "numsim/oracle/internal/case_makers.h"
#include "numsim/rounding/shared/float64_bits.h"

namespace numsim {
namespace {

constexpr int kWidestTriedTarget = 16;  // widest format of which every value is tried

// Adds a float64 and its two neighbours, each with both signs.
void AddAround(double x, CodeList& list) {
  const auto bits = std::bit_cast<uint64_t>(std::abs(x));
  for (const uint64_t magnitude : {bits - 1, bits, bits + 1}) {
    if (magnitude > kFloat64Infinity) continue;  // below zero, or beyond infinity
    list.Add(magnitude);
    list.Add(magnitude | kFloat64Sign);
  }
}

// Returns the magnitude codes that are tried, the largest one included.
std::vector<uint64_t> TriedMagnitudes(const FormatSpec& target) {
  CodeList list(target.Bits());
  if (target.Bits() <= kWidestTriedTarget) {
    for (uint32_t magnitude = 0; magnitude <= target.MaxFiniteCode(); ++magnitude) {
      list.Add(magnitude);
    }
    return list.codes();
  }
  for (const uint64_t code : AwkwardCodes(target, 0)) {
    const uint64_t magnitude = code & target.MagnitudeMask();
    if (magnitude <= target.MaxFiniteCode()) list.Add(magnitude);
  }
  return list.codes();
}

// Returns the value of a magnitude code, also of the one above the largest, because rounding
// precedes the overflow test. Formats have at most 24 significant bits: float64 holds it.
double ValueOf(const FormatSpec& target, uint32_t magnitude) {
  const Dyadic value = MagnitudeValue(target, magnitude);
  return std::ldexp(static_cast<double>(value.significand), value.exponent);
}

}  // namespace

std::vector<uint64_t> AwkwardFloat64s(const FormatSpec& target) {
  CodeList list(64);
  for (const uint64_t special : {uint64_t{0},
                                 uint64_t{1},
                                 (uint64_t{1} << 52) - 1,  // the largest subnormal
                                 uint64_t{1} << 52,
                                 kFloat64Infinity - 1,
                                 kFloat64Infinity,
                                 kFloat64Infinity + 1,  // signalling
                                 kFloat64Infinity | kFloat64Quiet,
                                 ~kFloat64Sign}) {
    list.Add(special);
    list.Add(special | kFloat64Sign);
  }
  for (const uint64_t code : TriedMagnitudes(target)) {
    const auto magnitude = static_cast<uint32_t>(code);
    const double value = ValueOf(target, magnitude), next = ValueOf(target, magnitude + 1);
    AddAround(value, list);
    AddAround((value + next) / 2, list);
  }
  return list.codes();
}

}  // namespace numsim
