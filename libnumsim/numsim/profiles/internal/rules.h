// Rules of conversion: how profiles are made and run.
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

// The rule of one conversion of a profile, ready to run: what ProfileConversion holds.
//
// Most implementations are data: numsim's rounding rule (EncodePlan) with its own codes for NaN,
// infinity and zero. A function stands only where an implementation does something else.

struct ConversionRule;

// The code of a float32 or float64 whose magnitude is finite and not zero, or of a NaN.
using RuleFunction = uint32_t (*)(const ConversionRule& rule, uint64_t bits, uint32_t random);

// Adds to `breakpoints` the magnitudes at which the function's results stop being monotone.
using BreakpointsFunction = void (*)(const ConversionRule& rule,
                                     std::vector<uint64_t>& breakpoints);

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
  BreakpointsFunction breakpoints = nullptr;

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

// What implementations do that is not a rounding mode with an overflow policy.

// amd_hip_fp8.h on the host [HIP-FP8]: a magnitude above the largest value overflows before it is
// rounded, and the distance by which a subnormal result is shifted right is taken modulo 64, as x86
// does. So a number 64 binades below the smallest normal binade converts as if multiplied by 2^64.
uint32_t EncodeHip(const ConversionRule& rule, uint64_t bits, uint32_t random);
void HipBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// float32 to e8m0fnu as PyTorch and ml_dtypes have it: the exponent field, plus one for a mantissa
// of a half or more. Below 2^-126 a half itself, 2^-127, is exact and all above it become 2^-126.
// The first ignores the sign; the second makes every negative number NaN.
uint32_t EncodeExponentHalfUp(const ConversionRule& rule, uint64_t bits, uint32_t random);
uint32_t EncodeExponentHalfUpOfPositive(const ConversionRule& rule, uint64_t bits, uint32_t random);

// QPyTorch [QPyTorch]: results below the normals are made by adding and subtracting the smallest
// normal number in float32, so they are rounded twice: to nearest-even, then ties away. Negative
// numbers that round to zero become +0.
uint32_t EncodeQPyTorch(const ConversionRule& rule, uint64_t bits, uint32_t random);

// bitsandbytes [bnb] searches the sorted list of its values. A search that ends between two of them
// compares with their midpoint; which of both a tie takes depends on the way there, and that is the
// one at the even place of the list: the even code of a positive number, the odd one of a negative.
uint32_t EncodeBitsAndBytes(const ConversionRule& rule, uint64_t bits, uint32_t random);

// NaNs of float32 whose bits are rounded like a number's (QPyTorch, CPFloat): few leading payload
// bits make an infinity of them, and all bits set carry into the sign, which gives a zero.
uint32_t RoundNanPayload(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanPayloadBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// CUDA's conversion of a float64 NaN to E5M2 keeps two payload bits, of which it sets the upper.
uint32_t CudaNanFromFloat64(const ConversionRule& rule, uint64_t bits, uint32_t random);
void CudaNanBreakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// The stochastic rounding to bfloat16 of PyTorch's torchao on a NaN: its bits too are rounded, then
// what is still a NaN becomes 0x7FC0.
uint32_t RoundNanToBf16(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanToBf16Breakpoints(const ConversionRule& rule, std::vector<uint64_t>& breakpoints);

// The lines of the two tables: which profiles there are, and which rule each has for which targets.

// Source types that a line holds for.
enum class Sources : uint8_t { kFloat32, kFloat64, kBoth, kThroughFloat32 };
// kThroughFloat32: both; float64 is rounded to float32 first.

// Codes of a positive and a negative input; -1: those of numsim's rule.
struct OwnCodes {
  int positive = -1;
  int negative = -1;
};

// One line: a profile's rule for some targets. What is left out is numsim's.
struct RuleLine {
  std::string_view profile;
  Sources from = Sources::kFloat32;
  std::string_view targets;       // names of formats separated by blanks; "binary*" by prefix
  std::string_view meaning = {};  // format of the codes; empty: the target
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

// Deterministic rules, then stochastic ones.
std::span<const RuleLine> DeterministicRules();
std::span<const RuleLine> StochasticRules();

// From a line of the table to a rule that is ready to run.

// Whether the line holds for that source type and target.
bool Serves(const RuleLine& line, SourceType from, std::string_view target);

// The line that serves them, or nullptr. A profile has at most one.
const RuleLine* FindRule(std::string_view profile, SourceType from, std::string_view target);

// Requires that the line serves `from` and `to`. `random_bits` replaces the line's number unless 0.
ConversionRule MakeRule(const RuleLine& line,
                        SourceType from,
                        const FormatSpec& to,
                        int random_bits);

// Where `rule` stops being monotone, ascending, without duplicates: see
// ProfileConversion::MonotoneRanges.
std::vector<uint64_t> Breakpoints(const ConversionRule& rule);

// Consecutive float32 patterns through one rule: what brute force needs.

// codes[i] = EncodeByRule(rule, first + i, random). Requires a float32 source and no pattern beyond
// 2^32 - 1.
void EncodeRun(const ConversionRule& rule,
               uint32_t first,
               uint32_t random,
               std::span<uint32_t> codes) noexcept;

}  // namespace numsim
