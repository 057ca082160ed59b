// Claims of a study as rows: arms by the names of their choices, and what is compared.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/runner/experiment.h"

namespace numsim::experiments::study {

struct Study;

// The names of an arm's choices, in the order of the axes.
using Arm = std::vector<std::string>;

// A value of an axis in a claim: the name of a choice, which is checked when the study is built, or one
// that settings decide.
struct Pick {
  std::string axis;
  std::string name = {};
  std::function<std::string(const Settings&)> of = {};
};
// An arm of a claim. Axes that are not named have the value of Study::centre. In a study without trainings
// the axes are columns of a table.
using Picks = std::vector<Pick>;

// The results of a run, or those that a claim is judged on.
struct Results {
  const Study& study;
  const Settings& settings;
  const Tables& tables;

  Frame Of(const std::string& table) const { return tables.at(table); }
  // Returns the rows of an arm.
  Frame OfArm(const Frame& frame, const Arm& arm) const;
  Arm ArmOf(const Picks& picks) const;
};

// A contrast: arms with weights.
using ArmContrast = std::vector<std::pair<Arm, double>>;

// The control of an equivalence: two arms, the one that is known to fail first, or why there is none.
struct ControlRow {
  std::string text = {};  // the contrast in words
  std::vector<Picks> arms = {};
  Picks where = {};  // of a claim on rows: the conditions that differ
  std::string none = {};
};

// Rows of a table that a claim of a study without trainings is judged by. Without a judge, the outcome of
// each seed is compared with a number, or that of each row between arms.
struct RowsOfClaim {
  std::string table;
  Picks where = {};                       // the values of columns
  std::string arm = {};                   // text of an arm, with columns in braces
  std::vector<std::string> each_of = {};  // arms are compared in each combination of these columns
  bool arms_alone = false;                // other rows are left out
  // Why the claim is not tested if there are no rows, or none of an arm; with columns of conditions in
  // braces, and options, {--NAME}.
  std::string missing = {}, absent = {};
  // Returns why the rows do not test the claim; "" if they do.
  std::function<std::string(const Results&, const Frame& rows)> unfit = {};
  // Returns the rows that count.
  std::function<Frame(const Results&, const Frame& rows)> rows = {};
  std::function<Evidence(const Results&, const Frame& rows)> judge = {};
  // Returns the evidence with what the rows say about it beside their outcomes: that it is a bound.
  std::function<Evidence(const Frame& rows, Evidence)> bound = {};
  // Of a number that settings decide: its text.
  std::function<std::string(const Settings&)> reference = {};
};

struct ClaimRow {
  std::string name;  // the id is STUDY/NAME
  std::vector<std::string> items = {};
  std::string statement;
  std::string contrast;
  ClaimKind kind = ClaimKind::kDifference;
  int side = 1;
  bool primary = true;
  std::optional<Margin> margin = {};
  double papers_effect = 0;
  std::string scale = {};
  std::optional<Diverged> diverged = {};

  // The evidence: a contrast of arms, one arm and the number that it is compared with, or a function.
  std::vector<std::pair<Picks, double>> arms = {};
  std::optional<double> reference = {};
  size_t arms_of_each = 0;  // of several contrasts; 0: all arms are one
  ControlRow control = {};
  // Two arms of which the first minus the second, in the mean over seeds, is the largest effect that these
  // trainings allow (Evidence::possible); empty: not known.
  std::vector<Picks> possible = {};
  std::function<double(const Frame& run)> outcome = {};
  std::function<Evidence(const Results&)> evidence = {};
  std::optional<RowsOfClaim> on = {};  // a study without trainings
  // Returns why the run does not test the claim; "" if it does.
  std::function<std::string(const Results&)> obstacle = {};
};

// The parts that the claims of a study have in common.
struct Claims {
  std::vector<std::string> items = {};
  std::string scale = {};
  Margin margin = {};
  Diverged diverged = Diverged::kMissing;
  std::function<double(const Frame& run)> outcome = {};
  // Compares arms; empty: CompareArms.
  std::function<Evidence(const Results&, const ClaimRow&, const std::vector<ArmContrast>&)>
      compare = {};
};

// Returns evidence about contrasts of arms, by an outcome of these runs.
Evidence CompareArms(const Results& results,
                     const Frame& runs,
                     const std::vector<ArmContrast>& contrasts,
                     const std::function<double(const Frame& run)>& outcome);

// Returns evidence about the outcome of an arm against a number.
Evidence AgainstNumber(const Results& results,
                       const Arm& arm,
                       const std::function<double(const Frame& run)>& outcome,
                       double reference);

// Returns the claims of a study that CheckStudy takes.
std::vector<ClaimSpec> ClaimsOf(const std::shared_ptr<const Study>& study);

}  // namespace numsim::experiments::study
