// Groups the table `final` of `update-convergence` by configuration and counts outcomes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/core/verdict.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments::update_convergence {

// A norm or projection ratio is as requested if it differs from 1 by at most this. Rounding loses
// part of the step if the projection ratio of the naive rule is not as requested.
inline constexpr double kRatio = 0.1;

// A configuration (problem, optimiser, format, learning rate) with the row of each rule.
struct Configuration {
  std::string problem, optimiser, format, rate;
  std::map<std::string, size_t> rows;
};

struct Outcomes {
  const Settings& settings;
  const Table& final_table;
  const Table& cheapest;
  std::vector<std::string> formats, rates;
  std::vector<Configuration> configurations;  // only those in which the baseline makes progress
  size_t without_progress = 0;                // number of the others

  double Number(size_t row, const char* column) const { return final_table.Number(row, column); }
  // Returns the row of a rule, or nullptr if the rule was not run.
  const size_t* Row(const Configuration& c, const std::string& rule) const;
  // Returns true if rounding to nearest loses part of the step; false if naive was not run.
  bool Loses(const Configuration& c) const;
};
Outcomes OutcomesOf(const Settings& settings, const Tables& tables);

struct Count {
  size_t yes = 0, all = 0;
  std::string Text() const;  // "3/4", or "-" if `all` is 0
};
// Returns "holds" if `yes` is all, "holds in part" if it is some, "does not hold" if it is none,
// and "not measured" if `all` is 0.
std::string Verdict(const Count& count);

using Holds = std::function<bool(size_t row)>;

// Counts the configurations of a format and a learning rate (empty: of all) in which holds(row) is
// true for the row of `rule`.
Count CountRows(const Outcomes& in,
                const std::string& rule,
                const Holds& holds,
                const std::string& format = "",
                const std::string& rate = "");

// Returns answer(row) for the row of `rule` in every configuration.
Tally TallyRows(const Outcomes& in,
                const std::string& rule,
                const std::function<Answer(size_t row)>& answer);

// Counts the configurations of a format (empty: of all) in which rounding to nearest loses part of
// the step, and those of them in which the gap of `a` is smaller than that of `b` by more than
// kGrowth. A configuration in which a gap is NaN is left out.
Count Beats(const Outcomes& in, UpdateKind a, UpdateKind b, const std::string& format = "");

}  // namespace numsim::experiments::update_convergence
