// Selections of the rows of `update-fidelity` that its claims share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments::update_fidelity {

// The rows of one format and choice of keys (and rule), with their name: "e4m3fn same".
using Panels = std::vector<std::pair<std::string, Frame>>;

// Returns the rows of `fidelity` of each rule of that kind; the name has the rule if it is more
// than its kind.
Panels PanelsOf(const study::Results& results, UpdateKind kind);
// Returns the rows of each format and choice of keys.
Panels PanelsOf(const Frame& frame);

using IsGood = std::function<bool(const Frame& row)>;

// Returns the smallest learning rate such that good(row) holds at this and all greater rates; NaN
// if it does not hold at the greatest.
double LeastRate(const Frame& frame, const IsGood& good);

// Returns the smallest and the greatest number as text, or the one number if they are equal;
// "none" if there is none. NaN is left out.
std::string RangeText(const std::vector<double>& values);

// Why claims about the limits of naive addition are not tested.
inline constexpr const char* kNaiveWasNotRun = "the rule naive was not run (--rules)";

// Returns a line per rule with state: its bytes, and down to which rate it keeps the step; "" if none
// was run.
std::string StateText(const study::Results& results);

// Adds the evidence of the claims that exact arithmetic decides.
void AddExactEvidence(study::Functions& functions);

}  // namespace numsim::experiments::update_fidelity
