// The table `final` of `update-convergence` by configuration, and counts over it: what the summary
// is made from.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments::update_convergence {

// A norm or projection ratio is as asked for when it is this close to 1; rounding loses part of the
// step where the projection of the naive step is not.
inline constexpr double kRatio = 0.1;

// A training: problem, optimiser, format and learning rate, with the row of each rule.
struct Configuration {
  std::string problem, optimiser, format, rate;
  std::map<std::string, size_t> rows;
};

struct Outcomes {
  const Settings& settings;
  const Table& final_table;
  const Table& cheapest;
  std::vector<std::string> formats, rates;
  std::vector<Configuration> configurations;  // those in which the baseline makes progress
  size_t without_progress = 0;                // the others

  double Number(size_t row, const char* column) const { return final_table.Number(row, column); }
  // nullptr where the rule was not run.
  const size_t* Row(const Configuration& c, const std::string& rule) const;
  // Where rounding to nearest loses part of the step; false without the rule naive.
  bool Loses(const Configuration& c) const;
};
Outcomes OutcomesOf(const Settings& settings, const Tables& tables);

struct Count {
  size_t yes = 0, all = 0;
  std::string Text() const;  // "3/4", "-" for none
};
// holds for all, does not hold for none of several; not measured without any.
std::string Verdict(const Count& count);

using Holds = std::function<bool(size_t row)>;

// How many configurations of one format and learning rate (empty: of all) do what `holds` says of
// the row of `rule`.
Count CountRows(const Outcomes& in,
                const std::string& rule,
                const Holds& holds,
                const std::string& format = "",
                const std::string& rate = "");

// In how many configurations of a format (empty: of all) that lose part of the step the gap of `a`
// is smaller than that of `b` by more than kGrowth.
Count Beats(const Outcomes& in, UpdateKind a, UpdateKind b, const std::string& format = "");

}  // namespace numsim::experiments::update_convergence
