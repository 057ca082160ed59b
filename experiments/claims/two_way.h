// The additive two-way model: outcome = effect of the seed + effect of the arm + residual.
//
// Arms are the settings that an experiment compares; every arm is run with the same seeds. The
// effect of a seed (its data order and initial weights) is common to its runs and cancels in every
// comparison. Residuals are taken as independent and normal with one variance for all arms, which
// is therefore estimated from all of them. If some arms scatter more than others, the pooled
// variance is too small for them; SpreadTail tests for that and OwnContrast does without pooling.
#pragma once

#include <span>
#include <vector>

namespace numsim::experiments {

// The estimate of a contrast: a sum of weighted effects of arms whose weights sum to 0, such as the
// difference of two arms or a difference of differences.
struct ContrastEstimate {
  double value = 0;
  // Of `value`. 0 if the residuals are 0; NaN if there is no freedom to estimate it.
  double standard_error = 0;
  int freedom = 0;  // degrees of freedom of the standard error, for Student's t
};

// The least-squares fit of the model to a table with missing runs.
//
// Arms and seeds that share runs form a connected part of the table; a table without missing runs
// is one part. An arm without runs is a part by itself, and so is a seed without runs. Effects can
// be compared only within a part.
class TwoWayFit {
 public:
  // `values` holds arms x seeds outcomes, the seeds of the first arm first. Values that are not
  // finite count as missing. Throws Error unless values has arms x seeds elements.
  TwoWayFit(std::span<const double> values, int arms, int seeds);

  int Arms() const { return arms_; }
  // Returns the number of runs of an arm. Requires 0 <= arm < Arms().
  int Runs(int arm) const;
  // Returns the number of arms that have runs.
  int ArmsWithRuns() const;
  // Returns the residual degrees of freedom, pooled over all arms: runs - arms - seeds + 1 for a
  // connected table, (arms - 1) (seeds - 1) if also no run is missing; 0 for a single seed.
  int Freedom() const { return freedom_; }
  // Returns the sum of squared residuals divided by Freedom(); NaN if Freedom() is 0. Residuals
  // that do not exceed the rounding errors of the fit, 2^-46 of the largest outcome, count as 0.
  double ResidualVariance() const;

  // Returns the least-squares estimate of a contrast, with the pooled residual variance. All of it
  // is NaN if the table does not determine the contrast: unless in each connected part the weights
  // sum to 0. An estimate that does not exceed the rounding errors of the fit counts as 0. Throws
  // Error unless there is one weight per arm.
  ContrastEstimate Contrast(std::span<const double> weights) const;

  // Returns the mean of the contrast over the n seeds at which no arm of it is missing, with the
  // standard error that these n values alone give, n - 1 degrees of freedom. This assumes nothing
  // about the variances of arms. NaN for n = 0; the standard error is NaN for n = 1. Throws Error
  // unless there is one weight per arm.
  ContrastEstimate OwnContrast(std::span<const double> weights) const;

  // Returns the probability, were all variances equal, that the contrast varies over seeds at
  // least as much relative to the remaining residuals: the upper tail of an F test with n - 1 and
  // Freedom() - n + 1 degrees of freedom. Small if the arms of the contrast scatter more than the
  // others. 1 if either number is below 1. Throws Error unless there is one weight per arm.
  double SpreadTail(std::span<const double> weights) const;

 private:
  bool Observed(int arm, int seed) const;
  double Value(int arm, int seed) const { return values_[arm * seeds_ + seed]; }
  void FindParts();
  void FitArms();
  void FindResiduals();
  // Returns the values of a contrast at the seeds at which no arm of it is missing.
  std::vector<double> OverSeeds(std::span<const double> weights) const;
  // Returns 0 if |value| does not exceed the rounding errors of a sum with those weights.
  double WithoutRounding(double value, std::span<const double> weights) const;

  int arms_, seeds_;
  std::vector<double> values_;
  std::vector<int> part_of_arm_;  // the first arm of its connected part
  // The solution of the normal equations, in which the first arm of each part has effect 0, and
  // the inverse of their matrix, arms x arms: covariances of the effects in units of the residual
  // variance.
  std::vector<double> effects_, covariance_;
  double squares_ = 0;  // sum of squared residuals
  double rounding_ = 0;
  int freedom_ = 0;
};

}  // namespace numsim::experiments
