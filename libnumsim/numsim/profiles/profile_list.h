// The lines of the two tables: which profiles there are, and which rule each has for which targets.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "numsim/profiles/conversion_rule.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

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
  SeamsFunction seams = nullptr;
  RandomLayout layout = {};
  bool mirrored_random = false;
};

// Deterministic rules, then stochastic ones.
std::span<const RuleLine> DeterministicRules();
std::span<const RuleLine> StochasticRules();

}  // namespace numsim
