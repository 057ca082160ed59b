// Compares variants of `switchback-accuracy` with each other, for its claims.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/verdict.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::switchback_accuracy {

// Returns the estimate as "0.0123 [0.0100, 0.0146]".
std::string IntervalText(const Estimate& estimate);

// A loss that falls behind by this share of what standard gained contradicts that two variants are
// equally good.
inline constexpr double kContradicts = 0.05;
// Returns whether two losses are equally good: kYes if the interval of their difference contains 0
// and excludes +-kContradicts of `gained`, what standard gained since the start.
Answer IsSame(const Estimate& difference, double gained);
// Returns what standard gained in the group since the start, from gaps.csv; NaN if it is unknown.
double GainedBy(const Tables& tables, const Group& group);

struct Comparison {
  std::string text;
  bool judged = true;                // false if the baseline did not learn
  Answer more = Answer::kUndecided;  // is the first loss greater?
  Answer same = Answer::kUndecided;  // are both equally good?
};

// The answers of the comparisons that are judged; `list` has one line per comparison.
struct Comparisons {
  std::string list;
  Tally more, same;

  void Add(const Comparison& one);
};

// Returns true if variants of the group can be compared with standard, by the verdicts of gaps.csv.
bool BaselineLearned(const Table& gaps, const Group& group);

// Compares the validation loss of `a` minus that of `b`, paired by seed. A variant that diverged
// counts as more than one that did not, and as the same as another one that did. It is not
// judged if the baseline did not learn.
Comparison Compare(const Tables& tables, const Group& group, const Variant& a, const Variant& b);
// Compares an int8 kind with switchback:int8; returns nothing if one of them was not trained.
std::optional<Comparison> AgainstSwitchback(const Tables& tables,
                                            const Group& group,
                                            std::string_view kind);
// Compares the loss of llm-int8 minus that of switchback, both in int8, between the groups `many`
// and `few`, paired by seed; returns nothing if one of them was not trained.
std::optional<Comparison> GrowthOf(const Tables& tables, const Group& few, const Group& many);

// Returns the groups of each model and size in ascending order of tokens.
std::vector<std::vector<Group>> LaddersIn(const Table& table);

}  // namespace numsim::experiments::switchback_accuracy
