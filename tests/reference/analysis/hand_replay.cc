#include "tests/reference/analysis/hand_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "numsim/random/streams.h"
#include "tests/reference/oracle.h"

namespace numsim {
namespace {

// Plants, then rounds.
class HandObserver : public PassObserver<float> {
 public:
  HandObserver(const StressConfig& stress, const HandPrecision& precision, HandStep& step)
      : stress_(stress), precision_(precision), step_(step) {}

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    step_.points.emplace_back(point, role);
    const bool activation = role == TensorRole::kActivation;
    if (activation && !stress_.point.empty() && MatchesPattern(stress_.point, point)) {
      for (size_t row = 0; row < values.rows; ++row) {
        values.Row(row)[stress_.channel] += static_cast<float>(stress_.value);
      }
    }
    const StorageConfig& storage = precision_.storage;
    const Format& format = activation ? storage.activations : storage.gradients;
    if (format.name == "fp32" || (precision_.rounds && !precision_.rounds(point, role))) return;
    const oracle::Grid& grid = oracle::GridOf(format.name);  // to nearest even, not saturating
    for (size_t row = 0; row < values.rows; ++row) {
      for (float& value : std::span(values.Row(row), values.cols)) {
        value = oracle::RoundFloat32(grid, value, {});
      }
    }
  }

 private:
  const StressConfig& stress_;
  const HandPrecision& precision_;
  HandStep& step_;
};

struct Squares {
  long double error = 0, signal = 0;
  bool finite = true;

  void Add(const std::vector<float>& g, const std::vector<float>& r) {
    ASSERT_EQ(g.size(), r.size());
    for (size_t i = 0; i < g.size(); ++i) {
      finite = finite && std::isfinite(g[i]);
      const long double difference = static_cast<long double>(g[i]) - r[i];
      error += difference * difference;
      signal += static_cast<long double>(r[i]) * r[i];
    }
  }
  double Error() const {
    if (!finite) return std::numeric_limits<double>::infinity();
    return static_cast<double>(std::sqrt(error / signal));
  }
};

void CopyParameters(Trainer& trainer, Model<float>& model) {
  ASSERT_EQ(model.parameters().size(), trainer.model().parameters().size());
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const auto from = trainer.model().parameters()[i].value.View().Span();
    std::copy(from.begin(), from.end(), model.parameters()[i].value.View().Span().begin());
  }
}

// Delayed scales of the layers that still have some.
void CopyScales(Trainer& trainer, Model<float>& model) {
  std::vector<NamedState> states;
  for (const NamedState& own : model.SaveState()) {
    for (const NamedState& state : trainer.model().SaveState()) {
      if (state.name == own.name) states.push_back(state);
    }
  }
  model.RestoreState(states);
}

}  // namespace

HandStep StepByHand(Trainer& trainer, const HandPrecision& precision) {
  const TrainConfig& config = trainer.config();
  const uint64_t seed = config.train.seed;
  const auto model = MakeModel<float>(config.model, precision.linear, seed);
  CopyParameters(trainer, *model);
  CopyScales(trainer, *model);
  Batch batch;
  trainer.data().TrainBatch(DeriveSeed(seed, RandomPurpose::kShuffle),
                            trainer.steps_taken(),
                            config.train.batch,
                            config.model.context,
                            batch);
  HandStep step;
  HandObserver observer(config.stress, precision, step);
  Pass<float> pass;
  pass.seed = seed;
  pass.step = trainer.steps_taken();
  pass.loss_scale = trainer.optimizer().LossScale();
  pass.observer = &observer;
  step.loss = model->Forward(pass, batch);
  model->Backward(pass);
  for (const Parameter<float>& parameter : model->parameters()) {
    std::vector<float> gradient;
    for (const float value : parameter.gradient.View().Span()) {
      gradient.push_back(static_cast<float>(value / pass.loss_scale));
    }
    step.gradients.emplace_back(parameter.name, std::move(gradient));
  }
  return step;
}

HandPrecision PrecisionByHand(const TrainConfig& config) {
  return {.linear = config.linear, .storage = config.storage};
}

HandPrecision Float32ByHand() {
  HandPrecision precision;
  precision.linear.all.high_precision = "fp32";
  return precision;
}

double ErrorByHand(const HandStep& g, const HandStep& r) {
  Squares squares;
  for (size_t i = 0; i < g.gradients.size(); ++i) {
    squares.Add(g.gradients[i].second, r.gradients[i].second);
  }
  return squares.Error();
}

double ErrorByHand(const std::vector<float>& g, const std::vector<float>& r) {
  Squares squares;
  squares.Add(g, r);
  return squares.Error();
}

LinearPrecision LayerByLayer(Trainer& trainer, const LinearPrecision& precision) {
  EXPECT_FALSE(precision.first_last_high);
  LinearPrecision result;
  result.all = precision.all;
  for (const std::string& layer : trainer.model().LinearLayers()) {
    LinearOptions storage;
    result.overrides.push_back({layer, PrecisionOf(precision, layer, false, storage)});
  }
  return result;
}

}  // namespace numsim
