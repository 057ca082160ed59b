// EncodePlan: the constants of one conversion, worked out once per array from format, rounding and
// overflow policy. The rule (encode_rule.inc) reads nothing else.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/flags.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// How the exponents of source and target compare; narrower cases are cheaper.
enum class ExponentRange : uint8_t {
  kSame,      // the target's smallest normal binade is the source's: bf16, tf32
  kNarrower,  // every subnormal of the source is far below half the target's smallest value
  kGeneral,   // anything else; also every directed mode, where a tiny number may round away
};

// The rule has three ways to round; a mode takes one of them.
enum class RuleMode : uint8_t { kNearestEven, kOther, kStochastic };

constexpr RuleMode RuleModeOf(RoundingMode mode) {
  if (mode == RoundingMode::kNearestEven) return RuleMode::kNearestEven;
  return mode == RoundingMode::kStochastic ? RuleMode::kStochastic : RuleMode::kOther;
}

struct EncodePlan {
  FormatSpec format;
  Rounding rounding;
  Overflow overflow = Overflow::kNonsaturate;
  // Of kUnderflow. No code depends on it; set it after MakeEncodePlan where the default does not
  // fit.
  Tininess tininess = Tininess::kAfterRounding;

  // The rule rounds to *ordinals*: ordinal = magnitude code + ordinal_offset. ordinal_offset is 0 except for
  // e8m0fnu, whose ordinal 0 stands for the zero that it lacks.
  int32_t mantissa_bits = 0;
  int32_t min_exponent = 0;  // of the binade that begins at ordinal 2^mantissa_bits
  uint32_t ordinal_offset = 0;
  uint32_t max_ordinal = 0;
  // Ordinals of a finite overflow and of infinity: [0] positive, [1] negative.
  uint32_t overflow_ordinal[2] = {0, 0};
  uint32_t infinity_ordinal[2] = {0, 0};
  // All four ordinals above are the same, and the format is sign-magnitude.
  bool uniform_specials = false;
  bool unsigned_zero = false;  // sign-magnitude without negative zero
  uint32_t sign_bit = 0;       // in a code; 0 for unsigned formats
  uint32_t nan_code = 0;       // full code of a positive NaN, or what stands in for it
  uint32_t nan_sign = 0;       // bits that a negative NaN adds
  // Unsigned formats: codes of negative numbers and of minus infinity.
  uint32_t negative_code = 0;
  uint32_t negative_infinity_code = 0;

  // Flags of what is not finite: infinity of each sign, NaN.
  Flags infinity_flags[2] = {0, 0};
  Flags nan_flags = 0;
  bool has_underflow = true;  // the format has exponents

  // Which of the rule's cases applies to float32 input.
  ExponentRange range_f32 = ExponentRange::kGeneral;
};

// Requires a format that ValidateFormat accepts, a mode of rounding_modes.inc and, in a stochastic
// one, 1..32 random bits.
EncodePlan MakeEncodePlan(const FormatSpec& format,
                          const Rounding& rounding = {},
                          Overflow overflow = Overflow::kNonsaturate) noexcept;

}  // namespace numsim
