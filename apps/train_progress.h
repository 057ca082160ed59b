// The progress lines of a training and of a ranking, on stderr, rewritten in place.
#pragma once

#include <chrono>
#include <string>

#include "numsim/train/trainer.h"

namespace numsim::apps {

class ProgressLine {
 public:
  // Not `visible`: prints nothing.
  explicit ProgressLine(bool visible) : visible_(visible) {}
  // Ends the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether to print now: a few times a second at most, and the last time.
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
  // After a step.
  void Show(const Trainer& trainer, double tokens_per_second, double seconds_left);

 private:
  ProgressLine line_;
};

class RankProgress {
 public:
  explicit RankProgress(bool visible) : line_(visible), start_(std::chrono::steady_clock::now()) {}
  // After a replay.
  void Show(size_t done, size_t all);

 private:
  ProgressLine line_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace numsim::apps
