#include <algorithm>
#include <bit>

#include "numsim/formats/decode.h"
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

// Returns the number of binades by which a number lies below the target's smallest normal binade,
// as amd_hip_fp8.h counts it: a source subnormal counts as in the smallest normal binade of the
// source.
int BinadesBelow(const ConversionRule& rule, uint64_t magnitude) {
  const SourceLayout& layout = rule.Inner();
  const int field = static_cast<int>(magnitude >> layout.mantissa_bits);
  const int exponent = (field == 0 ? 1 : field) - layout.bias;
  return rule.plan.min_exponent - exponent;
}

constexpr int kShiftPeriod = 64;  // x86 shifts 64-bit words by a count modulo 64

// Returns half a unit in the last place that rounding keeps of a float32 mantissa.
uint32_t HalfUlp(const ConversionRule& rule) {
  return uint32_t{1} << (22 - rule.plan.mantissa_bits);
}

}  // namespace

uint32_t EncodeHip(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  const SourceLayout& layout = rule.Inner();
  const uint64_t sign = bits & layout.sign_bit;
  uint64_t magnitude = bits & layout.MagnitudeMask();
  if (magnitude > rule.largest) return EncodeByPlan(rule, sign | (layout.infinity - 1), random);
  const int below = BinadesBelow(rule, magnitude);
  if (below >= kShiftPeriod) {
    const bool subnormal = (magnitude >> layout.mantissa_bits) == 0;
    if (subnormal) return EncodeByPlan(rule, sign | 1, 0);  // shifted out: a signed zero
    const auto periods = static_cast<uint64_t>(below / kShiftPeriod);
    magnitude += (periods * kShiftPeriod) << layout.mantissa_bits;
  }
  return EncodeByPlan(rule, sign | magnitude, random);
}

void HipBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints) {
  const SourceLayout& layout = rule.Inner();
  breakpoints.push_back(rule.largest + 1);
  // The first exponent field of every period, from the target's smallest normal binade down.
  for (int field = rule.plan.min_exponent + layout.bias - kShiftPeriod + 1; field > 1;
       field -= kShiftPeriod) {
    breakpoints.push_back(static_cast<uint64_t>(field) << layout.mantissa_bits);
  }
  breakpoints.push_back(uint64_t{1} << layout.mantissa_bits);
}

uint32_t EncodeExponentHalfUp(const ConversionRule&, uint64_t bits, uint32_t) {
  const auto magnitude = static_cast<uint32_t>(bits) & 0x7FFFFFFFu;
  const uint32_t half = magnitude < 0x00800000u ? 0x003FFFFFu : 0x00400000u;
  return (magnitude + half) >> 23;
}

uint32_t EncodeExponentHalfUpOfPositive(const ConversionRule& rule,
                                        uint64_t bits,
                                        uint32_t random) {
  return (bits >> 31) != 0 ? rule.nan[1] : EncodeExponentHalfUp(rule, bits, random);
}

uint32_t EncodeExponentByMode(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  const auto magnitude = static_cast<uint32_t>(bits) & 0x7FFFFFFFu;
  const RoundingMode mode = rule.plan.rounding.mode;
  const uint32_t code = mode == RoundingMode::kUp ? (magnitude + 0x007FFFFFu) >> 23
                        : mode == RoundingMode::kTowardZero
                            ? magnitude >> 23
                            : EncodeExponentHalfUp(rule, bits, random);
  return rule.plan.overflow == Overflow::kSaturate ? std::min(code, 0xFEu) : code;
}

uint32_t EncodeQPyTorch(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  const auto magnitude = static_cast<uint32_t>(bits) & 0x7FFFFFFFu;
  const int field = static_cast<int>(magnitude >> 23);
  const int distance = rule.plan.min_exponent + 127 - field;
  if (distance <= 0) return EncodeByPlan(rule, bits, random);
  // In units of 2^(min_exponent - 23), the last place of the sum.
  const uint64_t significand = field == 0 ? 0 : (magnitude & 0x7FFFFFu) | 0x800000u;
  const int shift = distance < 26 ? distance : 26;  // from 26 on, all is below a quarter
  const uint64_t kept = significand >> shift;
  const uint64_t rounded = (significand + ((uint64_t{1} << (shift - 1)) - 1) + (kept & 1)) >> shift;
  const auto rank =
      static_cast<uint32_t>((rounded + HalfUlp(rule)) >> (23 - rule.plan.mantissa_bits));
  return rank == 0 ? 0 : rank | ((bits >> 31) != 0 ? rule.plan.sign_bit : 0);
}

uint32_t EncodeBitsAndBytes(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  const auto word = static_cast<uint32_t>(bits);
  const uint32_t code = EncodeByPlan(rule, bits, random);
  if ((word >> 31) == 0) return code;
  const uint32_t low = EncodeByPlan(rule, word - 1, random);
  const uint32_t high = EncodeByPlan(rule, word + 1, random);
  const auto value = [&](uint32_t c) { return static_cast<double>(Decode(rule.meaning, c)); };
  const bool tie = low != high && (value(low) + value(high)) / 2 ==
                                      static_cast<double>(std::bit_cast<float>(word));
  if (!tie) return code;
  return (low & 1) != 0 ? low : high;
}

uint32_t RoundNanPayload(const ConversionRule& rule, uint64_t bits, uint32_t) {
  const auto word = static_cast<uint32_t>(bits);
  const uint32_t half = HalfUlp(rule);
  const bool to_even = rule.plan.rounding.mode == RoundingMode::kNearestEven;
  const bool odd = (word & (half << 1)) != 0;
  const uint32_t rounded = (word + (to_even && !odd ? half - 1 : half)) & ~(half + (half - 1));
  const uint32_t magnitude = rounded & 0x7FFFFFFFu;
  if (magnitude < 0x7F800000u) return (rounded >> 31) != 0 ? rule.plan.sign_bit : 0;
  const SignedCodes& codes = magnitude == 0x7F800000u ? rule.infinity : rule.nan;
  return codes[word >> 31];
}

void RoundNanPayloadBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints) {
  breakpoints.push_back(0x80000000u - HalfUlp(rule));
}

uint32_t CudaNanFromFloat64(const ConversionRule& rule, uint64_t bits, uint32_t) {
  const uint32_t sign = (bits >> 63) != 0 ? rule.plan.sign_bit : 0;
  return sign | 0x7Eu | static_cast<uint32_t>((bits >> 50) & 1);
}

void CudaNanBreakpoints(const ConversionRule&, std::vector<uint64_t>& breakpoints) {
  for (uint64_t quarter = 1; quarter < 4; ++quarter) {
    breakpoints.push_back(kFloat64Layout.infinity | (quarter << 50));
  }
}

uint32_t RoundNanToBf16(const ConversionRule&, uint64_t bits, uint32_t random) {
  const auto word = static_cast<uint32_t>(bits);
  const bool away = (random & 0xFFFFu) < (word & 0xFFFFu);
  const uint32_t code = ((word >> 16) + (away ? 1 : 0)) & 0xFFFFu;
  return (code & 0x7FFFu) > 0x7F80u ? 0x7FC0u : code;
}

void RoundNanToBf16Breakpoints(const ConversionRule&, std::vector<uint64_t>& breakpoints) {
  breakpoints.push_back(0x7F810000u);
  breakpoints.push_back(0x7FFF0000u);
}

}  // namespace numsim
