// The configuration of a training, as read by `numsim train CONFIG.toml`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/config/what_if_config.h"
#include "numsim/data/source.h"
#include "numsim/formats/format_table.h"
#include "numsim/models/model_config.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim {

// The storage formats of tensors between operations. Every tensor that a pass reports to its
// observer (models/pass.h) is rounded to its format, to nearest even.
struct StorageConfig {
  Format activations, gradients;  // fp32: not rounded
  StorageConfig();
};

// Fault injection: perturbations that make training harder, so that small models show failures of
// large ones. Off by default.
struct StressConfig {
  // A massive activation: `value` is added to column `channel` of the activations whose tensor name
  // this pattern matches ('*' matches any run of characters), after they are computed and before
  // they are stored. Empty: none. Gradients are unchanged, as for an added constant; tensors for
  // which this would not hold are refused (train/stress.h).
  std::string point = {};
  size_t channel = 0;
  double value = 0;  // magnitude at most 1e30
  // Heavy-tailed inputs: pixels and features x become sinh(tail x) / tail, in training and in
  // validation; 0: unchanged; at most 4. Not for text.
  double input_tail = 0;
  // A change of the learning signal: from step `jump_step` on, the gradients of the loss are multiplied
  // by `jump_loss`, and pixels and features by `jump_contrast` (not for text). Training alone; losses
  // are reported without the factor.
  uint64_t jump_step = 0;
  double jump_loss = 1, jump_contrast = 1;  // above 0, at most 1e6

  // New data: in the first `old_steps` steps a training sees the first `old_batches` batches again and
  // again, and from then on all data.
  uint64_t old_steps = 0;
  uint64_t old_batches = 1;

  // A burst of gradients that are not finite: in the steps from `burst_step` on, `burst_steps` of them,
  // the first element of the gradient of parameter `burst_tensor` becomes infinite. Empty: none.
  std::string burst_tensor = {};
  uint64_t burst_step = 0, burst_steps = 1;

  // The least change that there is: before step `nudge_step` one weight becomes the next float32 away
  // from zero. `nudge_draw` numbers the draws of the weight, from all weights of the model, by the seed of
  // the training. 0: none. Needs weights in float32.
  uint64_t nudge_draw = 0, nudge_step = 0;

  // Returns true if the burst is at this step.
  bool InBurst(uint64_t step) const {
    return !burst_tensor.empty() && step >= burst_step && step - burst_step < burst_steps;
  }
  // Returns true if a weight is nudged before this step.
  bool NudgesAt(uint64_t step) const { return nudge_draw != 0 && step == nudge_step; }
  // Returns the number of the batch that a step takes for batch `index`.
  uint64_t BatchOf(uint64_t step, uint64_t index) const {
    return step < old_steps ? index % old_batches : index;
  }
  // Returns the factor of the gradients, or of the inputs, at a step.
  double LossFactor(uint64_t step) const { return step < jump_step ? 1 : jump_loss; }
  double ContrastFactor(uint64_t step) const { return step < jump_step ? 1 : jump_contrast; }
};

// Largest magnitude of stress.value, and largest stress.input_tail.
inline constexpr double kLargestPlanted = 1e30;
inline constexpr double kLargestInputTail = 4;
// Largest stress.jump_loss and stress.jump_contrast.
inline constexpr double kLargestJump = 1e6;

// Throws Error naming the key for values that are out of range or not finite, and for those that have
// no effect: stress.value without stress.point, a burst without its tensor, a jump without a factor, the step of
// a nudge without its draw.
void CheckStressConfig(const StressConfig& stress);

// The loop of a training: steps, batches, validations and when it has diverged.
struct LoopConfig {
  uint64_t seed = 0;  // for the initial weights, the order of the data and stochastic rounding
  uint64_t steps = 1000;
  size_t batch = 16;  // examples per step
  // Number of parts into which the batch of a step is divided. They are computed one after the other;
  // their gradients, each divided by the number of parts, are added in float32 as a balanced tree
  // (train/internal/gradient_tree.h).
  size_t accumulate = 1;
  uint64_t valid_every = 100;  // steps between validations; 0: only at the end
  size_t valid_batches = 8;    // largest number of batches per validation; 0: all
  // The run has diverged if the loss is not finite, if gradients are not finite (without a loss
  // scaler), or if the mean loss of the last 10 steps exceeds `diverged_above` times the first
  // loss. 0 disables the last condition.
  double diverged_above = 3;
};

// How often rows of telemetry are written.
struct TelemetryConfig {
  uint64_t every = 1;            // steps between rows of train.csv
  uint64_t tensors_every = 100;  // same for tensors.csv, quantised.csv, optimizer.csv; 0: no rows
};

// How often checkpoints are written.
struct CheckpointConfig {
  uint64_t every = 500;  // steps between checkpoints; 0: only when the run ends or is interrupted
};

// A fork: the first steps are those of another training, the baseline, and the rest goes on from its
// state. config/fork.h has what a fork keeps.
struct ForkConfig {
  uint64_t steps = 0;  // of the baseline; 0: no fork
  // Keys in which the baseline differs, as "KEY=VALUE". If they set any of [linear], the baseline takes
  // nothing from [linear] and its overrides.
  std::vector<std::string> before = {};
};

