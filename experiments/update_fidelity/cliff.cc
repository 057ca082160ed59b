#include "experiments/update_fidelity/cliff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments::update_fidelity {
namespace {

// The search for half of the norm goes from rate 1 down to 1e-12 on a grid that measurement and
// prediction share. It finds the first grid rate below half, then bisects between that rate and the
// one above it.
constexpr int kGridSteps = 48;
double GridRate(int i) { return Exp(-0.25 * Log(10) * i); }

// Applies the naive rule to all weights at a given rate.
class NaiveSteps {
 public:
  NaiveSteps(const FormatSpec& format, std::span<const float> weights, std::span<const float> u)
      : step_{.format = format,
              .weights = HostMatrix(weights, {1, weights.size()}),
              .update = HostMatrix(u, {1, u.size()})},
        new_weights_(weights.size()) {}

  UpdateOutcome At(float lr) {
    step_.learning_rate = lr;
    UpdateState none;
    return ApplyUpdate({}, step_, {}, none, HostMatrix(new_weights_, step_.weights.Shape()));
  }

 private:
  WeightUpdate step_;
  std::vector<float> new_weights_;
};

float Midpoint(float low, float high) {
  const uint32_t a = std::bit_cast<uint32_t>(low), b = std::bit_cast<uint32_t>(high);
  return std::bit_cast<float>(a + (b - a) / 2);
}

// Returns the last float32 for which `low_side` holds, by bisection. Requires 0 <= low < high,
// low_side(low) and not low_side(high).
template <typename LowSide>
float LastFloat(float low, float high, const LowSide& low_side) {
  for (float middle = Midpoint(low, high); middle != low; middle = Midpoint(low, high)) {
    (low_side(middle) ? low : high) = middle;
  }
  return low;
}

float Unmoved(NaiveSteps& steps) {
  const auto still = [&](float lr) { return steps.At(lr).moved == 0; };
  if (still(kGreatestRate)) return std::numeric_limits<float>::quiet_NaN();
  return LastFloat(0, kGreatestRate, still);
}

// Returns the greatest rate at which below_half(lr) holds, by searching the grid and then between
// two grid rates; NaN if it never holds, or already holds at rate 1.
template <typename BelowHalf>
float FindHalfNorm(const BelowHalf& below_half) {
  float above = static_cast<float>(GridRate(0));
  if (below_half(above)) return std::numeric_limits<float>::quiet_NaN();
  for (int i = 1; i <= kGridSteps; ++i) {
    const float rate = static_cast<float>(GridRate(i));
    if (below_half(rate)) return LastFloat(rate, above, below_half);
    above = rate;
  }
  return std::numeric_limits<float>::quiet_NaN();
}

// Returns the value whose magnitude code is `steps` away from `code`. Steps past zero give values
// of the other sign; steps beyond the largest value give infinity.
double Neighbour(const FormatSpec& format, uint32_t code, int64_t steps) {
  const int64_t target = static_cast<int64_t>(code) + steps;
  const auto magnitude = static_cast<uint32_t>(std::abs(target));
  if (magnitude > format.MaxFiniteCode()) return target < 0 ? -kInfinity : kInfinity;
  const Dyadic value = MagnitudeValue(format, magnitude);
  return std::copysign(std::ldexp(static_cast<double>(value.significand), value.exponent),
                       static_cast<double>(target));
}

// A weight >= 0 of the format with the quantities that the formulas use.
struct WeightCell {
  uint32_t code = 0;
  double value = 0;
  double low = 0, high = 0;  // range of the x >= 0 that round to it
  double gap = 0;            // distance to the next value; infinity if there is none
  double share = 0;          // P(Q(x) = +-value)
};

// Returns every weight to which a normal random number rounds with a probability above 1e-30.
std::vector<WeightCell> CellsOf(const FormatSpec& format) {
  NUMSIM_CHECK(format.IsSigned() && format.Bits() <= 16, "{} bits", format.Bits());
  std::vector<WeightCell> cells;
  double low = 0;
  for (uint32_t code = 0; code <= format.MaxFiniteCode(); ++code) {
    WeightCell cell{.code = code, .value = Neighbour(format, code, 0), .low = low};
    cell.gap = Neighbour(format, code, 1) - cell.value;
    cell.high = cell.value + cell.gap / 2;
    cell.share = 2 * NormalInterval(cell.low, cell.high);
    low = cell.high;
    if (cell.share > 1e-30) cells.push_back(cell);
  }
  return cells;
}

// Computes P(|u| > t / lr). Caches the last result, as the weights of a binade share their gap.
class TailOfUpdate {
 public:
  explicit TailOfUpdate(double lr) : lr_(lr) {}

  double operator()(double t) {
    if (t == last_t_) return last_;
    last_t_ = t;
    const double z = t / lr_;
    return last_ = z > 12 ? 0 : 2 * NormalTail(z);
  }

