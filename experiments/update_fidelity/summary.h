// What the claims of `update-fidelity` share.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments::update_fidelity {

// The rows of one rule in one panel, learning rates of all seeds.
struct Panelful {
  CurveKey key;
  std::vector<size_t> rows;
};

// Of every rule of that kind, in the order of the table.
std::vector<Panelful> PanelsOf(const Table& table, UpdateKind kind);

// "e4m3fn same", with the rule where it is not named like its kind.
std::string PanelText(const Panelful& panel);

// "not measured", else "holds" where all, "holds in part" where any.
std::string Verdict(bool measured, bool all, bool any);

// Three digits; "none" for NaN.
std::string Number(double x);

// The mean over seeds of a column at one learning rate; NaN where that is not measured.
double MeanAt(const Curve& curve, double lr);

// The learning rate of the table that is closest by factor. Requires rows.
double ClosestRate(const Table& table, double lr);

// The least learning rate down to which, from the greatest on, good(row) holds for every seed; NaN
// where it does not at the greatest.
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

// Greatest learning rate of the curve at which `lost` holds; NaN when there is none.
template <typename Lost>
double GreatestRate(const Curve& curve, const Lost& lost) {
  double greatest = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < curve.lr.size(); ++i) {
    if (lost(curve.mean[i])) greatest = curve.lr[i];
  }
  return greatest;
}

// Claims about the cliff of naive rounding, the searches for the right target, and rules with
// state: update_fidelity_claims.cc.
Claim CliffClaim(const Table& cliffs);
Claim NaiveDeclineClaim(const Table& cliffs);
Claim NormMatchedClaim(const Table& table);
Claim CosineClaim(const Table& table);
Claim ProjectionMatchedClaim(const Table& table);
Claim StateClaim(const Table& table);

}  // namespace numsim::experiments::update_fidelity
