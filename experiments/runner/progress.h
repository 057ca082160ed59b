// The progress line of a run, "[ 37/124] 1:05 left  normal k=1024 seed=0", on stderr and rewritten
// in place.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "experiments/runner/time_left.h"

namespace numsim::experiments {

// Returns the beginning of a progress line, given the share of the run's work that is left, 1 to 0.
using ProgressHead = std::function<std::string(double)>;

class Progress {
 public:
  // `done` of `total` trials are already finished. Prints nothing unless `visible`.
  Progress(bool visible, size_t done, size_t total);
  // Ends the line, or erases it if it has a head.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Makes the line begin with the result of `head`, which then shows the time left; without a head
  // the line shows it itself, at the pace since this call. `left` is the share of the work left so
  // far.
  void BeginWith(ProgressHead head, double left);

  // Report that a trial has started or finished; `share` is its share of the work. Any thread may
  // call them.
  void Started(std::string_view label);
  void Finished(std::string_view label, double share = 0);

 private:
  void Print(std::string_view label);

  const bool visible_;
  const size_t total_;
  std::mutex mutex_;
  size_t done_;
  ProgressHead head_;
  double left_ = 1, first_left_ = 1;
  const Stopwatch watch_;
  bool printed_ = false;
};

}  // namespace numsim::experiments
