// Shared code of the experiments that train models: turns options into a training's configuration
// and collects the rows of a training.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/runner/approximate_parameters.h"
#include "experiments/runner/experiment.h"
#include "experiments/shared/state_archive.h"
#include "numsim/config/config.h"
#include "numsim/plot/figure.h"
#include "numsim/stats/moments.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {

// Most steps of a training, and of what counts them.
inline constexpr int64_t kMostSteps = 100'000'000;

// Sets the configuration keys (docs/configuration.md) that options of these names control. Keys
// whose option the experiment does not declare keep their values in `config`.
//   layers width heads context        model.*
//   batch steps valid-batches         train.*
//   lr warmup final-lr                schedule.peak schedule.warmup schedule.final
//   optimizer epsilon beta1 beta2 weight-decay clip   optimizer.* (optimizer: optimizer.kind,
//                                     clip: optimizer.clip_norm)
//   storage                           storage.activations storage.gradients
// `steps` also sets schedule.steps; `seed` is that of weights and batches (train.seed). Validation
// happens only at the end (train.valid_every = 0). Keys of the option `keys` are set last. Throws
// Error naming a bad option or key.
void ReadTraining(const Settings& settings, uint64_t seed, TrainConfig& config);

// Returns the option `keys`, by which ReadTraining sets any further key of the configuration.
Option KeysOption();

// Selects the text for training: the UTF-8 file of option `text` or, if it is empty, generated text
// of `text-size` bytes. If the experiment declares `vocabulary` and it is not 256: the pieces of a
// tokenizer with that many entries which is trained on the file, or without a file, `text-size` tokens
// with Zipf frequencies.
void ReadTextData(const Settings& settings, DataConfig& data);
// Selects images with captions: the folder of option `captions` or, where that is empty, `shapes`
// generated images of `image` x `image` pixels.
void ReadCaptions(const Settings& settings, DataConfig& data);

// Reads option `patch-dropout`, which has no effect on models other than CLIP.
void ReadPatchDropout(const Settings& settings, ModelConfig& model);

// The size of a model, which options write as LAYERSxWIDTH: "2x64".
struct ModelSize {
  size_t layers = 0, width = 0;

  friend bool operator==(const ModelSize&, const ModelSize&) = default;
};
// Returns the sizes of a list option, 1x16 to 128x8192. Throws Error naming the option.
std::vector<ModelSize> ReadSizes(const Settings& settings, std::string_view option);
// Parses one such size. Throws Error naming the option.
ModelSize ParseSize(std::string_view option, const std::string& text);
// Returns the size as LAYERSxWIDTH.
std::string Text(const ModelSize& size);
// Sets layers, width and number of heads. Heads are 32 wide; if the width is not a multiple of 32,
// there is one head.
void SetSize(const ModelSize& size, ModelConfig& model);

// Returns the scale of a training as text, for Experiment::scale: "2 layers, width 64, 300 steps".
// Options that the experiment does not declare are left out.
std::string TrainingScaleText(const Settings& settings, const Tables& tables = {});

// Configuration keys and the options that set them, for options that ReadTraining, ReadTextData and
// ReadCaptions do not know: {"train.batch", "batches"}.
using OptionsOfKeys = std::map<std::string, std::string>;

// Checks what depends on several options or on the data: opens the data and fits a copy of the
// configuration to them. Throws Error, naming the option if one sets the offending key, and if the
// experiment itself sets a key of the option `keys`.
void CheckTraining(const Settings& settings, const TrainConfig& config);
// Checks trainings that all use the data of the first, which are opened once. `options` take
// precedence over the options that ReadTraining, ReadTextData and ReadCaptions read.
void CheckTrainings(const Settings& settings,
                    std::span<const TrainConfig> configs,
                    const OptionsOfKeys& options);

// A thinned curve of loss against step: each point is the mean loss since the previous point.
class LossCurve {
 public:
  // Places a point every `every` steps and at the end. Requires every >= 1.
  explicit LossCurve(uint64_t every) : every_(every) {}
  // To be called after each Trainer::Step. Returns true if there is a new point: steps(), loss().
  bool Add(const Trainer& trainer);
  uint64_t steps() const { return steps_; }
  double loss() const { return loss_; }
  void Keep(StateArchive& archive) { archive(steps_, since_, sum_, loss_); }

 private:
  uint64_t every_, steps_ = 0, since_ = 0;
  double sum_ = 0, loss_ = 0;
};

// Collects the rows of one training; each row starts with the key cells of that training.
class TrainingRows {
 public:
  explicit TrainingRows(Row key) : key_(std::move(key)) {}
  void Add(std::string_view table, const Row& cells);
  Rows Take() { return std::move(rows_); }
  void Keep(StateArchive& archive) { archive(rows_); }

 private:
  Row key_;
  Rows rows_;
};

// Returns the validation loss at the end of the run; infinite when the run diverged.
double FinalLoss(Trainer& trainer);

}  // namespace numsim::experiments
