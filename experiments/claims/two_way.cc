#include "experiments/claims/two_way.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/claims/beta.h"
#include "numsim/base/require.h"

namespace numsim::experiments {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr ContrastEstimate kNotDetermined = {kNaN, kNaN, 0};

double SumOfSquares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double SquaredDeviations(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

// Replaces a symmetric positive definite matrix, n x n, by its inverse: Gauss-Jordan elimination,
// which needs no pivoting for such a matrix.
void Invert(std::vector<double>& matrix, int n) {
  for (int k = 0; k < n; ++k) {
    double* const row = &matrix[k * n];
    const double pivot = row[k];
    row[k] = 1;
    for (int j = 0; j < n; ++j) row[j] /= pivot;
    for (int i = 0; i < n; ++i) {
      if (i == k) continue;
      double* const other = &matrix[i * n];
      const double factor = other[k];
      other[k] = 0;
      for (int j = 0; j < n; ++j) other[j] -= factor * row[j];
    }
  }
}

}  // namespace

TwoWayFit::TwoWayFit(std::span<const double> values, int arms, int seeds)
    : arms_(arms), seeds_(seeds), values_(values.begin(), values.end()) {
  NUMSIM_REQUIRE(
      arms >= 0 && seeds >= 0, "TwoWayFit: {} arms and {} seeds, expected at least 0", arms, seeds);
  RequireSize(values.size(), static_cast<size_t>(arms) * seeds, "TwoWayFit", "values");
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  rounding_ = 0x1p-46 * largest;
  FindParts();
  FitArms();
  FindResiduals();
}

bool TwoWayFit::Observed(int arm, int seed) const { return std::isfinite(Value(arm, seed)); }

int TwoWayFit::Runs(int arm) const {
  int runs = 0;
  for (int seed = 0; seed < seeds_; ++seed) runs += Observed(arm, seed);
  return runs;
}

int TwoWayFit::ArmsWithRuns() const {
  int arms = 0;
  for (int arm = 0; arm < arms_; ++arm) arms += Runs(arm) > 0;
  return arms;
}

// Each arm takes the least label of the arms it shares a seed with, until nothing changes.
void TwoWayFit::FindParts() {
  for (int arm = 0; arm < arms_; ++arm) part_of_arm_.push_back(arm);
  for (bool changed = true; changed;) {
    changed = false;
    for (int seed = 0; seed < seeds_; ++seed) {
      int least = arms_;
      for (int arm = 0; arm < arms_; ++arm) {
        if (Observed(arm, seed)) least = std::min(least, part_of_arm_[arm]);
      }
      for (int arm = 0; arm < arms_; ++arm) {
        if (!Observed(arm, seed) || part_of_arm_[arm] == least) continue;
        part_of_arm_[arm] = least;
        changed = true;
      }
    }
  }
}

// The normal equations after elimination of the seeds: outcomes are taken relative to the mean of
// their seed, and each seed with k runs adds 1 - 1/k to the diagonal and -1/k beside it.
void TwoWayFit::FitArms() {
  effects_.assign(arms_, 0);
  covariance_.assign(static_cast<size_t>(arms_) * arms_, 0);
  std::vector<double> right(arms_, 0);
  for (int seed = 0; seed < seeds_; ++seed) {
    std::vector<int> present;
    std::vector<double> outcomes;
    for (int arm = 0; arm < arms_; ++arm) {
      if (!Observed(arm, seed)) continue;
      present.push_back(arm);
      outcomes.push_back(Value(arm, seed));
    }
    if (present.empty()) continue;
    const double mean = Mean(outcomes), share = 1 / static_cast<double>(present.size());
    for (size_t i = 0; i < present.size(); ++i) {
      right[present[i]] += outcomes[i] - mean;
      for (const int j : present) covariance_[present[i] * arms_ + j] -= share;
      covariance_[present[i] * arms_ + present[i]] += 1;
    }
  }
  const auto first = [&](int arm) { return part_of_arm_[arm] == arm; };
  const auto ground = [&](double diagonal) {
    for (int i = 0; i < arms_; ++i) {
      for (int j = 0; j < arms_; ++j) {
        if (first(i) || first(j)) covariance_[i * arms_ + j] = i == j ? diagonal : 0;
      }
    }
  };
  ground(1);
  Invert(covariance_, arms_);
  ground(0);
  for (int i = 0; i < arms_; ++i) {
    for (int j = 0; j < arms_; ++j) effects_[i] += covariance_[i * arms_ + j] * right[j];
  }
}

void TwoWayFit::FindResiduals() {
  int runs = 0, parameters = 0;
  for (int arm = 0; arm < arms_; ++arm) parameters += part_of_arm_[arm] != arm;
  for (int seed = 0; seed < seeds_; ++seed) {
    std::vector<double> left;
    for (int arm = 0; arm < arms_; ++arm) {
      if (Observed(arm, seed)) left.push_back(Value(arm, seed) - effects_[arm]);
    }
    if (left.empty()) continue;
    squares_ += SquaredDeviations(left);
    runs += static_cast<int>(left.size());
    ++parameters;
  }
  freedom_ = runs - parameters;
  if (squares_ <= rounding_ * rounding_ * runs) squares_ = 0;
}

double TwoWayFit::ResidualVariance() const { return freedom_ == 0 ? kNaN : squares_ / freedom_; }

double TwoWayFit::WithoutRounding(double value, std::span<const double> weights) const {
  double size = 0;
  for (const double weight : weights) size += std::abs(weight);
  return std::abs(value) <= rounding_ * size ? 0 : value;
}

ContrastEstimate TwoWayFit::Contrast(std::span<const double> weights) const {
  RequireSize(weights.size(), arms_, "TwoWayFit::Contrast", "weights");
  std::vector<double> in_part(arms_, 0);
  double value = 0, variance = 0, size = 0;
  for (int i = 0; i < arms_; ++i) {
    in_part[part_of_arm_[i]] += weights[i];
    size += std::abs(weights[i]);
    value += weights[i] * effects_[i];
    for (int j = 0; j < arms_; ++j) {
      variance += weights[i] * covariance_[i * arms_ + j] * weights[j];
    }
  }
  for (const double sum : in_part) {
    if (!(std::abs(sum) <= 1e-12 * size)) return kNotDetermined;
  }
  return {WithoutRounding(value, weights),
          std::sqrt(ResidualVariance() * std::max(0., variance)),
          freedom_};
}

std::vector<double> TwoWayFit::OverSeeds(std::span<const double> weights) const {
  std::vector<double> values;
  for (int seed = 0; seed < seeds_; ++seed) {
    double value = 0;
    for (int arm = 0; arm < arms_; ++arm) {
      if (weights[arm] != 0) value += weights[arm] * Value(arm, seed);
    }
    if (std::isfinite(value)) values.push_back(WithoutRounding(value, weights));
  }
  return values;
}

ContrastEstimate TwoWayFit::OwnContrast(std::span<const double> weights) const {
  RequireSize(weights.size(), arms_, "TwoWayFit::OwnContrast", "weights");
  const std::vector<double> values = OverSeeds(weights);
  if (values.empty()) return kNotDetermined;
  const int freedom = static_cast<int>(values.size()) - 1;
  const double size = static_cast<double>(values.size());
  const double variance = freedom == 0 ? kNaN : SquaredDeviations(values) / freedom;
  return {Mean(values), std::sqrt(variance / size), freedom};
}

// Contrasts of seeds less their mean are orthogonal to the effects of arms and of seeds, also if
// other runs are missing, so they split the residual sum of squares into two independent parts.
double TwoWayFit::SpreadTail(std::span<const double> weights) const {
  RequireSize(weights.size(), arms_, "TwoWayFit::SpreadTail", "weights");
  const std::vector<double> values = OverSeeds(weights);
  const int own_freedom = static_cast<int>(values.size()) - 1;
  const int rest_freedom = freedom_ - own_freedom;
  if (own_freedom < 1 || rest_freedom < 1 || squares_ == 0) return 1;
  const double own = SquaredDeviations(values) / SumOfSquares(weights);
  const double rest = squares_ - own;
  if (rest <= 0) return 0;
  return FisherTail((own / own_freedom) / (rest / rest_freedom), own_freedom, rest_freedom);
}

}  // namespace numsim::experiments
