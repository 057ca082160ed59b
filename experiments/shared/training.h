// Shared code of the experiments that train models: options that they have in common, and the rows of a
// training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/model_size.h"
#include "experiments/shared/state_archive.h"
#include "numsim/config/config.h"
#include "numsim/plot/figure.h"
#include "numsim/stats/moments.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {

// Most steps of a training, and of what counts them.
inline constexpr int64_t kMostSteps = 100'000'000;

// Returns the option `keys`, by which a user sets any further key of the configuration.
Option KeysOption();

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

// Returns a number in proportion to the arithmetic that a token needs: of matrices, and of attention.
double CostPerToken(const ModelConfig& model);

// Returns the scale of a training as text, for Experiment::scale: "2 layers, width 64, 300 steps".
// Options that the experiment does not declare are left out.
std::string TrainingScaleText(const Settings& settings, const Tables& tables = {});

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
  // Puts the key of this training into all rows, which may be those of another arm.
  void Rekey();
  Rows Take() { return std::move(rows_); }
  void Keep(StateArchive& archive) { archive(rows_); }

 private:
  Row key_;
  Rows rows_;
};

// Returns the validation loss at the end of the run; infinite when the run diverged.
double FinalLoss(Trainer& trainer);

}  // namespace numsim::experiments
