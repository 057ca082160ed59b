// The losses of a training that its end is judged by.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace numsim {

class LossHistory {
 public:
  static constexpr size_t kRecent = 10;

  void Add(double loss);
  // The loss of the first step, of the last one, and the mean of the last kRecent or of all while
  // there are fewer. NaN without any.
  double First() const { return first_; }
  double Last() const;
  double Recent() const;
  // Whether there are kRecent losses whose mean is above `times` the first loss. times == 0: never.
  bool Diverged(double times) const;

  // The first loss, then those that Recent() is made of, the oldest first; empty without any.
  std::vector<double> Save() const;
  // Throws Error for numbers that Save cannot have given.
  void Restore(const std::vector<double>& saved);

 private:
  double first_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> recent_;
};

}  // namespace numsim
