// Variants of `switchback-accuracy` against each other, as its claims need them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::switchback_accuracy {

// By the 95 % interval of a difference, or by what diverged.
enum class Order { kUnknown, kLess, kSame, kMore };
// Unknown without an interval.
Order OrderOf(const Estimate& difference);
// "0.0123 [0.0100, 0.0146]".
std::string IntervalText(const Estimate& estimate);

struct Comparison {
  std::string text;
  Order order = Order::kUnknown;
};

// How many of several come out how; `list` has a line for each.
struct Comparisons {
  std::string list;
  size_t judged = 0, more = 0, same = 0;

  void Add(const Comparison& one);
};

// Whether standard can be compared with: the verdicts of gaps.csv.
bool BaselineLearned(const Table& gaps, const Group& group);

// The validation loss of `a` minus that of `b`, paired by seed. One that diverged is more than one
// that did not, and the same as another that did. Unknown where the baseline did not learn.
Comparison Compare(const Tables& tables, const Group& group, const Variant& a, const Variant& b);
// An int8 kind minus switchback:int8; none where one of them is not there.
std::optional<Comparison> AgainstSwitchback(const Tables& tables,
                                            const Group& group,
                                            std::string_view kind);
// How much larger llm-int8 minus switchback, both int8, is in `many` than in `few`, by seed; none
// where one of them is not there.
std::optional<Comparison> GrowthOf(const Tables& tables, const Group& few, const Group& many);

// The groups of each model and size in ascending order of tokens.
std::vector<std::vector<Group>> LaddersIn(const Table& table);

}  // namespace numsim::experiments::switchback_accuracy
