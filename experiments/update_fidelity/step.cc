// The measures of a step in `update-fidelity`.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode.h"
#include "numsim/updates/step_sums.h"

namespace numsim::experiments::update_fidelity {
namespace {

double Square(double x) { return x * x; }

template <typename T>
StepMeasures MeasureBlock(
    const T* before, const float* update, const T* after, size_t n, double lr) {
  StepMeasures m;
  m.elements = n;
  for (size_t i = 0; i < n; ++i) {
    const double step = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    const double u = static_cast<double>(update[i]);
    m.step_square += Square(step);
    m.update_square += Square(u);
    m.projection += step * u;
    m.residual_square += Square(step - lr * u);
    if (step != 0) {
      ++m.moved;
      m.moved_update += std::abs(u);
    }
    if (u == 0) {
      ++m.zero_updates;
    } else {
      m.ratio_sum += step / u;
    }
  }
  return m;
}

template <typename T>
StepMeasures MeasureAll(std::span<const T> before,
                        std::span<const float> update,
                        std::span<const T> after,
                        double lr) {
  NUMSIM_CHECK(before.size() == update.size() && before.size() == after.size(),
               "{}, {} and {} elements",
               before.size(),
               update.size(),
               after.size());
  return SumOverBlocks<StepMeasures>(before.size(), [&](size_t begin, size_t count) {
    return MeasureBlock(
        before.data() + begin, update.data() + begin, after.data() + begin, count, lr);
  });
}

// Returns the results of stochastic rounding of `x` under variant A with the smallest and the
// greatest random bits: the two neighbours, or twice the one toward zero if its probability is 1.
struct Neighbours {
  double toward_zero, away;
};
Neighbours NeighboursOf(const EncodePlan& plan, double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const auto value = [&](uint32_t word) {
    return static_cast<double>(Decode(plan.format, EncodeF64(plan, bits, word)));
  };
  return {value(0), value(0xFFFFFFFFu >> (32 - plan.rounding.random_bits))};
}

// Returns E[step] of one element, from P(away) = floor(nu 2^N) / 2^N with N random bits, where nu
// is the position of `sum` between its neighbours.
double ExpectedStep(const EncodePlan& plan, double weight, double sum) {
  const Neighbours to = NeighboursOf(plan, sum);
  const double gap = to.away - to.toward_zero;
  if (gap == 0) return to.toward_zero - weight;
  const double words = std::ldexp(1.0, plan.rounding.random_bits);
  const double away = std::floor((sum - to.toward_zero) / gap * words) / words;
  return (to.toward_zero - weight) + away * gap;
}

}  // namespace

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? kNaN : numerator / denominator;
}

StepMeasures& StepMeasures::operator+=(const StepMeasures& other) {
  elements += other.elements;
  moved += other.moved;
  zero_updates += other.zero_updates;
  step_square += other.step_square;
  update_square += other.update_square;
  projection += other.projection;
  residual_square += other.residual_square;
  ratio_sum += other.ratio_sum;
  moved_update += other.moved_update;
  return *this;
}

double StepMeasures::MovedShare() const {
  return Ratio(static_cast<double>(moved), static_cast<double>(elements));
}

double StepMeasures::NormRatio(double lr) const {
  return Ratio(std::sqrt(step_square), lr * std::sqrt(update_square));
}

double StepMeasures::ProjectionRatio(double lr) const {
  return Ratio(projection, lr * update_square);
}

double StepMeasures::MeanRatio(double lr) const {
  return Ratio(ratio_sum, static_cast<double>(elements - zero_updates) * lr);
}

double StepMeasures::RelativeError(double lr) const {
  return Ratio(std::sqrt(residual_square), lr * std::sqrt(update_square));
}

double StepMeasures::Cosine() const {
  return Ratio(projection, std::sqrt(step_square) * std::sqrt(update_square));
}

double StepMeasures::MovedUpdate() const {
  const double mean = Ratio(moved_update, static_cast<double>(moved));
  return Ratio(mean, std::sqrt(update_square / static_cast<double>(elements)));
}

StepMeasures MeasureStep(std::span<const float> before,
                         std::span<const float> update,
                         std::span<const float> after,
                         double lr) {
  return MeasureAll(before, update, after, lr);
}

StepMeasures MeasureStep(std::span<const double> before,
                         std::span<const float> update,
                         std::span<const double> after,
                         double lr) {
  return MeasureAll(before, update, after, lr);
}

double ExpectedMeanRatio(const WeightUpdate& step, int random_bits) {
  struct Sum {
    double ratios = 0, count = 0;
    Sum& operator+=(const Sum& other) {
      ratios += other.ratios;
      count += other.count;
      return *this;
    }
  };
  const EncodePlan plan =
      MakeEncodePlan(step.format,
                     {RoundingMode::kStochastic, StochasticVariant::kA, random_bits},
                     Overflow::kSaturate);
  const double lr = static_cast<double>(step.learning_rate);
  const Sum sum = SumOverBlocks<Sum>(step.weights.Elements(), [&](size_t begin, size_t count) {
    Sum block;
    for (size_t i = begin; i < begin + count; ++i) {
      const double u = static_cast<double>(step.update.data[i]);
      if (u == 0) continue;
      const double weight = static_cast<double>(step.weights.data[i]);
      block.ratios += ExpectedStep(plan, weight, weight + lr * u) / u;
      ++block.count;
    }
    return block;
  });
  return Ratio(sum.ratios, sum.count * lr);
}

}  // namespace numsim::experiments::update_fidelity
