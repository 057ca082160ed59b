// A training of a trial in a file: the trainer's state, and the variables of what measures it.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/runner/trial_context.h"
#include "numsim/io/manifest.h"
#include "numsim/train/checkpoint.h"

namespace numsim::experiments {

struct SavedTraining {
  TrainState state;
  std::string variables;  // bytes of a StateArchive
};

// Writes a training with the identity of what may continue it, each name as the field trial.NAME.
// Replaces the file in one step. Throws Error if it cannot be written.
void WriteSavedTraining(const std::filesystem::path& path,
                        const NamedTexts& identity,
                        SavedTraining saved);
// Reads the file. Throws Error if it is damaged, or naming the first difference of its identity.
SavedTraining ReadSavedTraining(const std::filesystem::path& path, const NamedTexts& identity);

}  // namespace numsim::experiments
