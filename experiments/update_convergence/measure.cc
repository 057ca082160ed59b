// Trains one problem under all rules of a format at the same time, so that they share the random
// part of every gradient.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/update_convergence/update_convergence.h"
#include "numsim/base/error.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments::update_convergence {
namespace {

// The optimiser: turns one gradient after the other into a direction with the library's kernels.
// Its float32 state starts at zero.
class Direction {
 public:
  Direction(const Settings& settings, const Trial& trial, size_t n)
      : is_adam_(ParseOptimiser(trial.parameters.at("optimiser")) == Optimiser::kAdam),
        beta1_(Share(settings, "beta1")),
        beta2_(Share(settings, "beta2")),
        epsilon_(static_cast<float>(settings.GetDouble("epsilon", 1e-30, 1))),
        m_(n),
        v_(is_adam_ ? n : 0) {}

  // Replaces the gradient by the direction.
  void Next(std::span<float> gradient) {
    const size_t n = gradient.size();
    UpdateAverage(gradient.data(), n, {beta1_, 1.0f - beta1_}, m_.data());
    if (!is_adam_) {
      std::transform(m_.begin(), m_.end(), gradient.begin(), std::negate<>());
      return;
    }
    UpdateSquareAverage(gradient.data(), n, {beta2_, 1.0f - beta2_}, v_.data());
    power1_ *= static_cast<double>(beta1_);
    power2_ *= static_cast<double>(beta2_);
    AdamDirection(m_.data(),
                  v_.data(),
                  n,
                  static_cast<float>(1 - power1_),
                  {static_cast<float>(1 - power2_), epsilon_},
                  gradient.data());
  }

 private:
  static float Share(const Settings& settings, const char* name) {
    return static_cast<float>(settings.GetDouble(name, 0, 0.999999));
  }

  bool is_adam_;  // [Adam]; otherwise momentum, as an average of gradients
  float beta1_, beta2_, epsilon_;
  std::vector<float> m_, v_;
  double power1_ = 1, power2_ = 1;  // beta^t
};

// Sums over the steps of a run since its last row.
struct Interval {
  uint64_t steps = 0, moved = 0;
  double achieved_norm = 0, target_norm = 0;
  double achieved_projection = 0, target_projection = 0;
  UpdateStatus status = UpdateStatus::kOk;

  void Add(const UpdateOutcome& outcome) {
    ++steps;
    moved += outcome.moved;
    achieved_norm += outcome.achieved_norm;
    target_norm += outcome.target_norm;
    achieved_projection += outcome.achieved_projection;
    target_projection += outcome.target_projection;
    status = std::max(status, outcome.status);
  }
};

struct Trainee {
  Trainee(const UpdateRule& update_rule,
          const Format& weight_format,
          Direction first_direction,
          const TrainingProblem& problem)
      : rule(update_rule),
        format(weight_format),
        direction(std::move(first_direction)),
        start(problem.Start().size()) {
    const MatrixShape shape{problem.Rows(), problem.Cols()};
    state = StartUpdates(
        rule, format.spec, HostMatrix(problem.Start(), shape), HostMatrix(start, shape));
    weights = start;
  }

  UpdateRule rule;
  Format format;
  Direction direction;
  std::vector<float> start, weights;  // values of the format
  UpdateState state;
  RunStatus status = RunStatus::kOk;
  Interval interval;
  std::vector<Row> rows;
};

// Returns <w - start, w32 - start32> / ||w32 - start32||^2; NaN if the baseline has not moved.
double Travel(const Trainee& trainee, const Trainee& baseline) {
  double along = 0, square = 0;
  for (size_t i = 0; i < trainee.weights.size(); ++i) {
    const double moved =
        static_cast<double>(trainee.weights[i]) - static_cast<double>(trainee.start[i]);
    const double wanted =
        static_cast<double>(baseline.weights[i]) - static_cast<double>(baseline.start[i]);
    along += moved * wanted;
    square += wanted * wanted;
  }
  return along / square;
}

class Training {
 public:
  Training(const Settings& settings, const Trial& trial)
      : trial_(trial),
        problem_(MakeProblem(settings, trial)),
        learning_rate_(LearningRate(trial)),
        gradient_(problem_->Start().size()) {
    const auto add = [&](const UpdateRule& rule, const Format& format) {
      trainees_.emplace_back(rule, format, Direction(settings, trial, gradient_.size()), *problem_);
    };
    add(ParseUpdateRule(kBaselineRule), ParseFormat(kBaselineFormat));
    if (trial.parameters.at("format") == kBaselineFormat) return;
    const Format format = ParseFormat(trial.parameters.at("format"));
    for (const UpdateRule& rule : RulesFor(settings, format)) add(rule, format);
  }