 private:
  double lr_, last_t_ = -1, last_ = 0;
};

// Returns the sum of weight(d_k, d_(k-1)) * passed(k, t_k) over the boundaries that a step from
// `cell` in one direction (+1 or -1) may pass, up to `most` of them.
template <typename Weight, typename Passed>
double SumOverBoundaries(const FormatSpec& format,
                         const WeightCell& cell,
                         int direction,
                         int most,
                         const Weight& weight,
                         const Passed& passed) {
  double sum = 0, last = 0;
  for (int k = 1; k <= most; ++k) {
    const double distance = std::abs(Neighbour(format, cell.code, k * direction) - cell.value);
    if (std::isinf(distance)) break;
    const double probability = passed(k, (last + distance) / 2);
    if (probability == 0) break;
    sum += weight(distance, last) * probability;
    last = distance;
  }
  return sum;
}

double SquareDifference(double distance, double last) { return distance * distance - last * last; }

double One(double, double) { return 1; }

// In a step of more gaps than this, rounding counts as uniform: it adds gap^2 / 12 to the square.
constexpr double kManyGaps = 8;
constexpr int kMostBoundaries = 128;

// Return the expected sum of `weight` over the boundaries that steps pass, for all weights; with
// `most` = 1, only over the first boundary of each. SumIndependent is for independent keys,
// SumSameKey for the same key.
template <typename Weight>
double SumIndependent(const FormatSpec& format,
                      std::span<const WeightCell> cells,
                      double lr,
                      int most,
                      const Weight& weight) {
  std::vector<TailOfUpdate> tails(2 * kMostBoundaries, TailOfUpdate(lr));
  double sum = 0;
  for (const WeightCell& cell : cells) {
    if (most > 1 && lr > kManyGaps * cell.gap) {
      sum += cell.share * (lr * lr + cell.gap * cell.gap / 12);
      continue;
    }
    for (const int direction : {1, -1}) {
      TailOfUpdate* const tail = tails.data() + (direction > 0 ? 0 : kMostBoundaries);
      sum += cell.share / 2 *
             SumOverBoundaries(format, cell, direction, most, weight, [&](int k, double t) {
               return tail[k - 1](t);
             });
    }
  }
  return sum;
}

template <typename Weight>
double SumSameKey(const FormatSpec& format,
                  std::span<const WeightCell> cells,
                  double lr,
                  int most,
                  const Weight& weight) {
  double sum = 0;
  for (const WeightCell& cell : cells) {
    if (most > 1 && lr * cell.low > kManyGaps * cell.gap) {
      const double step = lr * cell.value;
      sum += cell.share * (step * step + cell.gap * cell.gap / 12);
      continue;
    }
    sum += SumOverBoundaries(format, cell, 1, most, weight, [&](int, double t) {
      return 2 * NormalInterval(std::max(cell.low, t / lr), cell.high);
    });
  }
  return sum;
}

double MovedShare(const FormatSpec& format,
                  std::span<const WeightCell> cells,
                  bool same_key,
                  double lr) {
  return same_key ? SumSameKey(format, cells, lr, 1, One)
                  : SumIndependent(format, cells, lr, 1, One);
}

double StepSquare(const FormatSpec& format,
                  std::span<const WeightCell> cells,
                  bool same_key,
                  double lr) {
  return same_key ? SumSameKey(format, cells, lr, kMostBoundaries, SquareDifference)
                  : SumIndependent(format, cells, lr, kMostBoundaries, SquareDifference);
}

}  // namespace

NaiveLimits MeasureNaiveLimits(const FormatSpec& format,
                               std::span<const float> weights,
                               std::span<const float> update) {
  NaiveSteps steps(format, weights, update);
  const auto below_half = [&](float lr) {
    const UpdateOutcome outcome = steps.At(lr);
    return outcome.achieved_norm < outcome.target_norm / 2;
  };
  return {.unmoved = Unmoved(steps), .half_norm = FindHalfNorm(below_half)};
}

double LeastThreshold(const FormatSpec& format,
                      std::span<const float> weights,
                      std::span<const float> update) {
  struct Least {
    double value = kInfinity;
    // SumOverBlocks combines blocks by +=, which takes the minimum here.
    Least& operator+=(const Least& other) {
      value = std::min(value, other.value);
      return *this;
    }
  };
  const EncodePlan plan = MakeEncodePlan(format);
  const Least all = SumOverBlocks<Least>(weights.size(), [&](size_t begin, size_t count) {
    Least least;
    for (size_t i = begin; i < begin + count; ++i) {
      if (update[i] == 0) continue;
      const double magnitude = std::abs(static_cast<double>(weights[i]));
      const uint32_t code = EncodeF64(plan, std::bit_cast<uint64_t>(magnitude), 0);
      const bool outward = weights[i] == 0 || (weights[i] > 0) == (update[i] > 0);
      const double gap = std::abs(Neighbour(format, code, outward ? 1 : -1) - magnitude);
      least += {gap / 2 / std::abs(static_cast<double>(update[i]))};
    }
    return least;
  });
  return all.value;
}

double MovedShareExpected(const FormatSpec& format, bool same_key, double lr) {
  return MovedShare(format, CellsOf(format), same_key, lr);
}

double StepSquareExpected(const FormatSpec& format, bool same_key, double lr) {
  return StepSquare(format, CellsOf(format), same_key, lr);
}

double UnmovedExpected(const FormatSpec& format, bool same_key, double elements) {
  const std::vector<WeightCell> cells = CellsOf(format);
  const auto moves_none = [&](float lr) {
    return elements * MovedShare(format, cells, same_key, static_cast<double>(lr)) < 1;
  };
  constexpr float kLeastRate = 1e-30f;
  if (!moves_none(kLeastRate) || moves_none(kGreatestRate)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return static_cast<double>(LastFloat(kLeastRate, kGreatestRate, moves_none));
}

double HalfNormExpected(const FormatSpec& format, bool same_key) {
  const std::vector<WeightCell> cells = CellsOf(format);
  return static_cast<double>(FindHalfNorm([&](float lr) {
    const double rate = static_cast<double>(lr);
    return StepSquare(format, cells, same_key, rate) < rate * rate / 4;
  }));
}

}  // namespace numsim::experiments::update_fidelity
