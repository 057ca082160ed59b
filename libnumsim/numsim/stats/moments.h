// Running moments of a sample, and what they say of its population.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace numsim {

// An estimate with its 95 % confidence interval.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Mean and central moments up to the fourth, by the one-pass update of [Pebay]; float64.
class Moments {
 public:
  void Add(double x);

  size_t Count() const { return count_; }
  double Mean() const { return mean_; }
  // Sum of squared deviations over n - 1; NaN for fewer than two values.
  double Variance() const;
  // Fourth central moment over the squared second; 3 for a normal population.
  double Kurtosis() const;
  // Standard error of the mean.
  double MeanError() const;
  // Relative standard error of Variance() as an estimate of the population's: for kurtosis g,
  // sqrt((g - 1 + 2 / (n - 1)) / n). Heavy tails make it larger than a normal sample's.
  double VarianceRelativeError() const;
  // Mean() +- 1.96 standard errors.
  Estimate MeanEstimate() const;
  // Variance() with the interval of a log-normal estimate: V exp(+-1.96 relative error).
  Estimate VarianceEstimate() const;

 private:
  size_t count_ = 0;
  double mean_ = 0;
  double m2_ = 0, m3_ = 0, m4_ = 0;  // sums of powers of the deviation from the mean
};

// Means, variances and the correlation of pairs (x, y); float64.
class Comoments {
 public:
  void Add(double x, double y);
  // Pearson's correlation; 0 when either side does not vary.
  double Correlation() const;

 private:
  size_t count_ = 0;
  double mean_x_ = 0, mean_y_ = 0;
  double xx_ = 0, yy_ = 0, xy_ = 0;
};

// Means of a few values, such as one a seed.

// Mean with the 95 % interval of Student's t; one value: low and high NaN. Where a value is not
// finite all three are infinite (NaN for a NaN). Requires at least one value.
Estimate MeanOf(std::span<const double> values);

// Quantiles of a sample.

// The value below which a share `q` of `samples` lies: linear between the sorted samples, of which
// the first stands at q = 0 and the last at q = 1; 0.5 is the median. Requires samples without NaN
// and 0 <= q <= 1.
double Quantile(std::vector<double> samples, double q);

}  // namespace numsim
