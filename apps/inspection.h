// One value in one format: its neighbours, every rounding, and exact probabilities, as data, text and JSON. What
// `numsim inspect` prints, and what the playground of the documentation site shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/rounding/rounding.h"

namespace numsim::apps {

// The neighbours of a finite value in the format: `low` toward zero and `high` away from it. The
// magnitudes are exact.
struct Neighbours {
  uint32_t low, high;
  ExactNumber value, low_value, high_value;

  ExactNumber FromLow() const { return value - low_value; }
  ExactNumber ToHigh() const { return high_value - value; }
  double Gap() const { return (high_value - low_value).ToFloat64(); }
  // The part of the gap from `low` to the value, right to about 2^-52 of itself.
  double Fraction() const { return FromLow().ToFloat64() / Gap(); }
};

// The code of the value under a rounding mode and an overflow policy.
struct RoundedCode {
  RoundingMode mode;
  Overflow overflow;
  uint32_t code;
};

// Under a variant of stochastic rounding, `away` of the 2^random_bits random words give `high`, the others `low`.
struct StochasticCount {
  StochasticVariant variant;
  uint64_t away;
};

struct Inspection {
  Format format;
  std::string text = {};  // the value as it was given
  ExactNumber value = {};
  // None if the value is exact, outside the range or not finite.
  std::optional<Neighbours> neighbours = {};
  bool exact = false;  // of a finite value: the format has it
  // Of each mode: nonsaturate, then the policies whose code differs from it.
  std::vector<RoundedCode> roundings = {};
  int random_bits = 32;
  std::vector<StochasticCount> stochastic = {};  // of each variant; empty without neighbours
};

// Returns the inspection of a value: a number or a sum of two (ParseExactSum), or "code:" and a code of the format.
// Requires 1 <= random_bits <= 32. Throws Error that names VALUE.
Inspection Inspect(const Format& format, const std::string& value, int random_bits);

// Returns the lines that `numsim inspect` prints.
std::string InspectionText(const Inspection& x);

// Returns the same as JSON, in one line. Values are text, as JSON has neither infinities nor NaN.
std::string InspectionJson(const Inspection& x);

}  // namespace numsim::apps
