// Progress lines of training and of ranking: one line on stderr, rewritten in place.
#pragma once

#include <chrono>
#include <string>

#include "experiments/runner/time_left.h"
#include "numsim/train/trainer.h"

namespace numsim::apps {

class ProgressLine {
 public:
  // Prints nothing unless `visible`.
  explicit ProgressLine(bool visible) : visible_(visible) {}
  // Ends the line if one was printed.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Returns true if a line should be printed now: at most a few times per second, and the last one.
  bool IsDue(bool last) const;
  void Print(const std::string& text);

 private:
  const bool visible_;
  bool printed_ = false;
  std::chrono::steady_clock::time_point printed_at_;
};

class TrainProgress {
 public:
  explicit TrainProgress(bool visible) : line_(visible) {}
  // Call after each step.
  void Show(const Trainer& trainer, double tokens_per_second, double seconds_left);

 private:
  ProgressLine line_;
};

class RankProgress {
 public:
  explicit RankProgress(bool visible) : line_(visible) {}
  // Call after each replay.
  void Show(size_t done, size_t all);

 private:
  ProgressLine line_;
  const experiments::Stopwatch watch_;
};

}  // namespace numsim::apps
