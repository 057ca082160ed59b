// Replays in precisions that say something of single layers or tensors.
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "numsim/analysis/step_replay.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

std::vector<uint32_t> Bits(std::span<const float> values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// Gradients of `trainer`'s model, which its last step left there, without the scale.
void ExpectGradientsOf(Trainer& trainer, double loss_scale, const StepGradients<float>& replayed) {
  ASSERT_EQ(replayed.gradients.size(), trainer.model().parameters().size());
  size_t i = 0;
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const NamedGradient<float>& gradient = replayed.gradients[i++];
    const In<float> expected = parameter.gradient.View();
    EXPECT_EQ(gradient.name, parameter.name);
    EXPECT_EQ(gradient.role, parameter.role);
    EXPECT_EQ(gradient.shape.rows, expected.rows);
    EXPECT_EQ(gradient.shape.cols, expected.cols);
    std::vector<float> unscaled(expected.Span().begin(), expected.Span().end());
    for (float& value : unscaled) value /= static_cast<float>(loss_scale);
    EXPECT_EQ(Bits(gradient.values), Bits(unscaled)) << parameter.name;
    EXPECT_EQ(replayed.Find(parameter.name), &gradient);
  }
  EXPECT_EQ(replayed.Find("no such"), nullptr);
}

// The replay of step `at` has the bits of the step, and leaves no trace in the trainer.
void ExpectBitsOfTheStep(const TrainConfig& config, uint64_t at) {
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data), other(config, data);
  StepUntil(trainer, at);
  StepUntil(other, at);
  const StepReplay replay(trainer);
  EXPECT_EQ(replay.step(), at);
  const ReplayPrecision precision = PrecisionOf(replay.config());
  const StepGradients<float> before = replay.Run<float>(precision);
  const double loss_scale = trainer.optimizer().LossScale();
  trainer.Step();
  other.Step();
  EXPECT_EQ(before.loss.Mean(), trainer.last_loss());
  ExpectGradientsOf(trainer, loss_scale, before);
  // The trainer has gone on; the replay has not.
  ExpectGradientsOf(trainer, loss_scale, replay.Run<float>(precision));
  EXPECT_EQ(TensorBytes(trainer.Save()), TensorBytes(other.Save()));
  EXPECT_EQ(TelemetryText(trainer.telemetry()), TelemetryText(other.telemetry()));
}

TEST(StepReplayPrecision, HasTheBitsOfTheStepWithOverridesAndFirstAndLastLayersInHighPrecision) {
  TrainConfig config = TinyConfig();
  config.linear.all.kind = "tensor-wise";
  config.linear.first_last_high = true;
  LinearOptions options;
  options.kind = "switchback-m";
  options.high_operands = ParseOperandSet("w");
  config.linear.overrides.push_back({"*.mlp.*", options});
  ExpectBitsOfTheStep(config, 2);
}

TEST(StepReplayPrecision, HasTheBitsOfTheStepUnderStress) {
  TrainConfig config = TinyConfig();
  config.stress.point = "blocks.0.mlp.norm";
  config.stress.channel = 3;
  config.stress.value = 50;
  config.linear.all.kind = "tensor-wise";
  ExpectBitsOfTheStep(config, 2);
  config.stress = {};
  config.model.kind = ModelKind::kMlp;
  config.data = {};
  config.data.kind = DataKind::kGaussian;
  config.data.size = 512;
  config.data.features = 8;
  config.stress.input_tail = 1.5;
  ExpectBitsOfTheStep(config, 2);
}

// Activations that bf16 cannot represent, as an observer saw them, by tensor name.
class Unrounded : public PassObserver<float> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    for (const float value : values.Span()) {
      if ((std::bit_cast<uint32_t>(value) & 0xFFFFu) == 0) continue;
      seen.insert({std::string(point), role});
      return;
    }
  }
  std::set<std::pair<std::string, TensorRole>> seen;
};

TEST(StepReplayPrecision, StorageSparesATensorOrRoundsItAlone) {
  TrainConfig config = TinyConfig();
  config.storage.activations = config.storage.gradients = ParseFormat("bf16");
  Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  const auto seen = [&](const ReplayPrecision& precision) {
    Unrounded observer;
    replay.Run(precision, &observer);
    return observer.seen;
  };
  ReplayPrecision precision = PrecisionOf(config);
  EXPECT_TRUE(seen(precision).empty());
  const std::pair<std::string, TensorRole> one = {"blocks.0.mlp.hidden", TensorRole::kGradient};
  precision.unrounded = {one.first, one.second};
  EXPECT_EQ(seen(precision), (std::set<std::pair<std::string, TensorRole>>{one}));
  const auto all = seen(Float32Precision());
  EXPECT_TRUE(all.contains(one));
  EXPECT_TRUE(all.contains({one.first, TensorRole::kActivation}));
  precision.only_rounded = precision.unrounded;
  precision.unrounded.reset();
  auto rest = all;
  rest.erase(one);
  EXPECT_EQ(seen(precision), rest);
}

TEST(StepReplayPrecision, DelayedScalesAreTheTrainersOrNone) {
  const TrainConfig config = StatefulConfig();
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 4);
  const StepReplay replay(trainer);
  ReplayPrecision precision = PrecisionOf(config);
  precision.linear.all.delayed->history = 5;
  ExpectMessage(ErrorOf([&] { replay.Run<float>(precision); }), {"scaling state"});
  // A layer whose scales the trainer does not have.
  TrainConfig current = config;
  current.linear.all.delayed.reset();
  Trainer without(current, OpenShared(config.data));
  EXPECT_NO_THROW(StepReplay(without).Run<float>(precision));
}

TEST(StepReplayPrecision, GradientsThatAreNotFiniteAreAResult) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  trainer.model().parameters().Find("head.weight")->value.View().data[3] =
      std::numeric_limits<float>::infinity();
  const StepGradients<float> gradients =
      StepReplay(trainer).Run<float>(PrecisionOf(trainer.config()));
  EXPECT_FALSE(std::isfinite(gradients.loss.Mean()));
  EXPECT_FALSE(std::isfinite(gradients.Find("head.weight")->values[3]));
}

}  // namespace
}  // namespace numsim
