// A training in a directory: files, checkpoints, interruption and resumption.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "numsim/train/trainer.h"

namespace numsim {

// The directory of a training, and what is called meanwhile.
struct TrainRunOptions {
  std::filesystem::path out = {};
  bool resume = false;
  bool figures = true;                    // draw the curves when the training has ended
  std::vector<std::string> command = {};  // argv, for the manifest
  // Read after every step; if true, the run saves a checkpoint and returns with kRunning.
  const std::atomic<bool>* interrupted = nullptr;
  // Called after every step, for a progress line. seconds_left covers the remaining steps without
  // validations; both numbers are estimated from the steps of this process only.
  std::function<void(const Trainer&, double tokens_per_second, double seconds_left)> progress = {};
  // Called with a line that the user should read: `resume` is set and there is no checkpoint.
  std::function<void(const std::string& line)> notice = {};
};

// The training speed of this process, and the machine's GEMM speed for comparison.
struct TrainSpeed {
  uint64_t steps = 0;  // number of steps this process took; if 0, all fields below are 0
  double seconds = 0;  // time of these steps, without validations and checkpoints
  double fastest = 0;  // time of the fastest of them: on a busy machine, the nearest to its speed
  double tokens_per_second = 0;
  std::string_view unit = "tokens";  // or "examples"
  StepProfile profile;               // time per phase; the phases need not add up to `seconds`
  double layer_gflops = 0;           // GEMMs of the linear layers, 10^9 operations per second
  // The same for a float32 GEMM of 512 x 512 matrices (smaller ones where those take long), measured
  // at the end: summed in fixed order, and by the float32 library.
  double float32_gflops = 0, library_gflops = 0;

  // Returns the fraction of `seconds` spent in the phase.
  double Share(StepPhase part) const;
};
// Returns lines of text for a terminal.
std::string Describe(const TrainSpeed& speed);

// How a training ended, and what was written.
struct TrainRunResult {
  TrainStatus status = TrainStatus::kRunning;  // kRunning: interrupted
  std::string reason;
  uint64_t steps = 0;
  double train_loss = 0;           // mean of the last 10 steps
  double valid_loss = 0;           // of the last validation; NaN before the first
  TrainSpeed speed;                // float32 GEMM rates are 0 unless the training has ended
  std::string summary;             // the text of summary.txt; empty when interrupted
  std::vector<std::string> files;  // written, relative to out
};

// Trains and writes into options.out: train.csv, valid.csv, tensors.csv, quantised.csv,
// optimizer.csv, what_if.csv (with recipes in [what_if]), config.toml (all keys, including defaults)
// and checkpoint.safetensors. When the
// training has ended, also writes figures of the curves, summary.txt and manifest.json (with
// timings: tokens per second, time per phase of a step, the GEMM rate of the linear layers).
//
// The CSVs grow row by row during the run. A resumed run truncates them to its checkpoint, so the
// final CSVs and summary.txt equal those of an uninterrupted run byte for byte, however often and
// whenever the run was killed. With `resume`, a run without a checkpoint starts from the beginning,
// also in an empty directory. A run that has ended is not trained further; its final files are
// written again.
//
// Refuses a directory that holds a run unless `resume` is true. Even then refuses it if the
// configuration differs (except for the keys that CheckContinues of continuation.h ignores) or a
// CSV is shorter than the checkpoint states. Throws Error naming the directory, file or key; the
// files of the run are then unchanged, or as after a kill.
TrainRunResult RunTraining(const TrainConfig& config, const TrainRunOptions& options);

}  // namespace numsim
