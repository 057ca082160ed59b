// One point of `update-fidelity`: the arrays, the rules, and how their steps compare.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "experiments/update_fidelity.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/optim/weight_update.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"

namespace numsim::experiments::update_fidelity {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kBlock = 4096;

// Streams of a seed. The random bits of a learning rate have a stream of their own, numbered by
// the bits of that float64, so that they depend neither on the other rates nor on their order.
constexpr uint64_t kParameterStream = 0;
constexpr uint64_t kUpdateStream = 1;

double Ratio(double numerator, double denominator) {
  return denominator == 0 ? kNaN : numerator / denominator;
}

double Square(double x) { return x * x; }

StepMeasures MeasureBlock(
    const float* params, const float* update, const float* new_params, size_t n, double lr) {
  StepMeasures m;
  m.elements = n;
  for (size_t i = 0; i < n; ++i) {
    const double step = static_cast<double>(new_params[i]) - static_cast<double>(params[i]);
    const double u = static_cast<double>(update[i]);
    m.moved += step != 0;
    m.step_square += Square(step);
    m.update_square += Square(u);
    m.projection += step * u;
    m.residual_square += Square(step - lr * u);
    if (u == 0) {
      ++m.zero_updates;
    } else {
      m.ratio_sum += step / u;
    }
  }
  return m;
}

void Merge(const StepMeasures& block, StepMeasures& total) {
  total.elements += block.elements;
  total.moved += block.moved;
  total.zero_updates += block.zero_updates;
  total.step_square += block.step_square;
  total.update_square += block.update_square;
  total.projection += block.projection;
  total.residual_square += block.residual_square;
  total.ratio_sum += block.ratio_sum;
}

// Calls body(block, begin, count) on all threads; inside the runner's loop over points, on one.
template <typename Body>
void ForEachBlock(size_t n, const Body& body) {
  ParallelFor((n + kBlock - 1) / kBlock, 4, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) body(b, b * kBlock, std::min(kBlock, n - b * kBlock));
  });
}

// Stochastic rounding of `x` under variant A with the least and the greatest random word: both
// neighbours, or twice the one toward zero where its probability is 1.
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

// E[step] of one element: P(away) = floor(nu 2^N) / 2^N.
double ExpectedStep(const EncodePlan& plan, double param, double sum) {
  const Neighbours to = NeighboursOf(plan, sum);
  const double gap = to.away - to.toward_zero;
  if (gap == 0) return to.toward_zero - param;
  const double words = std::ldexp(1.0, plan.rounding.random_bits);
  const double away = std::floor((sum - to.toward_zero) / gap * words) / words;
  return (to.toward_zero - param) + away * gap;
}

// MeanRatio in expectation over the random bits of the stochastic rule.
double ExpectedMeanRatio(const WeightUpdate& weights, int random_bits) {
  const EncodePlan plan = MakeEncodePlan(
      weights.format, {RoundingMode::kStochastic, StochasticVariant::kA, random_bits});
  const size_t n = weights.params.size();
  std::vector<double> sums((n + kBlock - 1) / kBlock);
  std::vector<size_t> counts(sums.size());
  ForEachBlock(n, [&](size_t block, size_t begin, size_t count) {
    for (size_t i = begin; i < begin + count; ++i) {
      const double u = static_cast<double>(weights.update[i]);
      if (u == 0) continue;
      const double param = static_cast<double>(weights.params[i]);
      sums[block] += ExpectedStep(plan, param, param + weights.learning_rate * u) / u;
      ++counts[block];
    }
  });
  double sum = 0, count = 0;
  for (size_t b = 0; b < sums.size(); ++b) {
    sum += sums[b];
    count += static_cast<double>(counts[b]);
  }
  return Ratio(sum, count * weights.learning_rate);
}

// Parameters and update of a point; the update is drawn before the parameters are rounded.
struct Arrays {
  std::vector<float> params, update;
};

