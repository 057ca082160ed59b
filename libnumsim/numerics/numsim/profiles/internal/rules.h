// Conversion rules: how profiles are represented and executed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/profiles/profile.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// ConversionRule is the rule of one conversion of a profile, ready to run. ProfileConversion holds
// one.
//
// Most implementations are described by data alone: numsim's rounding rule (EncodePlan) with the
// implementation's own codes for NaN, infinity and zero. A function is needed only if an
// implementation does something else.

struct ConversionRule;

// Returns the code of a float32 or float64 that is finite and nonzero (for the field `finite`) or a
// NaN (for the field `nan_payload`).
using RuleFunction = uint32_t (*)(const ConversionRule& rule, uint64_t bits, uint32_t random);

// Adds to `breakpoints` the magnitudes at which monotone ranges of the function begin.
using BreakpointsFunction = void (*)(const ConversionRule& rule,
                                     std::vector<uint64_t>& breakpoints);

// The codes of one kind of input for each sign: [0] positive, [1] negative.
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
  FormatSpec target;   // the requested format
  FormatSpec meaning;  // the format by which the implementation interprets the codes
  SourceType source = SourceType::kFloat32;
  // If set, float64 is first rounded to float32, nearest even. All fields below then refer to
  // float32 input.
  bool through_float32 = false;
  EncodePlan to_float32;

  EncodePlan plan;           // converts finite numbers to `meaning`
  uint64_t largest = 0;      // magnitude bits of the largest finite value
  bool ignore_sign = false;  // only the magnitude is converted
  SignedCodes zero{}, infinity{}, nan{};
  RuleFunction finite = nullptr;       // instead of the plan
  RuleFunction nan_payload = nullptr;  // instead of `nan`
  BreakpointsFunction breakpoints = nullptr;

  RandomLayout layout;
  bool mirrored_random = false;  // the implementation rounds away for small R, numsim for large R

  // Returns the layout of the inner source type: float32 if through_float32, else `source`.
  const SourceLayout& Inner() const { return through_float32 ? kFloat32Layout : LayoutOf(source); }
};

// Returns the code that the rounding rule alone gives. `bits` are of the inner source type.
inline uint32_t EncodeByPlan(const ConversionRule& rule, uint64_t bits, uint32_t random) {
  if (&rule.Inner() == &kFloat32Layout) {
    return EncodeF32(rule.plan, static_cast<uint32_t>(bits), random);
  }
  return EncodeF64(rule.plan, bits, random);
}

// Returns the code of `bits`, a number of rule.source.
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

// Behaviours of implementations that are more than a rounding mode with an overflow policy.

// amd_hip_fp8.h on the host [HIP-FP8]. A magnitude above the largest value overflows before it is
// rounded. The count by which a subnormal result is shifted right is taken modulo 64, as on x86. So
// a number 64 binades below the smallest normal binade converts as if multiplied by 2^64.
uint32_t EncodeHip(const ConversionRule& rule, uint64_t bits, uint32_t random);
void HipBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// float32 to e8m0fnu as in PyTorch and ml_dtypes: the exponent field, plus one if the mantissa is a
// half or more. Below 2^-126, a half itself (2^-127) is exact, and all numbers above it become
// 2^-126. EncodeExponentHalfUp ignores the sign. EncodeExponentHalfUpOfPositive gives NaN for every
// negative number.
uint32_t EncodeExponentHalfUp(const ConversionRule& rule, uint64_t bits, uint32_t random);
uint32_t EncodeExponentHalfUpOfPositive(const ConversionRule& rule, uint64_t bits, uint32_t random);

// float32 to e8m0fnu as in ONNX's reference evaluator: the exponent field, plus one if the mantissa is
// not zero (mode rtp), never (rtz), or as in EncodeExponentHalfUp (rna). Subnormals count by these
// rules too, so 2^-127 itself goes up to 2^-126 in mode rtp. The sign is ignored. A code of 255 becomes
// 254 under Overflow::kSaturate.
uint32_t EncodeExponentByMode(const ConversionRule& rule, uint64_t bits, uint32_t random);

