// What experiments that train models share: options as a training's configuration, and losses over
// seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/config/config.h"
#include "numsim/plot/figure.h"
#include "numsim/stats/moments.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {

// The part of a configuration that options of these names decide; what an experiment does not
// declare stays as it is in `config`. Each is one key of docs/configuration.md:
//   layers width heads context        model.*
//   batch steps valid-batches         train.*
//   lr warmup                         schedule.peak schedule.warmup
//   epsilon beta1 beta2 weight-decay clip   optimizer.*
// `steps` is schedule.steps as well; `seed` that of weights and batches. No validation before the
// end (train.valid_every = 0). Throws Error naming the option.
void ReadTraining(const Settings& settings, uint64_t seed, TrainConfig& config);

// Text for training: the UTF-8 file of option `text`, or where that is empty generated text of
// `text-size` bytes.
void ReadText(const Settings& settings, DataConfig& data);
// Images with captions: the folder of option `captions`, or where that is empty `shapes` generated
// images of `image` pixels a side.
void ReadCaptions(const Settings& settings, DataConfig& data);

// A size of a model as options write it: LAYERSxWIDTH, "2x64".
struct ModelSize {
  size_t layers = 0, width = 0;

  friend bool operator==(const ModelSize&, const ModelSize&) = default;
};
// The sizes of a list option, 1x16 to 128x8192. Throws Error naming the option.
std::vector<ModelSize> ReadSizes(const Settings& settings, std::string_view option);
ModelSize ParseSize(std::string_view option, const std::string& text);
// "2x64".
std::string Text(const ModelSize& size);
// Layers and width, heads of 32 (of the width, where it is less or no multiple of 32).
void SetSize(const ModelSize& size, ModelConfig& model);

// Keys of configurations and the options that decide them, where these have names that nothing
// above has: {"train.batch", "batches"}.
using OptionsOfKeys = std::map<std::string, std::string>;

// What no option alone can tell: opens the data and fits the configuration to them. Throws Error
// that names the option where the key comes from one.
void CheckTraining(const Settings& settings, const TrainConfig& config);
// Of trainings that all have the data of the first, which are opened once. `options` go before the
// options above.
void CheckTrainings(const Settings& settings,
                    std::span<const TrainConfig> configs,
                    const OptionsOfKeys& options);

// Loss against the step in few points: the mean of the losses since the point before.
class LossCurve {
 public:
  // A point each `every` steps and at the end. Requires every >= 1.
  explicit LossCurve(uint64_t every) : every_(every) {}
  // After each Trainer::Step. True: there is a point, steps() and loss().
  bool Add(const Trainer& trainer);
  uint64_t steps() const { return steps_; }
  double loss() const { return loss_; }

 private:
  uint64_t every_, steps_ = 0, since_ = 0;
  double sum_ = 0, loss_ = 0;
};

// The rows of one training, all with its key in front.
class TrainingRows {
 public:
  explicit TrainingRows(std::vector<std::string> key) : key_(std::move(key)) {}
  void Add(std::string_view table, const std::vector<std::string>& cells);
  Rows Take() { return std::move(rows_); }

 private:
  std::vector<std::string> key_;
  Rows rows_;
};

// Loss of a run that ended; infinite when it diverged.
double FinalLoss(Trainer& trainer);

// A value for each seed.
using SeedValues = std::map<std::string, double>;
// Mean over seeds with its 95 % interval (Student's t).
Estimate OverSeeds(const SeedValues& values);
// Of the differences to `baseline`, paired by seed. Requires the seeds of `values` in `baseline`.
Estimate GapOverSeeds(const SeedValues& values, const SeedValues& baseline);

// Values of several seeds by step.
using StepValues = std::map<double, std::vector<double>>;
// Mean over seeds, with the range as band where there are several.
Series SeriesOverSeeds(const StepValues& values);
// The same of a column against the column `step`. Rows that `selects` takes; values that are not
// finite are left out, those below `least` drawn at it.
Series SeriesOverSeeds(const Table& table,
                       const char* column,
                       const std::function<bool(size_t)>& selects,
                       double least);
// From 0 to the largest `step` of the table, so that panels agree where a run diverged early.
Axis StepAxis(const Table& table);

}  // namespace numsim::experiments
