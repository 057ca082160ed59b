// Checks that the parts of a configuration fit together, and that they fit the data.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/config/fork.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/models/model.h"

namespace numsim {
namespace {

// Checks linear options. MakeLinearRecipe names options like the keys, without the section.
void CheckLinear(const LinearOptions& options, const std::string& section) {
  try {
    MakeLinearRecipe(options);
  } catch (const KeyError& error) {
    const bool delayed = error.key() == "delayed";
    const std::string key = delayed ? "delayed_history" : error.key();
    throw KeyError(fmt::format("{}.{}", section, key), error.text());
  } catch (const Error& error) {
    throw KeyError(section + ".kind", error.what());
  }
}

void CheckStorage(const Format& format, std::string_view key) {
  const FormatSpec& spec = format.spec;
  if (!spec.IsSigned() || spec.zero == Zero::kNone) {
    throw KeyError::Format(key, "format '{}' has no sign or no zero", format.name);
  }
}

void CheckLoop(const LoopConfig& loop) {
  if (loop.steps == 0) throw KeyError("train.steps", "0 is below 1");
  if (loop.batch == 0) throw KeyError("train.batch", "0 is below 1");
  if (loop.accumulate == 0 || loop.batch % loop.accumulate != 0) {
    throw KeyError::Format(
        "train.accumulate", "{} does not divide train.batch = {}", loop.accumulate, loop.batch);
  }
  if (loop.diverged_above > 0 && loop.diverged_above <= 1) {
    throw KeyError::Format(
        "train.diverged_above", "{} is neither 0 nor above 1", loop.diverged_above);
  }
}

// Checks the model without the values that follow from the data, which may not be known yet.
void CheckModelAlone(ModelConfig model) {
  model.image = std::max<size_t>(model.patch, 1);
  CheckModelConfig(model);
}

}  // namespace

namespace {

void CheckNudge(const TrainConfig& config) {
  const StressConfig& stress = config.stress;
  if (stress.nudge_draw == 0) return;
  if (stress.nudge_step >= config.train.steps) {
    throw KeyError::Format("stress.nudge_step",
                           "{} is not below the number of steps, {}",
                           stress.nudge_step,
                           config.train.steps);
  }
  if (config.optimizer.weights.name != ParseFormat("fp32").name) {
    throw KeyError::Format(
        "stress.nudge_draw",
        "the neighbours of weights are those in fp32, and optimizer.weights is {}",
        config.optimizer.weights.name);
  }
}

}  // namespace

StorageConfig::StorageConfig() : activations(ParseFormat("fp32")), gradients(activations) {}

void CheckTrainConfig(const TrainConfig& config) {
  CheckModelAlone(config.model);
  CheckLinear(config.linear.all, "linear");
  for (size_t i = 0; i < config.linear.overrides.size(); ++i) {
    CheckLinear(config.linear.overrides[i].precision, fmt::format("{}.{}", kOverrideSection, i));
  }
  CheckStorage(config.storage.activations, "storage.activations");
  CheckStorage(config.storage.gradients, "storage.gradients");
  CheckStressConfig(config.stress);
  CheckOptimizerConfig(config.optimizer);
  CheckSchedule(config.schedule);
  CheckLossScalerConfig(config.loss_scaler);
  CheckLoop(config.train);
  CheckNudge(config);
  if (config.telemetry.every == 0) throw KeyError("telemetry.every", "0 is below 1");
  CheckWhatIfConfig(config.what_if);
  CheckFork(config);
}

void FitToData(TrainConfig& config, const DataShape& data) {
  FitModelToData(config.model, data);
  if (!data.HasImages() && data.features == 0) {
    constexpr const char* kNoNumbers = "text has neither pixels nor features";
    if (config.stress.input_tail != 0) throw KeyError("stress.input_tail", kNoNumbers);
    if (config.stress.jump_contrast != 1) throw KeyError("stress.jump_contrast", kNoNumbers);
  }
  config.schedule.steps = config.train.steps;
  CheckTrainConfig(config);
  CheckModelConfig(config.model);
}

}  // namespace numsim
