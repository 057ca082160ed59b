#include <algorithm>
#include <bit>
#include <string>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

bool HasSource(Sources sources, SourceType from) {
  switch (sources) {
    case Sources::kFloat32:
      return from == SourceType::kFloat32;
    case Sources::kFloat64:
      return from == SourceType::kFloat64;
    default:
      return true;
  }
}

// True if `name` is a word of `targets`, or begins with one that ends in '*' (without the '*').
bool IsTarget(std::string_view targets, std::string_view name) {
  while (!targets.empty()) {
    const size_t end = std::min(targets.find(' '), targets.size());
    const std::string_view word = targets.substr(0, end);
    if (word == name) return true;
    if (word.ends_with('*') && name.starts_with(word.substr(0, word.size() - 1))) return true;
    targets.remove_prefix(std::min(end + 1, targets.size()));
  }
  return false;
}

const RuleLine* FindIn(std::span<const RuleLine> rules,
                       std::string_view profile,
                       SourceType from,
                       std::string_view target) {
  for (const RuleLine& line : rules) {
    if (line.profile == profile && Serves(line, from, target)) return &line;
  }
  return nullptr;
}

// Returns the codes of one kind of input: those of the line (`own`), or where it has none, those
// that the rounding rule gives for `magnitude`.
SignedCodes Codes(const ConversionRule& rule, OwnCodes own, uint64_t magnitude) {
  const uint64_t sign = rule.ignore_sign ? 0 : rule.Inner().sign_bit;
  SignedCodes codes{EncodeByPlan(rule, magnitude, 0), EncodeByPlan(rule, magnitude | sign, 0)};
  if (own.positive >= 0) codes[0] = static_cast<uint32_t>(own.positive);
  if (own.negative >= 0) codes[1] = static_cast<uint32_t>(own.negative);
  return codes;
}

// Returns the largest finite value of rule.meaning as magnitude bits of the inner source type.
uint64_t Largest(const ConversionRule& rule) {
  const Dyadic max = MagnitudeValue(rule.meaning, rule.meaning.MaxFiniteCode());
  const SourceLayout& layout = rule.Inner();
  const int top = static_cast<int>(std::bit_width(max.significand)) - 1;
  const uint64_t mantissa = (uint64_t{max.significand} << (layout.mantissa_bits - top)) &
                            ((uint64_t{1} << layout.mantissa_bits) - 1);
  const auto field = static_cast<uint64_t>(max.exponent + top + layout.bias);
  return (field << layout.mantissa_bits) | mantissa;
}

// Returns the smallest float64 magnitude that rounds to a float32 magnitude of at least `wanted`.
// For a float32 NaN, returns the float64 NaN at the same distance from infinity.
uint64_t LeastFloat64(const ConversionRule& rule, uint64_t wanted) {
  if (wanted > kFloat32Layout.infinity) {
    return kFloat64Layout.infinity + (wanted - kFloat32Layout.infinity);
  }
  uint64_t low = 0, high = kFloat64Layout.infinity;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (EncodeF64(rule.to_float32, middle, 0) >= wanted) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

bool Serves(const RuleLine& line, SourceType from, std::string_view target) {
  return HasSource(line.from, from) && IsTarget(line.targets, target);
}

const RuleLine* FindRule(std::string_view profile, SourceType from, std::string_view target) {
  const RuleLine* line = FindIn(DeterministicRules(), profile, from, target);
  return line != nullptr ? line : FindIn(StochasticRules(), profile, from, target);
}

ConversionRule MakeRule(const RuleLine& line,
                        SourceType from,
                        const FormatSpec& to,
                        int random_bits) {
  ConversionRule rule;
  rule.target = to;
  rule.meaning = to;
  if (!line.meaning.empty()) {
    const FormatEntry* meaning = FindFormat(line.meaning);
    NUMSIM_CHECK(meaning != nullptr && meaning->spec.Bits() == to.Bits(), "{}", line.meaning);
    rule.meaning = meaning->spec;
  }
  rule.source = from;
  rule.through_float32 = line.from == Sources::kThroughFloat32 && from == SourceType::kFloat64;
  rule.to_float32 = MakeEncodePlan(FindFormat("fp32")->spec);
  Rounding rounding = line.rounding;
  rule.layout = line.layout;
  if (random_bits > 0) {
    rounding.random_bits = random_bits;
    rule.layout.bits = static_cast<int8_t>(random_bits);
  }
  rule.plan = MakeEncodePlan(rule.meaning, rounding, line.overflow);
  rule.ignore_sign = line.ignore_sign;
  rule.largest = Largest(rule);
  const SourceLayout& layout = rule.Inner();
  rule.zero = Codes(rule, line.zero, 0);
  rule.infinity = Codes(rule, line.infinity, layout.infinity);
  rule.nan = Codes(rule, line.nan, layout.infinity | (layout.infinity >> 1));
  rule.finite = line.finite;
  rule.nan_payload = line.nan_payload;
  rule.breakpoints = line.breakpoints;
  rule.mirrored_random = line.mirrored_random;
  return rule;
}

std::vector<uint64_t> Breakpoints(const ConversionRule& rule) {
  const SourceLayout& layout = rule.Inner();
  std::vector<uint64_t> breakpoints = {0, 1, layout.infinity, layout.infinity + 1};
  if (rule.breakpoints != nullptr) rule.breakpoints(rule, breakpoints);
  if (rule.through_float32) {
    for (uint64_t& breakpoint : breakpoints) breakpoint = LeastFloat64(rule, breakpoint);
  }
  std::sort(breakpoints.begin(), breakpoints.end());
  breakpoints.erase(std::unique(breakpoints.begin(), breakpoints.end()), breakpoints.end());
  return breakpoints;
}

}  // namespace numsim
