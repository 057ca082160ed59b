// StepReplay against the trainer's own next step and against a step by hand.
#include "numsim/analysis/step_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

#include "numsim/base/parallel.h"
#include "numsim/random/distributions.h"
#include "numsim/random/streams.h"
#include "tests/reference/analysis/hand_replay.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

template <typename T>
void ExpectEqualGradients(const StepGradients<T>& x, const StepGradients<T>& y) {
  EXPECT_EQ(x.loss.sum, y.loss.sum);
  EXPECT_EQ(x.loss.counted, y.loss.counted);
  EXPECT_EQ(x.loss.correct, y.loss.correct);
  ASSERT_EQ(x.gradients.size(), y.gradients.size());
  for (size_t i = 0; i < x.gradients.size(); ++i) {
    EXPECT_EQ(x.gradients[i].name, y.gradients[i].name);
    EXPECT_EQ(x.gradients[i].values, y.gradients[i].values) << x.gradients[i].name;
  }
}

void ExpectByHand(const StepGradients<float>& replay, const HandStep& hand) {
  EXPECT_EQ(replay.loss.sum, hand.loss.sum);
  EXPECT_EQ(replay.loss.counted, hand.loss.counted);
  ASSERT_EQ(replay.gradients.size(), hand.gradients.size());
  for (size_t i = 0; i < hand.gradients.size(); ++i) {
    EXPECT_EQ(replay.gradients[i].name, hand.gradients[i].first);
    EXPECT_EQ(replay.gradients[i].values, hand.gradients[i].second) << hand.gradients[i].first;
  }
}

// Takes the step, and compares what it left with `replay`.
void ExpectToBeTheNextStep(const StepGradients<float>& replay, Trainer& trainer) {
  const double scale = trainer.optimizer().LossScale();
  trainer.Step();
  EXPECT_EQ(replay.loss.Mean(), trainer.last_loss());
  const ParameterList<float>& parameters = trainer.model().parameters();
  ASSERT_EQ(replay.gradients.size(), parameters.size());
  size_t i = 0;
  for (const Parameter<float>& parameter : parameters) {
    const NamedGradient<float>& gradient = replay.gradients[i++];
    EXPECT_EQ(gradient.name, parameter.name);
    EXPECT_EQ(gradient.role, parameter.role);
    EXPECT_EQ(gradient.shape.rows, parameter.gradient.View().rows);
    EXPECT_EQ(gradient.shape.cols, parameter.gradient.View().cols);
    std::vector<float> own;
    for (const float value : parameter.gradient.View().Span()) {
      own.push_back(static_cast<float>(value / scale));
    }
    EXPECT_EQ(gradient.values, own) << parameter.name;
  }
}

// TinyConfig with int8 layers, bf16 storage and a planted activation.
TrainConfig QuantisedConfig() {
  TrainConfig config = TinyConfig();
  config.linear.all.kind = "tensor-wise";
  config.storage.activations = ParseFormat("bf16");
  config.storage.gradients = ParseFormat("e5m2");
  config.stress.point = "blocks.*.norm";
  config.stress.channel = 3;
  config.stress.value = 2.5;
  return config;
}

TEST(StepReplay, SamePrecisionGivesTheBitsOfTheNextStep) {
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig(), QuantisedConfig()}) {
    Trainer trainer(config, OpenShared(config.data));
    for (int step = 0; step < 6; ++step) {
      const StepReplay replay(trainer);
      ExpectToBeTheNextStep(replay.Run<float>(PrecisionOf(config)), trainer);
    }
  }
}

TEST(StepReplay, IsSoForEveryKindOfModel) {
  struct Case {
    ModelKind model;
    DataKind data;
  };
  for (const Case& one : {Case{ModelKind::kGpt, DataKind::kGeneratedText},
                          Case{ModelKind::kVit, DataKind::kGeneratedImages},
                          Case{ModelKind::kClip, DataKind::kGeneratedShapes},
                          Case{ModelKind::kMlp, DataKind::kGaussian}}) {
    TrainConfig config = TinyConfig();
    config.linear.all.kind = "switchback";
    config.model.kind = one.model;
    config.data.kind = one.data;
    config.data.image = 16;
    config.data.size = one.data == DataKind::kGeneratedText ? 1 << 14 : 256;
    Trainer trainer(config, OpenShared(config.data));
    trainer.Step();
    const StepReplay replay(trainer);
    ExpectToBeTheNextStep(replay.Run<float>(PrecisionOf(config)), trainer);
  }
}

