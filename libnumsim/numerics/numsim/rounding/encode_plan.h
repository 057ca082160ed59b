// EncodePlan: the constants of a conversion, computed once per array from the format, the rounding
// and the overflow policy. The rounding rule (encode_rule.inc) reads nothing else.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/flags.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// The relation between the exponent ranges of source and target. kSame and kNarrower are cheaper.
enum class ExponentRange : uint8_t {
  kSame,      // source and target have the same smallest normal binade: bf16, tf32
  kNarrower,  // every subnormal of the source is far below half the target's smallest value
  kGeneral,   // anything else; also modes in which a tiny number may round away from zero
};

// The rounding rule has three code paths. RuleModeOf returns the path of a rounding mode.
enum class RuleMode : uint8_t { kNearestEven, kOther, kStochastic };

// Returns the mode as the rule reads it.
constexpr RuleMode RuleModeOf(RoundingMode mode) {
  if (mode == RoundingMode::kNearestEven) return RuleMode::kNearestEven;
  return mode == RoundingMode::kStochastic ? RuleMode::kStochastic : RuleMode::kOther;
}

// The constants of a conversion to a format.
struct EncodePlan {
  FormatSpec format;
  Rounding rounding;
  Overflow overflow = Overflow::kNonsaturate;
  // The definition of "tiny" for kUnderflow; it does not affect codes. MakeEncodePlan leaves it at
  // this default, and a caller may then change it.
  Tininess tininess = Tininess::kAfterRounding;

  // The rule rounds to *ordinals*: ordinal = magnitude code + ordinal_offset. ordinal_offset is 0
  // except for e8m0fnu, where it is 1: ordinal 0 stands for the zero that the format lacks.
  // A full range of two's complement is rounded as if it had one mantissa bit more, so that the
  // spacing stays the same beyond its most negative number.
  int32_t mantissa_bits = 0;
  int32_t min_exponent = 0;  // exponent of the binade that begins at ordinal 2^mantissa_bits
  uint32_t ordinal_offset = 0;
  uint32_t max_ordinal = 0;    // of positive numbers; of negative ones 1 more under a full range
  uint32_t least_ordinal = 0;  // ordinals below it are flushed to zero; 0: none
  // Ordinals of a finite overflow and of infinity: [0] positive, [1] negative.
  uint32_t overflow_ordinal[2] = {0, 0};
  uint32_t infinity_ordinal[2] = {0, 0};
  // True if all four ordinals above are equal and the format is sign-magnitude.
  bool uniform_specials = false;
  bool unsigned_zero = false;  // sign-magnitude without negative zero
  uint32_t sign_bit = 0;       // mask of the sign bit; 0 for unsigned formats
  uint32_t nan_code = 0;       // full code of a positive NaN; its substitute if there is no NaN
  uint32_t nan_sign = 0;       // bits that are also set in a negative NaN
  // For unsigned formats: the codes of negative numbers and of minus infinity.
  uint32_t negative_code = 0;
  uint32_t negative_infinity_code = 0;

  // Flags of non-finite inputs: infinities ([0] positive, [1] negative) and NaN.
  Flags infinity_flags[2] = {0, 0};
  Flags nan_flags = 0;
  bool has_underflow = true;  // the format has exponents

  // The case of the rule that applies to float32 input.
  ExponentRange range_f32 = ExponentRange::kGeneral;
};

// Returns the plan of a conversion. Requires a format that ValidateFormat accepts. Throws Error for
// a mode that is not in rounding_modes.inc and, if the mode is stochastic, unless it has 1..32
// random bits.
EncodePlan MakeEncodePlan(const FormatSpec& format,
                          const Rounding& rounding = {},
                          Overflow overflow = Overflow::kNonsaturate);

}  // namespace numsim
