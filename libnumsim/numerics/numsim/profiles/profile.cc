#include "numsim/profiles/profile.h"

#include <charconv>

#include "numsim/base/error.h"
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

constexpr ProfileInfo kOwnRule{"rule",
                               "numsim",
                               "IEEE754",
                               Evidence::kSpecification,
                               "numsim's own rule: rule:ROUNDING,OVERFLOW",
                               false};
constexpr ProfileInfo kOwnStochasticRule{"rule",
                                         "numsim",
                                         "P3109",
                                         Evidence::kSpecification,
                                         "numsim's own rule, variant a, 32 random bits",
                                         true};
constexpr std::string_view kOwnPrefix = "rule:";

// A profile as named by a user.
struct Named {
  std::string_view name;  // the name in the table
  int random_bits = 0;    // 0: the number of the table
};

// Splits NAME or NAME:BITS. Only some profiles accept a number of random bits.
Named SplitName(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text};
  const std::string_view name = text.substr(0, colon);
  FindProfile(name);
  if (!name.starts_with("p3109-") || name.starts_with("p3109-v")) {
    throw Error::Format("profile '{}': the random bits of '{}' are not free", text, name);
  }
  const std::string_view number = text.substr(colon + 1);
  int bits = 0;
  const char* end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, bits);
  if (status != std::errc() || stop != end || bits < 1 || bits > 32) {
    throw Error::Format("profile '{}': '{}' is not a number of random bits, 1..32", text, number);
  }
  return {name, bits};
}

// Parses rule:ROUNDING,OVERFLOW. Returns numsim's own rule as a line that serves any target.
RuleLine OwnRule(std::string_view text) {
  const std::string_view policies = text.substr(kOwnPrefix.size());
  const size_t comma = policies.find(',');
  if (comma == std::string_view::npos) {
    throw Error::Format("profile '{}' is not rule:ROUNDING,OVERFLOW, e.g. rule:rne,saturate", text);
  }
  RuleLine line{.profile = kOwnRule.name, .from = Sources::kBoth, .targets = "*"};
  line.rounding.mode = ParseRoundingMode(policies.substr(0, comma));
  line.overflow = ParseOverflow(policies.substr(comma + 1));
  if (line.rounding.mode == RoundingMode::kStochastic) line.layout.bits = 32;
  return line;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void ThrowUndefined(std::string_view profile, SourceType from, const Format& to) {
  const std::vector<std::string> targets = ProfileTargets(profile, from);
  if (targets.empty()) {
    throw Error::Format("profile '{}' defines no conversion from {}", profile, ToString(from));
  }
  throw Error::Format("profile '{}' does not define '{}' from {}; it defines {}",
                      profile,
                      to.name,
                      ToString(from),
                      Joined(targets));
}

}  // namespace

ProfileConversion::ProfileConversion(std::string_view profile, SourceType from, const Format& to)
    : name_(profile), from_(from) {
  ConversionRule rule;
  if (profile.starts_with(kOwnPrefix)) {
    const RuleLine line = OwnRule(profile);
    profile_ = line.layout.bits > 0 ? &kOwnStochasticRule : &kOwnRule;
    rule = MakeRule(line, from, to.spec, 0);
  } else {
    const Named named = SplitName(profile);
    profile_ = &FindProfile(named.name);
    const FormatEntry* target = FindFormat(to.name);
    const bool custom = target == nullptr || target->spec != to.spec;
    const RuleLine* line = custom ? nullptr : FindRule(named.name, from, to.name);
    if (line == nullptr) ThrowUndefined(named.name, from, to);
    rule = MakeRule(*line, from, to.spec, named.random_bits);
  }
  rule_ = std::make_shared<const ConversionRule>(rule);
}

const ProfileInfo& ProfileConversion::profile() const { return *profile_; }
const std::string& ProfileConversion::name() const { return name_; }
SourceType ProfileConversion::source_type() const { return from_; }
const FormatSpec& ProfileConversion::format() const { return rule_->target; }
const FormatSpec& ProfileConversion::meaning() const { return rule_->meaning; }
int ProfileConversion::random_bits() const { return rule_->layout.bits; }
int ProfileConversion::RandomElements() const { return rule_->layout.elements; }

const RandomLayout& ProfileConversion::random_layout() const { return rule_->layout; }

uint32_t ProfileConversion::RandomOfWord(uint32_t word, int element) const noexcept {
  NUMSIM_CHECK(element >= 0 && element < RandomElements(), "element {}", element);
  return rule_->layout.Random(word, element);
}

uint32_t ProfileConversion::Encode(uint64_t source_bits, uint32_t random) const noexcept {
  return EncodeByRule(*rule_, source_bits, random);
}

void ProfileConversion::EncodeRun(uint32_t first,
                                  uint32_t random,
                                  std::span<uint32_t> codes) const noexcept {
  NUMSIM_CHECK(from_ == SourceType::kFloat32, "{}", ToString(from_));
  numsim::EncodeRun(*rule_, first, random, codes);
}

std::vector<uint64_t> ProfileConversion::MonotoneRanges() const { return Breakpoints(*rule_); }

std::vector<std::string> ProfileTargets(std::string_view profile, SourceType from) {
  std::vector<std::string> targets;
  if (profile.starts_with(kOwnPrefix)) {
    OwnRule(profile);
    for (const FormatEntry& format : FormatTable()) targets.emplace_back(format.name);
    return targets;
  }
  const std::string_view name = SplitName(profile).name;
  FindProfile(name);
  for (const FormatEntry& format : FormatTable()) {
    if (FindRule(name, from, format.name) != nullptr) targets.emplace_back(format.name);
  }
  return targets;
}

}  // namespace numsim