TEST(StepReplay, StretchedInputsAreReplayed) {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kMlp;
  config.data.kind = DataKind::kGaussian;
  config.data.size = 256;
  config.stress.input_tail = 1;
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const StepReplay replay(trainer);
  const StepGradients<double> reference = replay.Run<double>(Float32Precision());
  ExpectToBeTheNextStep(replay.Run<float>(PrecisionOf(config)), trainer);
  EXPECT_NEAR(reference.loss.Mean(), trainer.last_loss(), 1e-5);
}

// Factors of gradients and inputs from the middle on.
TEST(StepReplay, JumpsAreReplayed) {
  TrainConfig text = TinyConfig(), student = TinyConfig();
  text.stress.jump_step = student.stress.jump_step = 2;
  text.stress.jump_loss = 8;
  student.model.kind = ModelKind::kMlp;
  student.data.kind = DataKind::kGaussian;
  student.data.size = 256;
  student.stress.jump_contrast = 3;
  for (const TrainConfig& config : {text, student}) {
    Trainer trainer(config, OpenShared(config.data));
    for (uint64_t step = 0; step < 4; ++step) {
      const StepReplay replay(trainer);
      const StepGradients<double> reference = replay.Run<double>(Float32Precision());
      ExpectToBeTheNextStep(replay.Run<float>(PrecisionOf(config)), trainer);
      EXPECT_NEAR(reference.loss.Mean(), trainer.last_loss(), 1e-5);
      double square = 0;
      for (const NamedGradient<double>& gradient : reference.gradients) {
        for (const double g : gradient.values) square += g * g;
      }
      const double norm = trainer.telemetry().Of("train").Number(step, "gradient_norm");
      EXPECT_NEAR(std::sqrt(square), norm, 1e-4 * norm) << step;
    }
  }
}

TEST(StepReplay, OtherPrecisionsAreStepsByHand) {
  for (const TrainConfig& config : {StatefulConfig(), QuantisedConfig()}) {
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, 2);
    const StepReplay replay(trainer);
    ExpectByHand(replay.Run<float>(Float32Precision()), StepByHand(trainer, Float32ByHand()));
    ReplayPrecision precision;
    precision.linear.all.kind = "mx";
    precision.linear.overrides = {{"*.down", config.linear.all}};
    precision.storage.gradients = ParseFormat("e4m3fn");
    const HandPrecision by_hand{.linear = precision.linear, .storage = precision.storage};
    ExpectByHand(replay.Run<float>(precision), StepByHand(trainer, by_hand));
    EXPECT_NE(replay.Run<float>(precision).gradients[0].values,
              replay.Run<float>(Float32Precision()).gradients[0].values);
  }
}

TEST(StepReplay, OneTensorMayStayUnrounded) {
  const TrainConfig config = QuantisedConfig();
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const StepReplay replay(trainer);
  const HandStep configured = StepByHand(trainer, PrecisionByHand(config));
  int different = 0;
  for (const auto& point : configured.points) {
    ReplayPrecision precision = PrecisionOf(config);
    precision.unrounded = ReplayPrecision::Tensor{point.first, point.second};
    HandPrecision by_hand = PrecisionByHand(config);
    by_hand.rounds = [&point](std::string_view name, TensorRole role) {
      return name != point.first || role != point.second;
    };
    const HandStep expected = StepByHand(trainer, by_hand);
    SCOPED_TRACE(point.first);
    ExpectByHand(replay.Run<float>(precision), expected);
    different += expected.gradients != configured.gradients ? 1 : 0;
  }
  EXPECT_GT(different, 15);  // of 24 or so: each counts
}

TEST(StepReplay, UnroundedIsAPointAndNoPattern) {
  const TrainConfig config = QuantisedConfig();
  Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  ReplayPrecision precision = PrecisionOf(config);
  precision.unrounded = ReplayPrecision::Tensor{"blocks.*", TensorRole::kActivation};
  ExpectEqualGradients(replay.Run<float>(precision), replay.Run<float>(PrecisionOf(config)));
}

