// The means of a trial to survive a stop: where its run has a training in it saved, how often, and
// when it stops. experiments/shared/training_steps.h uses them; other trials are not cut short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "numsim/io/manifest.h"

namespace numsim::experiments {

// The part of TrialContext::identity that is the trial's own.
inline constexpr const char* kTrialIdentity = "trial";

struct TrialContext {
  std::filesystem::path folder;  // of the checkpoints of all trials; exists
  size_t trial = 0;              // number of the trial, which begins the names of its checkpoints
  // Experiment, settings, trial and build. A checkpoint with others is not continued.
  NamedTexts identity = {};
  bool restore = true;                               // continue from a checkpoint if there is one
  double save_every = 0;                             // seconds between checkpoints
  std::function<bool()> stop = {};                   // whether to save and throw TrialStopped
  std::function<void(const std::string&)> say = {};  // for the user: continues, or cannot
};

// Thrown through Experiment::run by a trial that has saved what it needs to continue.
struct TrialStopped {};
// Thrown through Experiment::run by a trial that is to be run again without its checkpoints, because a
// saved state did not fit.
struct TrialRestarts {};

// Returns the file of a training of the trial; a trial with several names them.
std::filesystem::path CheckpointOf(const TrialContext& context, std::string_view training);

// Returns the file of a baseline after its first `steps`, from which trials fork (study/fork_start.h).
std::filesystem::path ForkFile(const TrialContext& context,
                               std::string_view baseline,
                               uint64_t steps);
// Removes all such files.
void RemoveForkFiles(const std::filesystem::path& folder);

// Removes the checkpoints of trials whose numbers `is_old` accepts.
void RemoveCheckpoints(const std::filesystem::path& folder,
                       const std::function<bool(size_t trial)>& is_old);

}  // namespace numsim::experiments
