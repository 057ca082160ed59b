// Compares variants of `switchback-accuracy` with each other, for its claims.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::switchback_accuracy {

// The sign of a difference, judged by its 95 % interval or by which side diverged.
enum class Order { kUnknown, kLess, kSame, kMore };
// Returns the order by the interval, kUnknown if there is none.
Order OrderOf(const Estimate& difference);
// Returns the estimate as "0.0123 [0.0100, 0.0146]".
std::string IntervalText(const Estimate& estimate);

struct Comparison {
  std::string text;
  Order order = Order::kUnknown;
};

// Counts the outcomes of several comparisons; `list` has one line per comparison.
struct Comparisons {
  std::string list;
  size_t judged = 0, more = 0, same = 0;

  void Add(const Comparison& one);
};

// Returns true if variants of the group can be compared with standard, by the verdicts of gaps.csv.
bool BaselineLearned(const Table& gaps, const Group& group);

// Compares the validation loss of `a` minus that of `b`, paired by seed. A variant that diverged
// counts as more than one that did not, and as the same as another one that did. The order is
// unknown if the baseline did not learn.
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