// The same pass through a model of float64.
StepGradients<double> ReferenceByHand(Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  const auto model = MakeModel<double>(config.model, {}, config.train.seed);
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    const auto from = trainer.model().parameters()[i].value.View().Span();
    std::copy(from.begin(), from.end(), model->parameters()[i].value.View().Span().begin());
  }
  Batch batch;
  trainer.data().TrainBatch(DeriveSeed(config.train.seed, RandomPurpose::kShuffle),
                            trainer.steps_taken(),
                            config.train.batch,
                            config.model.context,
                            batch);
  StepGradients<double> result;
  result.loss = model->Forward({}, batch);
  model->Backward({});
  for (const Parameter<double>& parameter : model->parameters()) {
    const In<double> gradient = parameter.gradient.View();
    result.gradients.push_back({parameter.name,
                                parameter.role,
                                {gradient.rows, gradient.cols},
                                {gradient.Span().begin(), gradient.Span().end()}});
  }
  return result;
}

TEST(StepReplay, ShadowIsTheModelInFloat64WhateverThePrecision) {
  for (TrainConfig config : {TinyConfig(), StatefulConfig(), QuantisedConfig()}) {
    config.stress = {};
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, 2);
    const StepReplay replay(trainer);
    const StepGradients<double> expected = ReferenceByHand(trainer);
    const StepGradients<double> reference = replay.Run<double>(PrecisionOf(config));
    ExpectEqualGradients(replay.Run<double>(Float32Precision()), reference);
    EXPECT_EQ(reference.loss.sum, expected.loss.sum);
    ASSERT_EQ(reference.gradients.size(), expected.gradients.size());
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      EXPECT_EQ(reference.gradients[i].name, expected.gradients[i].name);
      for (size_t e = 0; e < expected.gradients[i].values.size(); ++e) {
        // The loss scale may enter: a power of two.
        ASSERT_DOUBLE_EQ(reference.gradients[i].values[e], expected.gradients[i].values[e])
            << expected.gradients[i].name << ' ' << e;
      }
    }
  }
}

TEST(StepReplay, ShadowDoesNotLookAtLinearLayers) {
  const TrainConfig config = TinyConfig();
  const Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  ReplayPrecision precision;
  precision.linear.all.kind = "nope";
  ExpectEqualGradients(replay.Run<double>(precision), replay.Run<double>(Float32Precision()));
}

TEST(StepReplay, ShadowHasThePlantedActivation) {
  TrainConfig config = QuantisedConfig();
  Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  const StepGradients<float> narrow = replay.Run<float>(Float32Precision());
  const StepGradients<double> wide = replay.Run<double>(Float32Precision());
  EXPECT_NEAR(narrow.loss.Mean(), wide.loss.Mean(), 1e-6);
  EXPECT_GT(std::abs(wide.loss.Mean() - ReferenceByHand(trainer).loss.Mean()), 1e-5);
  double error = 0, square = 0;
  for (size_t i = 0; i < wide.gradients.size(); ++i) {
    for (size_t e = 0; e < wide.gradients[i].values.size(); ++e) {
      error += std::pow(narrow.gradients[i].values[e] - wide.gradients[i].values[e], 2);
      square += std::pow(wide.gradients[i].values[e], 2);
    }
  }
  EXPECT_LT(error, 1e-10 * square);
}

TEST(StepReplay, MovedByNothingItIsTheReference) {
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig(), QuantisedConfig()}) {
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, 2);
    const StepReplay replay(trainer);
    const StepGradients<double> reference = replay.Run<double>(Float32Precision());
    ExpectEqualGradients(replay.RunMoved(reference.gradients, 0), reference);
  }
}