// QPyTorch [QPyTorch]. Subnormal results are computed by adding and subtracting the smallest normal
// number in float32, so they are rounded twice: first to nearest even, then to nearest with ties
// away from zero. Negative numbers that round to zero become +0.
uint32_t EncodeQPyTorch(const ConversionRule& rule, uint64_t bits, uint32_t random);

// bitsandbytes [bnb] searches the sorted list of its values. If the search ends between two values,
// it compares with their midpoint. The value that a tie takes depends on the path of the search: it
// is the one at an even position in the list, which has the even code for a positive number and the
// odd code for a negative one.
uint32_t EncodeBitsAndBytes(const ConversionRule& rule, uint64_t bits, uint32_t random);

// float32 NaNs in implementations that round their bits like those of a number (QPyTorch, CPFloat).
// A NaN whose leading payload bits round to zero becomes infinity. If they are all set and round
// up, the carry flips the sign bit and the result is a zero of the other sign.
uint32_t RoundNanPayload(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanPayloadBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// CUDA's conversion of a float64 NaN to E5M2. It keeps two payload bits and sets the upper one.
uint32_t CudaNanFromFloat64(const ConversionRule& rule, uint64_t bits, uint32_t random);
void CudaNanBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// A NaN in torchao's stochastic rounding to bfloat16. The bits of the NaN are rounded too. If the
// result is still a NaN, it becomes 0x7FC0.
uint32_t RoundNanToBf16(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanToBf16Breakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// The rows of the two tables of rules: the rule of each profile for each of its targets.

// The source types that a line serves. kThroughFloat32 serves both and rounds float64 to float32
// first.
enum class Sources : uint8_t { kFloat32, kFloat64, kBoth, kThroughFloat32 };

// The codes of a positive and of a negative input. -1 stands for the code of numsim's own rule.
struct OwnCodes {
  int positive = -1;
  int negative = -1;
};

// One line of a table: the rule of a profile for some targets. The defaults are those of numsim's
// own rule.
struct RuleLine {
  std::string_view profile;
  Sources from = Sources::kFloat32;
  std::string_view targets;       // format names separated by blanks; "binary*" matches by prefix
  std::string_view meaning = {};  // ConversionRule::meaning; empty: the target
  Rounding rounding = {};
  Overflow overflow = Overflow::kNonsaturate;
  OwnCodes nan = {};
  OwnCodes infinity = {};
  OwnCodes zero = {};
  bool ignore_sign = false;
  RuleFunction finite = nullptr;
  RuleFunction nan_payload = nullptr;
  BreakpointsFunction breakpoints = nullptr;
  RandomLayout layout = {};
  bool mirrored_random = false;
};

// Return the two tables.
std::span<const RuleLine> DeterministicRules();
std::span<const RuleLine> StochasticRules();

// Construction of a rule that is ready to run from a line of a table.

// True if the line serves the source type and the target.
bool Serves(const RuleLine& line, SourceType from, std::string_view target);

// Returns the line of a profile that serves the source type and the target, or nullptr. A profile
// has at most one.
const RuleLine* FindRule(std::string_view profile, SourceType from, std::string_view target);

// Returns the rule of a line. A `random_bits` other than 0 replaces the line's number of random
// bits. Requires that the line serves `from` and `to`.
ConversionRule MakeRule(const RuleLine& line,
                        SourceType from,
                        const FormatSpec& to,
                        int random_bits);

// Returns the breakpoints of the rule, ascending and without duplicates: the magnitudes at which
// its monotone ranges begin (ProfileConversion::MonotoneRanges).
std::vector<uint64_t> Breakpoints(const ConversionRule& rule);

// Conversion of consecutive float32 patterns by one rule, for brute-force comparison.

// Writes codes[i] = EncodeByRule(rule, first + i, random). Requires a float32 source and no pattern
// beyond 2^32 - 1.
void EncodeRun(const ConversionRule& rule,
               uint32_t first,
               uint32_t random,
               std::span<uint32_t> codes) noexcept;

}  // namespace numsim
