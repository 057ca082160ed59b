// Everything that a training is made from: what `numsim train CONFIG.toml` reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/data/source.h"
#include "numsim/formats/format_table.h"
#include "numsim/models/model_config.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim {

// Storage of the tensors between operations: values are rounded to these formats, to nearest even,
// at every point that a pass shows (models/pass.h).
struct StorageConfig {
  Format activations, gradients;  // fp32: as they are
  StorageConfig();
};

// What makes training harder on purpose, to bring failures of large models into reach of small
// ones. Off by default.
struct StressConfig {
  // A massive activation: `value` is added to one channel of the activations, after they were
  // computed and before they are stored, at every point that this pattern covers ('*' any run of
  // characters); empty: none. Gradients are what they are for an added constant: unchanged.
  // Points where they would not be are refused (train/stress.h).
  std::string point;
  size_t channel = 0;
  double value = 0;  // at most 1e30, either sign
  // Heavy-tailed inputs: pixels and features x become sinh(tail x) / tail, in training and in
  // validation; 0: as they are; at most 4. Not for text.
  double input_tail = 0;
};

// Bounds of stress.value, both ways, and of stress.input_tail.
inline constexpr double kLargestPlanted = 1e30;
inline constexpr double kLargestInputTail = 4;

// Throws Error naming the key: values out of range or not finite, a value without a point.
void CheckStressConfig(const StressConfig& stress);

struct LoopConfig {
  uint64_t seed = 0;  // of weights, of the order of the data, of stochastic rounding
  uint64_t steps = 1000;
  size_t batch = 16;           // examples of a step
  uint64_t valid_every = 100;  // steps between validations; 0: only at the end
  size_t valid_batches = 8;    // batches of a validation, at most; 0: all
  // The run has diverged when the loss is not finite, gradients are not (without a loss scaler), or
  // the mean loss of the last 10 steps is above `diverged_above` times the first loss. 0: only the
  // first two.
  double diverged_above = 3;
};

struct TelemetryConfig {
  uint64_t every = 1;            // steps between rows of train.csv
  uint64_t tensors_every = 100;  // of tensors.csv, quantised.csv and optimizer.csv; 0: none
};

struct CheckpointConfig {
  uint64_t every = 500;  // steps; 0: only when the run ends or is interrupted
};

struct TrainConfig {
  ModelConfig model;
  LinearPrecision linear;
  StorageConfig storage;
  StressConfig stress;
  OptimizerConfig optimizer;
  Schedule schedule;  // its steps are train.steps (FitToData, ParseTrainConfig)
  LossScalerConfig loss_scaler;
  DataConfig data;
  LoopConfig train;
  TelemetryConfig telemetry;
  CheckpointConfig checkpoint;
};

// A key of the configuration, as docs/configuration.md shows it.
struct ConfigKey {
  std::string name;     // "optimizer.beta2"
  std::string value;    // TOML
  std::string meaning;  // one line: meaning, and in brackets the valid values
};

// Reads a TOML file; paths in it are relative to its folder. `overrides` are "KEY=VALUE" texts of
// the command line, which win; VALUE is TOML, or text without quotes, and paths there are relative
// to the current directory. Paths become absolute. Presets: `preset = "small"` at the top takes
// that preset's values before the rest (TrainPresets). A [[linear.override]] starts from the
// defaults of LinearOptions and takes nothing from [linear]; overrides of the file replace those of
// a preset. Throws Error "FILE:LINE: KEY: ..." ("--set: KEY: ..." for the command line) for unknown
// keys, with the nearest one that there is, keys that are there twice, wrong types, values out of
// range; as CheckTrainConfig does; and for a file that cannot be read.
TrainConfig ReadTrainConfig(const std::filesystem::path& path,
                            const std::vector<std::string>& overrides);
// The same from a text; `name` stands for the file in messages, `folder` is what paths are relative
// to.
TrainConfig ParseTrainConfig(std::string_view toml,
                             std::string_view name,
                             const std::filesystem::path& folder,
                             const std::vector<std::string>& overrides);

// Every key with its value in `config`, in the order of docs/configuration.md. After them
// [[linear.override]] as linear.override.0.layers and so on.
std::vector<ConfigKey> ConfigKeys(const TrainConfig& config);
// TOML that reads back to the same configuration, whatever the folder: for checkpoints and
// manifests.
std::string WriteTrainConfig(const TrainConfig& config);

struct TrainPreset {
  std::string_view name;     // small, paper-100m, ...
  std::string_view meaning;  // one line
};
std::span<const TrainPreset> TrainPresets();
// Throws Error listing the presets.
TrainConfig MakeTrainPreset(std::string_view name);

// Throws Error "KEY: ..." for what is wrong before data are looked at: as CheckModelConfig,
// MakeLinearRecipe and CheckOptimizerConfig do, storage formats without sign or zero, no steps.
void CheckTrainConfig(const TrainConfig& config);

// Checks that the data have what the model needs, and copies what follows from elsewhere: into
// config.model from the data vocabulary, image, channels, classes, inputs and the context of
// captions, which therefore have no keys but `context`; train.steps into config.schedule. Then
// checks as CheckTrainConfig does. Throws Error naming the key.
void FitToData(TrainConfig& config, const DataShape& data);

}  // namespace numsim