// Weights with a random change of about 0.01, in float32, and the way there in steps of 2^-6. A
// difference of two floats is exact in float64, and so is its product with a power of two.
std::vector<NamedGradient<double>> MoveWeights(Trainer& trainer) {
  constexpr double kDistance = 0x1p-6;
  std::vector<NamedGradient<double>> direction;
  for (Parameter<float>& parameter : trainer.model().parameters()) {
    const MatrixSpan<float> weights = parameter.value.View();
    std::vector<float> change(weights.Span().size());
    FillNormal({17, direction.size()}, 0, change);
    NamedGradient<double>& along = direction.emplace_back();
    along.name = parameter.name;
    along.shape = {weights.rows, weights.cols};
    for (size_t i = 0; i < change.size(); ++i) {
      float& weight = weights.Span()[i];
      const float before = weight;
      weight += 0.01f * change[i];
      along.values.push_back((static_cast<double>(weight) - static_cast<double>(before)) /
                             kDistance);
    }
  }
  return direction;
}

void ExpectClose(const StepGradients<double>& x, const StepGradients<double>& y) {
  EXPECT_NEAR(x.loss.Mean(), y.loss.Mean(), 1e-9);
  ASSERT_EQ(x.gradients.size(), y.gradients.size());
  for (size_t i = 0; i < x.gradients.size(); ++i) {
    EXPECT_EQ(x.gradients[i].name, y.gradients[i].name);
    ASSERT_EQ(x.gradients[i].values.size(), y.gradients[i].values.size());
    for (size_t k = 0; k < x.gradients[i].values.size(); ++k) {
      ASSERT_NEAR(x.gradients[i].values[k], y.gradients[i].values[k], 1e-9)
          << x.gradients[i].name << ' ' << k;
    }
  }
}

TEST(StepReplay, MovedItIsTheReplayOfATrainerWithThoseWeights) {
  TrainConfig jumping = TinyConfig();
  jumping.stress.jump_loss = 3;
  jumping.model.kind = ModelKind::kGpt;
  for (const TrainConfig& config : {TinyConfig(), QuantisedConfig(), jumping}) {
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer trainer(config, data);
    StepUntil(trainer, 2);
    const StepReplay replay(trainer);
    std::vector<NamedGradient<double>> direction = MoveWeights(trainer);
    const StepGradients<double> moved = StepReplay(trainer).Run<double>(Float32Precision());
    const StepGradients<double> at_first = replay.Run<double>(Float32Precision());
    EXPECT_GT(std::abs(moved.loss.Mean() - at_first.loss.Mean()), 1e-4);
    ExpectClose(replay.RunMoved(direction, 0x1p-6), moved);
    // Backwards along the opposite, and the way as a whole.
    for (NamedGradient<double>& along : direction) {
      for (double& value : along.values) value = -value;
    }
    ExpectClose(replay.RunMoved(direction, -0x1p-6), moved);
    for (NamedGradient<double>& along : direction) {
      for (double& value : along.values) value *= -0x1p-6;
    }
    ExpectClose(replay.RunMoved(direction, 1), moved);
    // From the new weights back to the old.
    ExpectClose(StepReplay(trainer).RunMoved(direction, -1), at_first);
    // The replay has not moved.
    ExpectEqualGradients(replay.Run<double>(Float32Precision()), at_first);
  }
}

TEST(StepReplay, OnlyDirectionsOfTheModelMoveIt) {
  const TrainConfig config = TinyConfig();
  const Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  const size_t parameters = trainer.model().parameters().size();
  EXPECT_EQ(ErrorOf([&] { replay.RunMoved({}, 1); }),
            fmt::format("StepReplay::RunMoved: a direction of 0 parameters, and the model has {}",
                        parameters));
  std::vector<NamedGradient<double>> direction = replay.Run<double>(Float32Precision()).gradients;
  direction.back().values.pop_back();
  EXPECT_NE(ErrorOf([&] { replay.RunMoved(direction, 1); }).find("StepReplay::RunMoved"),
            std::string::npos);
}

TEST(StepReplay, TrainerIsNotChangedAndMayGoOn) {
  for (const TrainConfig& config : {StatefulConfig(), QuantisedConfig()}) {
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer quiet(config, data), replayed(config, data);
    StepUntil(quiet, 2);
    StepUntil(replayed, 2);
    const StepReplay replay(replayed);
    const StepGradients<float> before = replay.Run<float>(PrecisionOf(config));
    EXPECT_EQ(TensorBytes(replayed.Save()), TensorBytes(quiet.Save()));
    StepUntil(quiet);
    StepUntil(replayed);
    EXPECT_EQ(TensorBytes(replayed.Save()), TensorBytes(quiet.Save()));
    EXPECT_EQ(TelemetryText(replayed.telemetry()), TelemetryText(quiet.telemetry()));
    ExpectEqualGradients(replay.Run<float>(PrecisionOf(config)), before);
  }
}

