// Trainings in a directory that are interrupted.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "numsim/train/run.h"

namespace numsim {

// Trains into `out`, without figures, until the training ends or has taken `stop_at` steps.
inline TrainRunResult TrainUntil(const TrainConfig& config,
                                 const std::filesystem::path& out,
                                 bool resume,
                                 uint64_t stop_at) {
  std::atomic<bool> interrupted = false;
  TrainRunOptions options;
  options.out = out;
  options.resume = resume;
  options.figures = false;
  options.command = {"numsim", "train"};
  options.interrupted = &interrupted;
  options.progress = [&](const Trainer& trainer, double, double) {
    if (trainer.steps_taken() == stop_at) interrupted = true;
  };
  return RunTraining(config, options);
}

}  // namespace numsim
