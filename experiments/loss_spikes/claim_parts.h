// Names that the claims of `loss-spikes` share.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/loss_spikes/loss_spikes.h"

namespace numsim::experiments::loss_spikes {

// Returns a claim with the id loss-spikes/NAME about these items of [SwitchBack], "figure-3".
ClaimSpec Claim(const std::string& name, std::vector<std::string> items, std::string statement);

Margin SpikeMargin();
Margin AccuracyMargin(double value = 1);

using Outcome = double (*)(const Frame& run);
// Returns the number of a column; infinity, which OutcomesOf takes as diverged, if the run did: the few
// steps that it took say nothing about a whole training.
double UnlessDiverged(const Frame& run, const char* column);
double Spikes(const Frame& run);
// Returns the accuracy in percent: 0 if the run diverged.
double Accuracy(const Frame& run);
// Returns the final loss, or that of a guess if it is lower or the run diverged.
double Loss(const Frame& run);
inline constexpr const char* kGuess =
    "; a run that diverged or ends above the loss of a guess counts as a guess";

using Pair = std::pair<Arm, Arm>;  // an arm, and the arm that it is compared with
// Compares pairs of arms. The residual is pooled over the arms of the pairs.
Evidence Compare(const Tables& tables, const std::vector<Pair>& pairs, Outcome outcome);

// Compares the loss spikes of two arms. Not tested if neither arm has as many as the margin: what the
// paper speaks of does not occur in such a run.
Evidence CompareSpikes(const Tables& tables, const Pair& pair);

// Returns the runs of an arm.
Frame RunsOf(const Frame& runs, const Arm& arm);
// Return the two values of --axis-beta2.
std::string High(const Settings& settings);
std::string Low(const Settings& settings);

// Return the claims by subject.
std::vector<ClaimSpec> AxisClaims();
std::vector<ClaimSpec> PredictionClaims();
std::vector<ClaimSpec> RemedyClaims();
std::vector<ClaimSpec> ChangeClaims();

}  // namespace numsim::experiments::loss_spikes
