// The progress line of a training, on stderr, rewritten in place.
#pragma once

#include <chrono>

#include "numsim/train/trainer.h"

namespace numsim::apps {

class TrainProgress {
 public:
  // Not `visible`: prints nothing.
  explicit TrainProgress(bool visible) : visible_(visible) {}
  // Ends the line.
  ~TrainProgress();
  TrainProgress(const TrainProgress&) = delete;
  TrainProgress& operator=(const TrainProgress&) = delete;

  // After a step. Prints a few times a second at most, and after the last step.
  void Show(const Trainer& trainer, double tokens_per_second, double seconds_left);

 private:
  const bool visible_;
  bool printed_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace numsim::apps
