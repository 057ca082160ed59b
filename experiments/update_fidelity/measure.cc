// Measures one trial of `update-fidelity`: draws the arrays, then takes and times the steps.
#include <time.h>

#include <bit>
#include <cmath>
#include <limits>

#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/base/error.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::update_fidelity {
namespace {

// Random streams of a seed. The random bits of each learning rate have a stream of their own,
// numbered by the bits of that float32, so that they depend neither on the other learning rates nor
// on their order.
constexpr uint64_t kParameterStream = 0;
constexpr uint64_t kUpdateStream = 1;

// Returns the CPU time of the calling thread. Trials run in parallel, and every loop within a trial
// is serial, so this is the time of the trial.
double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

UpdateRule RuleOf(const Settings& settings, const Trial& trial) {
  for (const UpdateRule& rule : Rules(settings)) {
    if (ToString(rule) == trial.parameters.at("rule")) return rule;
  }
  NUMSIM_CHECK(false, "rule {}", trial.parameters.at("rule"));
  return {};
}

// The state from which a trial starts at each learning rate.
struct Start {
  UpdateRule rule;
  FormatSpec format;
  size_t side = 0;
  Arrays arrays;
  std::vector<float> weights;
  UpdateState state;
  std::vector<double> effective;  // weights and state together, for rules with state

  MatrixShape Shape() const { return {side, side}; }
};

Start MakeStart(const Settings& settings, const Trial& trial) {
  Start start;
  start.rule = RuleOf(settings, trial);
  start.format = ParseFormat(trial.parameters.at("format")).spec;
  start.side = Side(settings);
  start.arrays =
      DrawArrays(ParseKeys(trial.parameters.at("keys")), trial.seed, start.side * start.side);
  start.weights.resize(start.arrays.initial.size());
  const MatrixShape shape = start.Shape();
  start.state = StartUpdates(start.rule,
                             start.format,
                             HostMatrix(start.arrays.initial, shape),
                             HostMatrix(start.weights, shape));
  if (HasState(start.rule.kind)) {
    start.effective = KnownWeights(start.rule, HostMatrix(start.weights, shape), start.state);
  }
  return start;
}

// The step at one learning rate.
struct Taken {
  UpdateOutcome outcome;
  StepMeasures stored;
  StepMeasures effective;       // no elements if the rule has no state
  double expected_mean = kNaN;  // only for the stochastic rule
  double nanoseconds = 0;       // per element
};

Taken Take(const Start& start, const Trial& trial, float lr, std::span<float> new_weights) {
  const WeightUpdate step{.format = start.format,
                          .weights = HostMatrix(start.weights, start.Shape()),
                          .update = HostMatrix(start.arrays.update, start.Shape()),
                          .learning_rate = lr};
  UpdateState state = start.state;
  const RandomStream random{trial.seed, std::bit_cast<uint32_t>(lr)};
  Taken taken;
  const double begin = ThreadSeconds();
  const MatrixSpan<float> moved = HostMatrix(new_weights, start.Shape());
  taken.outcome = ApplyUpdate(start.rule, step, random, state, moved);
  taken.nanoseconds = 1e9 * (ThreadSeconds() - begin) / static_cast<double>(start.weights.size());
  const double rate = static_cast<double>(lr);
  taken.stored = MeasureStep(start.weights, start.arrays.update, new_weights, rate);
  if (HasState(start.rule.kind)) {
    const std::vector<double> effective = KnownWeights(start.rule, moved, state);
    taken.effective = MeasureStep(start.effective, start.arrays.update, effective, rate);
  }
  if (start.rule.kind == UpdateKind::kStochastic) {
    taken.expected_mean = ExpectedMeanRatio(step, start.rule.random_bits);
  }
  return taken;
}

// Returns the first cells of a row of `fidelity` and `times`.
Row Head(const Trial& trial, float lr) {
  return {trial.parameters.at("format"),
          trial.parameters.at("keys"),
          trial.parameters.at("rule"),
          RateText(lr),
          trial.seed};
}

Row FidelityRow(const Start& start, const Trial& trial, float lr, const Taken& taken) {
  const double rate = static_cast<double>(lr);
  const StepMeasures& m = taken.stored;
  const StepMeasures& effective = taken.effective;
  const bool searched = Searches(start.rule.kind);
  const double norm_ratio = m.NormRatio(rate);
  const double mean_ratio = m.MeanRatio(rate);
  Row row = Head(trial, lr);
  row.insert(row.end(),
             {static_cast<uint64_t>(m.elements),
              static_cast<uint64_t>(m.zero_updates),
              m.MovedShare(),
              norm_ratio,
              std::abs(norm_ratio - 1),
              m.ProjectionRatio(rate),
              mean_ratio,
              std::abs(mean_ratio - 1),
              taken.expected_mean,
              m.RelativeError(rate),
              m.Cosine(),
              m.MovedUpdate(),
              effective.NormRatio(rate),
              effective.RelativeError(rate),
              effective.Cosine(),
              searched ? Ratio(taken.outcome.matched, taken.outcome.matched_target) : kNaN,
              searched ? static_cast<double>(taken.outcome.alpha) : kNaN,
              taken.outcome.passes,
              ToString(taken.outcome.status)});
  return row;
}

Row LimitsRow(const Start& start, const Trial& trial) {
  const std::vector<float>& update = start.arrays.update;
  const NaiveLimits limits = MeasureNaiveLimits(start.format, start.weights, update);
  return {trial.parameters.at("format"),
          trial.parameters.at("keys"),
          trial.seed,
          static_cast<uint64_t>(update.size()),
          RateText(limits.unmoved),
          LeastThreshold(start.format, start.weights, update),
          RateText(limits.half_norm)};
}

}  // namespace

Arrays DrawArrays(Keys keys, uint64_t seed, size_t elements) {
  Arrays arrays{std::vector<float>(elements), {}};
  FillNormal({seed, kParameterStream}, 0, arrays.initial);
  if (keys == Keys::kSame) {
    arrays.update = arrays.initial;
  } else {
    arrays.update.resize(elements);
    FillNormal({seed, kUpdateStream}, 0, arrays.update);
  }
  return arrays;
}

Rows Measure(const Settings& settings, const Trial& trial) {
  const Start start = MakeStart(settings, trial);
  std::vector<float> new_weights(start.weights.size());
  Rows rows;
  for (const float lr : LearningRates(settings)) {
    const Taken taken = Take(start, trial, lr, new_weights);
    rows["fidelity"].push_back(FidelityRow(start, trial, lr, taken));
    Row time = Head(trial, lr);
    time.emplace_back(start.weights.size());
    time.emplace_back(taken.nanoseconds);
    rows["times"].push_back(std::move(time));
  }
  if (start.rule.kind == UpdateKind::kNaive) {
    rows["naive_limits"].push_back(LimitsRow(start, trial));
  }
  return rows;
}

}  // namespace numsim::experiments::update_fidelity
