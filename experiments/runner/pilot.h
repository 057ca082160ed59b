// Pilots: how much the outcomes of a design scatter, and how many seeds its claims need for a decision.
#pragma once

#include <string>
#include <vector>

#include "experiments/claims/seed_plan.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/runner.h"

namespace numsim::experiments {

inline constexpr const char* kPilotFile = "pilot.csv";

struct PilotClaim {
  const ClaimSpec* spec = nullptr;
  std::string contrasts;  // "e4m3fn / e4m3fn - fp32 / fp32; ..."
  double margin = 0;      // at the size of the models
  SeedPlan plan;
  double core_seconds = 0;  // of the planned seeds of its arms; NaN: unknown
};

struct PilotReport {
  RunReport run;  // interrupted, and numbers of trials
  std::vector<PilotClaim> claims;
  int seeds = 0;                     // the most that a primary claim needs; 0: unknown
  double core_seconds = 0;           // of the seeds that all primary claims need, each for its arms
  double core_seconds_per_seed = 0;  // of all arms
};

// Runs the trials of settings.seeds pilot seeds (seeds.h) in options.out, a directory of its own kind that
// no other command continues, and writes pilot.csv there. Judges nothing: a report has no estimate and no
// verdict. Keeps, resumes and refuses trials as Run does; settings.seed is not used. Throws Error also
// for fewer than two seeds, and for an experiment without claims.
PilotReport Pilot(const Experiment& experiment, RunOptions options);

// Returns the text of a report.
std::string PilotText(const PilotReport& report);

}  // namespace numsim::experiments
