// A training that is computed elsewhere, such as in PyTorch, in a directory as RunTraining (run.h)
// writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/optim/optimizer.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/run.h"

namespace numsim {

// The numbers of an optimiser's step in a row of train.csv.
struct StepNumbers {
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  double clip_factor = std::numeric_limits<double>::quiet_NaN();
  double loss_scale = 1;
  uint64_t skipped = 0;                                   // number of tensors that did not move
  double rms = std::numeric_limits<double>::quiet_NaN();  // the largest RMS_t of a tensor that did
  std::string rms_tensor = {};                            // its name
  bool finite = true;                                     // all gradients are
};
// Returns the numbers of a step of these parameters. Requires a step that was taken or skipped.
StepNumbers NumbersOf(const OptimizerStep& step, const ParameterList<float>& parameters);
// Returns the numbers of a step that is not taken, because the loss is not finite.
StepNumbers NumbersWithoutStep(size_t tensors, double loss_scale);

// The directory of a training that another program computes, and what its manifest says.
struct RecordOptions {
  std::filesystem::path out = {};
  bool resume = false;
  bool figures = true;
  size_t parameters = 0;                  // number of elements
  std::vector<std::string> command = {};  // argv, for the manifest
  // Of other programs, for the manifest.
  std::vector<std::pair<std::string, std::string>> versions = {};
  // Called with a line that the user should read, as TrainRunOptions::notice is.
  std::function<void(const std::string& line)> notice = {};
};

// The caller computes losses and steps and owns the tensors. This class decides what a Trainer decides
// for itself: when validations are due, when the training ends, what goes into the files. Its checkpoints have the form of a Trainer's.
class RecordedRun {
 public:
  // Starts a training in the directory, or continues the one that it has. `config` is one after
  // FitToData. Locks the directory as long as this object lives. Throws Error as RunTraining does.
  RecordedRun(const TrainConfig& config,
              std::shared_ptr<const DataSource> data,
              RecordOptions options);
  ~RecordedRun();
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  // Tensors by name.
  using Tensors = std::vector<std::pair<std::string, Array>>;
  // Returns the tensors of the checkpoint from which the training continues; nullopt if it starts at
  // step 0, and after the first call.
  std::optional<Tensors> TakeCheckpoint();

  // The status of the training, the reason of its end, and the number of steps taken.
  TrainStatus status() const;
  const std::string& reason() const;
  uint64_t steps_taken() const;
  double recent_loss() const;  // as Trainer's

  // Returns true before the first step, every train.valid_every steps and at the end, until
  // AddValidation is called.
  bool ValidationIsDue() const;
  void AddValidation(const LossSum& loss);

  // Adds a step of this mean loss, which took `seconds`. If the loss is not finite, the step was not
  // taken. Returns the status after it. Requires status kRunning.
  TrainStatus AddStep(double loss, const StepNumbers& numbers, double seconds);

  // Writes the checkpoint. `tensors` are those of Trainer::Save.
  void Save(Tensors tensors);

  // Returns the result of the training so far. If it has ended, writes the figures, summary.txt and
  // manifest.json. `bytes` are those of the optimiser.
  TrainRunResult Finish(const Optimizer::Bytes& bytes);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace numsim
