// A training in a directory: files, checkpoints, interruption, resumption.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "numsim/train/trainer.h"

namespace numsim {

struct TrainRunOptions {
  std::filesystem::path out;
  bool resume = false;
  bool figures = true;               // draw the curves when the training has ended
  std::vector<std::string> command;  // argv, for the manifest
  // Looked at after every step: true saves a checkpoint and leaves with kRunning.
  const std::atomic<bool>* interrupted = nullptr;
  // Called after every step, for a progress line. Seconds left are those of the steps; both numbers
  // are of this process alone.
  std::function<void(const Trainer&, double tokens_per_second, double seconds_left)> progress;
};

// How fast this process trained, beside how fast the machine multiplies.
struct TrainSpeed {
  uint64_t steps = 0;  // that this process took; 0: all that follows is 0
  double seconds = 0;  // of those, without validations and checkpoints
  double tokens_per_second = 0;
  std::string_view unit = "tokens";  // or "examples"
  StepProfile profile;               // of those steps; the rest of `seconds` is in no part
  double layer_gflops = 0;           // 10^9 operations a second of the linear layers' products
  // The same of a product of float32 matrices of 512 x 512, on the scalar backend of 64 x 64,
  // measured at the end: in fixed order and by the library.
  double float32_gflops = 0, library_gflops = 0;

  // Share of `seconds`.
  double Share(StepPhase part) const;
};
// Lines of text for a terminal.
std::string Describe(const TrainSpeed& speed);

struct TrainRunResult {
  TrainStatus status = TrainStatus::kRunning;  // kRunning: interrupted
  std::string reason;
  uint64_t steps = 0;
  double train_loss = 0;           // mean of the last 10 steps
  double valid_loss = 0;           // the last one; NaN where there is none yet
  TrainSpeed speed;                // rates of float32 products only where the training has ended
  std::string summary;             // the text of summary.txt; empty when interrupted
  std::vector<std::string> files;  // written, relative to out
};

// Trains and writes into options.out: train.csv, valid.csv, tensors.csv, quantised.csv,
// optimizer.csv, config.toml (after defaults) and checkpoint.safetensors; when the training has
// ended, figures of the curves, summary.txt and manifest.json (with times: tokens a second, shares
// of the step, the product rate that the linear layers reached).
//
// CSVs grow while it runs, row by row; what a resumed run finds beyond its checkpoint it cuts off,
// so the final CSVs and summary.txt are those of an uninterrupted run, byte for byte, however often
// and at whatever moment it was killed. A killed run that has no checkpoint yet begins again. A
// directory that holds another run is refused without `resume`, and with it when the configuration
// differs (but for what CheckContinues of continuation.h leaves free) or a CSV is shorter than the
// checkpoint knows it. With `resume` and nothing there it begins. A run that has ended is not
// trained further; its last files are made again.
// Throws Error naming the directory, file or key; the files of the run are then as they were, or as
// after a kill.
TrainRunResult RunTraining(const TrainConfig& config, const TrainRunOptions& options);

}  // namespace numsim