TEST(StepReplay, OutlivesItsTrainer) {
  const TrainConfig config = StatefulConfig();
  auto trainer = std::make_unique<Trainer>(config, OpenShared(config.data));
  trainer->Step();
  const StepReplay replay(*trainer);
  const StepGradients<float> before = replay.Run<float>(PrecisionOf(config));
  trainer.reset();
  ExpectEqualGradients(replay.Run<float>(PrecisionOf(config)), before);
}

TEST(StepReplay, ConfigIsThatOfTheTrainerFitToTheData) {
  TrainConfig config = TinyConfig();
  config.model.vocabulary = 3;
  const Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  EXPECT_EQ(replay.config().model.vocabulary, trainer.config().model.vocabulary);
  EXPECT_GT(replay.config().model.vocabulary, 3u);
}

TEST(StepReplay, FindsGradientsByName) {
  const TrainConfig config = TinyConfig();
  const Trainer trainer(config, OpenShared(config.data));
  const StepGradients<float> step = StepReplay(trainer).Run<float>(Float32Precision());
  const NamedGradient<float>* const found = step.Find("blocks.0.mlp.down.weight");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "blocks.0.mlp.down.weight");
  EXPECT_EQ(found->role, ParameterRole::kMatrix);
  EXPECT_EQ(found->shape.rows, 16u);
  EXPECT_EQ(found->values.size(), found->shape.rows * found->shape.cols);
  EXPECT_EQ(step.Find("blocks.0.mlp.down"), nullptr);
  EXPECT_EQ(step.Find(""), nullptr);
}

struct ProductRecord : PassObserver<float> {
  void Multiplied(std::string_view layer, LinearGemm product) override {
    products[std::string(layer)].push_back(product);
  }
  std::map<std::string, std::vector<LinearGemm>> products;
};

TEST(StepReplay, ObserverSeesTheProductsOfEveryLayer) {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kVit;
  config.data.kind = DataKind::kGeneratedImages;
  config.data.size = 256;
  const Trainer trainer(config, OpenShared(config.data));
  ProductRecord record;
  StepReplay(trainer).Run<float>(Float32Precision(), &record);
  EXPECT_EQ(record.products.size(), trainer.model().LinearLayers().size());
  for (const std::string& layer : trainer.model().LinearLayers()) {
    std::vector<LinearGemm> expected(std::begin(kProducts), std::end(kProducts));
    if (layer == "patches") expected = {LinearGemm::kForward, LinearGemm::kWeightGradient};
    EXPECT_EQ(record.products[layer], expected) << layer;
  }
}

TEST(StepReplay, OverrideThatNamesNoLayerIsAnError) {
  const TrainConfig config = TinyConfig();
  const Trainer trainer(config, OpenShared(config.data));
  const StepReplay replay(trainer);
  ReplayPrecision precision = Float32Precision();
  precision.linear.overrides = {{"nope", {}}};
  EXPECT_THROW(replay.Run<float>(precision), Error);
  precision = Float32Precision();
  precision.linear.all.kind = "nope";
  EXPECT_THROW(replay.Run<float>(precision), Error);
}

TEST(StepReplay, ThreadsDoNotChangeABitAndMayShareIt) {
  const TrainConfig config = StatefulConfig();
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 3);
  const StepReplay replay(trainer);
  const StepGradients<float> alone = replay.Run<float>(PrecisionOf(config));
  const StepGradients<float> exact = replay.Run<float>(Float32Precision());
  StepGradients<float> first, second;
  std::thread other([&] { first = replay.Run<float>(PrecisionOf(config)); });
  second = replay.Run<float>(Float32Precision());
  other.join();
  ExpectEqualGradients(first, alone);
  ExpectEqualGradients(second, exact);
  const int threads = ThreadCount();
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    ExpectEqualGradients(replay.Run<float>(PrecisionOf(config)), alone);
  }
  SetThreadCount(threads);
}

}  // namespace
}  // namespace numsim
