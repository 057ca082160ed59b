#include "numsim/stats/moments.h"

#include <cmath>
#include <limits>

#include "numsim/base/elementary.h"

namespace numsim {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kZ95 = 1.959963984540054;  // 97.5 % quantile of the standard normal
}  // namespace

void Moments::Add(double x) {
  const double n1 = static_cast<double>(count_);
  ++count_;
  const double n = static_cast<double>(count_);
  const double delta = x - mean_;
  const double delta_n = delta / n;
  const double delta_n2 = delta_n * delta_n;
  const double term = delta * delta_n * n1;
  mean_ += delta_n;
  m4_ += term * delta_n2 * (n * n - 3 * n + 3) + 6 * delta_n2 * m2_ - 4 * delta_n * m3_;
  m3_ += term * delta_n * (n - 2) - 3 * delta_n * m2_;
  m2_ += term;
}

double Moments::Variance() const {
  return count_ < 2 ? kNaN : m2_ / static_cast<double>(count_ - 1);
}

double Moments::Kurtosis() const {
  if (count_ < 2 || m2_ == 0) return kNaN;
  return static_cast<double>(count_) * m4_ / (m2_ * m2_);
}

double Moments::MeanError() const { return std::sqrt(Variance() / static_cast<double>(count_)); }

double Moments::VarianceRelativeError() const {
  const double n = static_cast<double>(count_);
  return std::sqrt((Kurtosis() - 1 + 2 / (n - 1)) / n);
}

Estimate Moments::MeanEstimate() const {
  const double half = kZ95 * MeanError();
  return {mean_, mean_ - half, mean_ + half};
}

Estimate Moments::VarianceEstimate() const {
  const double variance = Variance();
  if (variance == 0) return {0, 0, 0};
  const double factor = Exp(kZ95 * VarianceRelativeError());
  return {variance, variance / factor, variance * factor};
}

void Comoments::Add(double x, double y) {
  ++count_;
  const double n = static_cast<double>(count_);
  const double dx = x - mean_x_;
  const double dy = y - mean_y_;
  mean_x_ += dx / n;
  mean_y_ += dy / n;
  xx_ += dx * (x - mean_x_);
  yy_ += dy * (y - mean_y_);
  xy_ += dx * (y - mean_y_);
}

double Comoments::Correlation() const {
  return xx_ == 0 || yy_ == 0 ? 0.0 : xy_ / std::sqrt(xx_ * yy_);
}

}  // namespace numsim
