// Shared code of the claims of `update-fidelity`.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "experiments/core/verdict.h"
#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments::update_fidelity {

// The rows of one rule with one format and choice of keys: all learning rates of all seeds.
struct Panelful {
  CurveKey key;
  std::vector<size_t> rows;
};

// Returns the rows of every rule of that kind, in the order of the table.
std::vector<Panelful> PanelsOf(const Table& table, UpdateKind kind);

// Returns format and keys, "e4m3fn same", and the rule if its name is not just that of its kind.
std::string PanelText(const Panelful& panel);

// Returns "not measured" unless `measured`, otherwise "holds" if `all`, "holds in part" if `any`,
// otherwise "does not hold".
std::string Verdict(bool measured, bool all, bool any);

// Formats a number with three significant digits; "none" for NaN.
std::string Number(double x);

// Returns the mean over seeds at one learning rate of a curve; NaN if that was not measured.
double MeanAt(const Curve& curve, double lr);

// Returns the learning rate of the table that is closest to `lr` by ratio. Requires that the table
// has rows.
double ClosestRate(const Table& table, double lr);

// Returns the smallest learning rate such that good(row) holds for every seed at this and all
// greater rates; NaN if it does not hold at the greatest.
template <typename Good>
double LeastRate(const Table& table, const Panelful& panel, const Good& good) {
  double failed = 0;
  for (const size_t i : panel.rows) {
    if (!good(i)) failed = std::max(failed, table.Number(i, "lr"));
  }
  double least = std::numeric_limits<double>::quiet_NaN();
  for (const size_t i : panel.rows) {
    const double lr = table.Number(i, "lr");
    if (lr > failed && !(lr >= least)) least = lr;
  }
  return least;
}

// Returns the greatest learning rate of the curve at which lost(mean) holds; NaN if there is none.
template <typename Lost>
double GreatestRate(const Curve& curve, const Lost& lost) {
  double greatest = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < curve.lr.size(); ++i) {
    if (lost(curve.mean[i])) greatest = curve.lr[i];
  }
  return greatest;
}

// Claims about the cliff of naive rounding, the searches for the right target, and rules with
// state; defined in claims.cc.
Claim CliffClaim(const Table& cliffs);
Claim NaiveDeclineClaim(const Table& cliffs);
Claim NormMatchedClaim(const Table& table);
Claim CosineClaim(const Table& table);
Claim ProjectionMatchedClaim(const Table& table);
Claim StateClaim(const Table& table);

}  // namespace numsim::experiments::update_fidelity
