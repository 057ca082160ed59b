// The rule of one conversion of a profile, ready to run: what ProfileConversion holds.
//
// Most implementations are data: numsim's rounding rule (EncodePlan) with its own codes for NaN,
// infinity and zero. A function stands only where an implementation does something else.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/profiles/profile.h"
#include "numsim/profiles/random_layout.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

struct ConversionRule;

// The code of a float32 or float64 whose magnitude is finite and not zero, or of a NaN.
using RuleFunction = uint32_t (*)(const ConversionRule& rule, uint64_t bits, uint32_t random);

// Adds to `seams` the magnitudes at which the function's results stop being monotone.
using SeamsFunction = void (*)(const ConversionRule& rule, std::vector<uint64_t>& seams);

// Codes of one input for each sign: [0] positive, [1] negative.
using SignedCodes = std::array<uint32_t, 2>;

// The bit layout of a source type.
struct SourceLayout {
  int mantissa_bits;
  int bias;
  uint64_t sign_bit;
  uint64_t infinity;  // bits of +infinity

  constexpr uint64_t MagnitudeMask() const { return sign_bit - 1; }
};
inline constexpr SourceLayout kFloat32Layout{23, 127, uint64_t{1} << 31, 0x7F800000u};
inline constexpr SourceLayout kFloat64Layout{52, 1023, uint64_t{1} << 63, 0x7FF0000000000000u};

constexpr const SourceLayout& LayoutOf(SourceType type) {
  return type == SourceType::kFloat32 ? kFloat32Layout : kFloat64Layout;
}

struct ConversionRule {
  FormatSpec target;   // asked for
  FormatSpec meaning;  // of the codes
  SourceType source = SourceType::kFloat32;
  // float64 is first rounded to float32, nearest-even; all below is then about float32.
  bool through_float32 = false;
  EncodePlan to_float32;

  EncodePlan plan;           // of finite numbers, in `meaning`
  uint64_t largest = 0;      // magnitude bits of the largest finite value
  bool ignore_sign = false;  // the magnitude is converted
  SignedCodes zero{}, infinity{}, nan{};
  RuleFunction finite = nullptr;       // instead of the plan
  RuleFunction nan_payload = nullptr;  // instead of `nan`
  SeamsFunction seams = nullptr;

  RandomLayout layout;
  bool mirrored_random = false;  // the implementation rounds away for small R, numsim for large

  // Layout of what the rule proper works on.
  const SourceLayout& Inner() const { return through_float32 ? kFloat32Layout : LayoutOf(source); }
};

// The rounding rule on the inner source type.
inline uint32_t EncodeByPlan(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  if (&rule.Inner() == &kFloat32Layout) {
    return EncodeF32(rule.plan, static_cast<uint32_t>(bits), random);
  }
  return EncodeF64(rule.plan, bits, random);
}

// The code of `bits` of rule.source.
inline uint32_t EncodeByRule(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  if (rule.through_float32) bits = EncodeF64(rule.to_float32, bits, 0);
  const SourceLayout& layout = rule.Inner();
  const uint64_t magnitude = bits & layout.MagnitudeMask();
  const bool negative = (bits & layout.sign_bit) != 0;
  if (magnitude - 1 >= layout.infinity - 1) [[unlikely]] {  // zero, infinity or NaN
    if (magnitude == 0) return rule.zero[negative];
    if (magnitude == layout.infinity) return rule.infinity[negative];
    return rule.nan_payload != nullptr ? rule.nan_payload(rule, bits, random) : rule.nan[negative];
  }
  if (rule.mirrored_random) random = ~random;
  if (rule.ignore_sign) bits = magnitude;
  if (rule.finite != nullptr) return rule.finite(rule, bits, random);
  return EncodeByPlan(rule, bits, random);
}

}  // namespace numsim