// The configuration of a training: everything that its TOML file can say.
struct TrainConfig {
  ModelConfig model = {};
  LinearPrecision linear = {};
  StorageConfig storage = {};
  StressConfig stress = {};
  OptimizerConfig optimizer = {};
  Schedule schedule = {};  // FitToData and ParseTrainConfig set schedule.steps to train.steps
  LossScalerConfig loss_scaler = {};
  DataConfig data = {};
  LoopConfig train = {};
  ForkConfig fork = {};
  TelemetryConfig telemetry = {};
  WhatIfConfig what_if = {};
  CheckpointConfig checkpoint = {};
};

// A key of the configuration, as listed in docs/configuration.md.
struct ConfigKey {
  std::string name;     // "optimizer.beta2"
  std::string value;    // TOML
  std::string meaning;  // one line: the meaning, followed by the valid values in parentheses
};

// The meaning of the names of formats in a document without the key `names` (formats.md): today's, or
// that until November 2026.
enum class DocumentNames { kTodays, kFormer };

// Reads a TOML file; the config.toml of a run has former names unless it says otherwise. `overrides`
// are "KEY=VALUE" texts from the command line, which take precedence over the file; VALUE is TOML, or
// text without quotes. Paths in the file are relative to its folder, paths in overrides to the current
// directory; all become absolute. `preset = "small"` applies that preset's values before all other
// keys (see TrainPresets), and then `recipe = "fp8-delayed"` that recipe's (see TrainRecipes). A
// [[linear.override]] starts from the defaults of LinearOptions and inherits nothing from [linear];
// overrides of the file replace those of a preset or recipe. Throws Error "FILE:LINE: KEY: ..."
// ("--set: KEY: ..." for the command line) for unknown keys, suggesting the key that was probably
// meant, and for duplicate keys, wrong types and values out of range; as CheckTrainConfig does; and
// for a file that cannot be read.
TrainConfig ReadTrainConfig(const std::filesystem::path& path,
                            const std::vector<std::string>& overrides);
// Parses a configuration from text. `name` stands for the file name in messages; paths in the text
// are relative to `folder`.
TrainConfig ParseTrainConfig(std::string_view toml,
                             std::string_view name,
                             const std::filesystem::path& folder,
                             const std::vector<std::string>& overrides,
                             DocumentNames names = DocumentNames::kTodays);

// Sets keys of `config`. `overrides` and errors are as for ReadTrainConfig, except that `preset` and
// `recipe` are errors and that the result is not checked as a whole.
void SetConfigKeys(const std::vector<std::string>& overrides, TrainConfig& config);
// Returns the keys that a TOML file sets, as overrides "KEY=VALUE" with absolute paths. Throws Error
// as SetConfigKeys does, and for a file that cannot be read.
std::vector<std::string> ReadConfigKeys(const std::filesystem::path& path);

// Returns every key with its value in `config`, in the order of docs/configuration.md, followed by
// the keys of each [[linear.override]]: linear.override.0.layers and so on.
std::vector<ConfigKey> ConfigKeys(const TrainConfig& config);
// Returns true for keys that only say what is recorded, how often, and where it is kept.
bool IsRecordKey(std::string_view key);
// Returns TOML that reads back to the same configuration from any folder, for checkpoints and
// manifests.
std::string WriteTrainConfig(const TrainConfig& config);

// A configuration with a name.
struct TrainPreset {
  std::string_view name;     // small, paper-100m, ...
  std::string_view meaning;  // one line
};
// Returns the presets, in the order of `numsim train --help`.
std::span<const TrainPreset> TrainPresets();
// Returns the configuration of a preset. Throws Error listing the presets if there is none of that
// name.
TrainConfig MakeTrainPreset(std::string_view name);

// The precision of a whole model by name, for the key `recipe`.
struct TrainRecipe {
  std::string_view name;     // bf16, fp8-delayed, ...
  std::string_view meaning;  // one line, with its source
  // The keys of [linear] that it sets: "KEY=VALUE", separated by blanks.
  std::string_view settings;
};
// Returns the recipes, in the order in which docs/configuration.md lists them.
std::span<const TrainRecipe> TrainRecipes();
// Sets config.linear, with first and last layers in high precision, and config.model.mlp if the
// recipe has a smooth SwiGLU. Throws Error listing the recipes if there is none of that name.
void ApplyTrainRecipe(std::string_view name, TrainConfig& config);

// Checks everything that does not depend on the data. Throws Error "KEY: ..." as the checks of the
// parts do (CheckModelConfig, MakeLinearRecipe, CheckStressConfig, CheckOptimizerConfig,
// CheckSchedule, CheckLossScalerConfig, CheckFork), for storage formats without a sign or a zero, and
// for values of [train], [telemetry] or [what_if] that are out of range.
void CheckTrainConfig(const TrainConfig& config);

// Checks that the data provide what the model needs, and fills in derived values: copies
// vocabulary, image, channels, classes, inputs and the context of captions from the data into
// config.model (of these only `context` has a key, for other models), and train.steps into
// config.schedule. Then checks as CheckTrainConfig does. Throws Error naming the key.
void FitToData(TrainConfig& config, const DataShape& data);

}  // namespace numsim
