// The progress line of a run: "[ 37/124] normal k=1024 seed=0" on stderr, rewritten in place.
#pragma once

#include <cstddef>
#include <mutex>
#include <string_view>

namespace numsim::experiments {

class Progress {
 public:
  // `done` of `total` points are finished already. Not `visible`: prints nothing.
  Progress(bool visible, size_t done, size_t total);
  // Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A point starts or is finished. Any thread may call them.
  void Started(std::string_view label);
  void Finished(std::string_view label);

 private:
  void Print(std::string_view label);

  const bool visible_;
  const size_t total_;
  std::mutex mutex_;
  size_t done_;
  bool printed_ = false;
};

}  // namespace numsim::experiments
