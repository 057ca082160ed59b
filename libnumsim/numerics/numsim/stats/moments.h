// Running moments of a sample, and the population estimates that follow from them.
#pragma once

#include <cstddef>
#include <vector>

namespace numsim {

// An estimate with its 95 % confidence interval.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Mean and central moments up to the fourth, in float64, by the one-pass update of [Pebay].
class Moments {
 public:
  // Adds a value.
  void Add(double x);

  // The number of values and their mean.
  size_t Count() const { return count_; }
  double Mean() const { return mean_; }
  // Sum of squared deviations divided by n - 1; NaN for fewer than two values.
  double Variance() const;
  // Fourth central moment divided by the square of the second; 3 for a normal population.
  double Kurtosis() const;
  // Standard error of the mean.
  double MeanError() const;
  // Relative standard error of Variance() as an estimate of the population's variance. For kurtosis
  // g it is sqrt((g - 1 + 2 / (n - 1)) / n). Heavy tails make it larger than for a normal sample.
  double VarianceRelativeError() const;
  // Mean() +- 1.96 standard errors.
  Estimate MeanEstimate() const;
  // Variance() with the interval of a log-normal estimate: V exp(+-1.96 VarianceRelativeError()).
  Estimate VarianceEstimate() const;

 private:
  size_t count_ = 0;
  double mean_ = 0;
  double m2_ = 0, m3_ = 0, m4_ = 0;  // sums of powers of the deviation from the mean
};

// Means, variances and the correlation of pairs (x, y), in float64.
class Comoments {
 public:
  // Adds a pair.
  void Add(double x, double y);
  // Pearson's correlation; 0 if x or y does not vary.
  double Correlation() const;

 private:
  size_t count_ = 0;
  double mean_x_ = 0, mean_y_ = 0;
  double xx_ = 0, yy_ = 0, xy_ = 0;
};

// Quantiles of a sample.

// Returns the `q` quantile of `samples`, interpolated linearly between the sorted samples: the
// first is at q = 0, the last at q = 1; 0.5 gives the median. Requires samples without NaN. Throws
// Error if there is no sample or unless 0 <= q <= 1.
double Quantile(std::vector<double> samples, double q);

}  // namespace numsim
