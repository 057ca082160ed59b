// The progress line of a run: "[ 37/124] normal k=1024 seed=0" on stderr, rewritten in place.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace numsim::experiments {

// The beginning of a progress line, made from the share of a run's work that is left, 1 to 0.
using ProgressHead = std::function<std::string(double)>;

class Progress {
 public:
  // `done` of `total` points are finished already. Not `visible`: prints nothing.
  Progress(bool visible, size_t done, size_t total);
  // Ends the line; one with a head is erased.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From now on the line begins with what `head` returns. `left`: share of the work, now.
  void BeginWith(ProgressHead head, double left);

  // A point starts or is finished; `share`: of the work. Any thread may call them.
  void Started(std::string_view label);
  void Finished(std::string_view label, double share = 0);

 private:
  void Print(std::string_view label);

  const bool visible_;
  const size_t total_;
  std::mutex mutex_;
  size_t done_;
  ProgressHead head_;
  double left_ = 1;
  bool printed_ = false;
};

}  // namespace numsim::experiments