  Rows Train(const std::vector<uint64_t>& recorded) {
    loss_limit_ = kDivergence * problem_->Loss(problem_->Start());
    uint64_t step = 0;
    for (const uint64_t next : recorded) {
      for (; step < next; ++step) {
        problem_->Prepare(step);
        for (Trainee& trainee : trainees_) Step(trainee, step);
      }
      for (Trainee& trainee : trainees_) Record(trainee, step);
    }
    // The baseline has a trial of its own. With other formats it only serves for comparison, and
    // its rows are dropped.
    Rows rows;
    auto& all = rows["losses"];
    for (size_t t = trainees_.size() > 1 ? 1 : 0; t < trainees_.size(); ++t) {
      std::move(trainees_[t].rows.begin(), trainees_[t].rows.end(), std::back_inserter(all));
    }
    return rows;
  }

 private:
  void Step(Trainee& trainee, uint64_t step) {
    if (trainee.status != RunStatus::kOk) return;
    problem_->Gradient(trainee.weights, gradient_);
    trainee.direction.Next(gradient_);
    WeightUpdate update;
    update.format = trainee.format.spec;
    const MatrixShape shape{problem_->Rows(), problem_->Cols()};
    const MatrixSpan<float> weights = HostMatrix(trainee.weights, shape);
    update.weights = weights;
    update.update = HostMatrix(gradient_, shape);
    update.learning_rate = learning_rate_;
    const UpdateOutcome outcome = ApplyUpdate(
        trainee.rule, update, {trial_.seed, kStreamRule + step}, trainee.state, weights);
    trainee.interval.Add(outcome);
    if (outcome.status == UpdateStatus::kNonfinite) trainee.status = RunStatus::kNonfinite;
  }

  void Record(Trainee& trainee, uint64_t step) {
    double loss = kInfinity;
    if (trainee.status == RunStatus::kOk) {
      loss = problem_->Loss(trainee.weights);
      if (!std::isfinite(loss))
        trainee.status = RunStatus::kNonfinite;
      else if (loss > loss_limit_)
        trainee.status = RunStatus::kDiverged;
      if (trainee.status != RunStatus::kOk) loss = kInfinity;
    }
    const bool ended = trainee.status != RunStatus::kOk;
    const Interval& seen = trainee.interval;
    const double moves = static_cast<double>(seen.steps * trainee.weights.size());
    trainee.rows.push_back({trial_.parameters.at("problem"),
                            trial_.parameters.at("optimiser"),
                            trainee.format.name,
                            ToString(trainee.rule),
                            trial_.parameters.at("lr"),
                            trial_.seed,
                            step,
                            loss,
                            ended ? kNaN : Travel(trainee, trainees_.front()),
                            static_cast<double>(seen.moved) / moves,
                            seen.achieved_norm / seen.target_norm,
                            seen.achieved_projection / seen.target_projection,
                            std::string(ToString(seen.status)),
                            std::string(ToString(trainee.status))});
    trainee.interval = {};
  }

  const Trial& trial_;
  std::unique_ptr<TrainingProblem> problem_;
  float learning_rate_;
  std::vector<float> gradient_;
  std::vector<Trainee> trainees_;  // the first is the baseline
  double loss_limit_ = 0;
};

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  return Training(settings, trial).Train(RecordedSteps(settings));
}

}  // namespace numsim::experiments::update_convergence
