// The fork of a training: model and optimiser on both of its sides.
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "numsim/config/fork.h"
#include "numsim/train/internal/trainer_parts.h"
#include "numsim/train/stress.h"
#include "numsim/train/trainer.h"

namespace numsim {
namespace {

std::vector<std::vector<float>> WeightsOf(const Model<float>& model) {
  std::vector<std::vector<float>> weights;
  for (const Parameter<float>& parameter : model.parameters()) {
    const In<float> value = parameter.value.View();
    weights.emplace_back(value.Span().begin(), value.Span().end());
  }
  return weights;
}

void SetWeights(const std::vector<std::vector<float>>& weights, Model<float>& model) {
  size_t i = 0;
  for (Parameter<float>& parameter : model.parameters()) {
    std::ranges::copy(weights[i++], parameter.value.View().Span().begin());
  }
}

}  // namespace

void CheckMomentTensors(const OptimizerConfig& config, const ParameterList<float>& parameters) {
  std::vector<std::string> names;
  for (const Parameter<float>& parameter : parameters) {
    if (MatchesPattern(config.moment_tensors, parameter.name)) return;
    names.push_back(parameter.name);
  }
  throw KeyError::Format("optimizer.moment_tensors",
                         "'{}' matches no parameter; the parameters are: {}",
                         config.moment_tensors,
                         fmt::join(names, ", "));
}

void Trainer::Parts::BeginModel(const TrainConfig& of) {
  config = of;
  optimizer.reset();  // refers to the parameters of the model
  what_if.reset();
  model = MakeModel<float>(config.model, config.linear, config.train.seed);
  model->CheckBatch(PartSize());
  observer = TensorObserver(config.storage, config.stress);
  what_if.emplace(config.what_if, config.train.seed, *model, observer);
  burst = BurstParameter(config.stress, model->parameters());
  if (config.stress.point.empty()) return;
  data->ValidBatch(0, 1, config.model.context, batch);
  CheckStressPoint(config.stress, *model, batch);
}

void Trainer::Parts::BeginOptimizer() {
  CheckMomentTensors(config.optimizer, model->parameters());
  optimizer = std::make_unique<Optimizer>(
      config.optimizer, config.loss_scaler, model->parameters(), config.train.seed);
}

void Trainer::Parts::Begin(const TrainConfig& of) {
  BeginModel(of);
  BeginOptimizer();
}

void Trainer::Parts::BeginAt(bool side) {
  if (forked == side) return;
  Begin(side ? whole : BaselineOf(whole));
  forked = side;
}

bool Trainer::Parts::ForkIsDue() const {
  return !forked && course.step == whole.fork.steps && course.status == TrainStatus::kRunning;
}

void Trainer::Parts::Fork() {
  const TrainConfig before = config;
  const std::vector<std::vector<float>> weights = WeightsOf(*model);
  const std::vector<NamedBytes> moments = optimizer->Save();
  const std::vector<NamedState> scales = model->SaveState(), watched = what_if->Save();
  BeginModel(whole);
  SetWeights(weights, *model);
  BeginOptimizer();
  optimizer->GoOnFrom({.config = before.optimizer,
                       .scaler = before.loss_scaler,
                       .state = moments,
                       .step = course.step});
  // An optimiser begins by rounding the weights, which then were rounded already.
  if (HaveSameWeights(before.optimizer, config.optimizer)) SetWeights(weights, *model);
  if (HasSameLinear(before, whole)) model->RestoreState(scales);
  what_if->Restore(watched);
  forked = true;
}

}  // namespace numsim