Arrays DrawArrays(const FormatSpec& format, Keys keys, uint64_t seed, size_t elements) {
  Arrays arrays{std::vector<float>(elements), {}};
  FillNormal({seed, kParameterStream}, 0, arrays.params);
  if (keys == Keys::kSame) {
    arrays.update = arrays.params;
  } else {
    arrays.update.resize(elements);
    FillNormal({seed, kUpdateStream}, 0, arrays.update);
  }
  FakeQuantize(MakeEncodePlan(format), arrays.params, arrays.params);
  return arrays;
}

std::vector<std::string> RowOf(const Point& point,
                               double lr,
                               const StepMeasures& m,
                               double expected_mean_ratio,
                               const UpdateOutcome& outcome) {
  const bool searched = outcome.iterations > 0;
  const double norm_ratio = m.NormRatio(lr);
  const double mean_ratio = m.MeanRatio(lr);
  return {point.parameters.at("format"),
          point.parameters.at("keys"),
          point.parameters.at("method"),
          Cell(lr),
          Cell(point.seed),
          Cell(static_cast<uint64_t>(m.elements)),
          Cell(static_cast<uint64_t>(m.zero_updates)),
          Cell(m.MovedShare()),
          Cell(norm_ratio),
          Cell(std::abs(norm_ratio - 1)),
          Cell(mean_ratio),
          Cell(std::abs(mean_ratio - 1)),
          Cell(expected_mean_ratio),
          Cell(m.RelativeError(lr)),
          Cell(m.Cosine()),
          Cell(searched ? Ratio(outcome.achieved, outcome.target) : kNaN),
          Cell(searched ? static_cast<double>(outcome.alpha) : kNaN),
          Cell(outcome.iterations),
          Cell(Name(outcome.status))};
}

}  // namespace

double StepMeasures::MovedShare() const {
  return Ratio(static_cast<double>(moved), static_cast<double>(elements));
}

double StepMeasures::NormRatio(double lr) const {
  return Ratio(std::sqrt(step_square), lr * std::sqrt(update_square));
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

StepMeasures MeasureStep(std::span<const float> params,
                         std::span<const float> update,
                         std::span<const float> new_params,
                         double lr) {
  NUMSIM_CHECK(params.size() == update.size() && params.size() == new_params.size(),
               "{}, {} and {} elements",
               params.size(),
               update.size(),
               new_params.size());
  std::vector<StepMeasures> blocks((params.size() + kBlock - 1) / kBlock);
  ForEachBlock(params.size(), [&](size_t block, size_t begin, size_t count) {
    blocks[block] = MeasureBlock(
        params.data() + begin, update.data() + begin, new_params.data() + begin, count, lr);
  });
  StepMeasures total;
  for (const StepMeasures& block : blocks) Merge(block, total);
  return total;
}

Rows Measure(const Settings& settings, const Point& point) {
  const Format format = ParseFormat(point.parameters.at("format"));
  const UpdateRule rule = ParseUpdateRule(point.parameters.at("method"));
  const Keys keys = ParseKeys(point.parameters.at("keys"));
  const auto side = static_cast<size_t>(settings.GetInteger("size", 1, 1 << 14));
  const Arrays arrays = DrawArrays(format.spec, keys, point.seed, side * side);
  UpdateSettings update;
  update.random_bits = static_cast<int>(settings.GetInteger("sr-bits", 1, 32));
  update.tolerance = settings.GetDouble("rtol", 0, 1);
  update.iterations = static_cast<int>(settings.GetInteger("iterations", 1, 1000));
  std::vector<float> new_params(arrays.params.size());
  Rows rows;
  for (const double lr : LearningRates(settings)) {
    const WeightUpdate weights{format.spec, arrays.params, arrays.update, lr};
    update.random = {{point.seed, std::bit_cast<uint64_t>(lr)}, 0};
    const UpdateOutcome outcome = ApplyUpdate(rule, weights, update, new_params);
    const StepMeasures measures = MeasureStep(arrays.params, arrays.update, new_params, lr);
    const bool stochastic = rule == UpdateRule::kStochastic;
    rows[std::string(kTable)].push_back(
        RowOf(point,
              lr,
              measures,
              stochastic ? ExpectedMeanRatio(weights, update.random_bits) : kNaN,
              outcome));
  }
  return rows;
}

}  // namespace numsim::experiments::update_fidelity
