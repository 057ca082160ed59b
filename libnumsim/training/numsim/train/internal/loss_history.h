// The training losses by which divergence and spikes are detected.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace numsim {

class LossHistory {
 public:
  static constexpr size_t kRecent = 10;
  static constexpr size_t kWindow = 128;  // losses before the last one, for Deviation()

  void Add(double loss);
  // The loss of the first step, the loss of the last step, and the mean of the last kRecent losses
  // (of all losses if fewer). NaN if there are none.
  double First() const { return first_; }
  double Last() const;
  double Recent() const;
  // Returns true if there are kRecent losses whose mean exceeds `times` times the first loss.
  // Always false for times == 0.
  bool Diverged(double times) const;
  // Returns LossDeviation (stats/spikes.h) of the last loss; NaN if there is none.
  double Deviation() const;

  // Returns the first loss, then the losses that are kept, oldest first; empty if there are none.
  std::vector<double> Save() const;
  // Throws Error if Save cannot have returned this number of losses.
  void Restore(const std::vector<double>& saved);

 private:
  static constexpr size_t kKept = kWindow + 1;

  double first_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> kept_;  // the last losses, oldest first
};

}  // namespace numsim
