#include "numsim/train/stress.h"

#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/models/model.h"
#include "numsim/ops/elementwise.h"
#include "numsim/random/streams.h"
#include "numsim/train/shared/tensor_telemetry.h"
#include "tests/support/error_of.h"
#include "tests/support/image_problem.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

StressConfig Planted(std::string point, size_t channel, double value) {
  StressConfig stress;
  stress.point = std::move(point);
  stress.channel = channel;
  stress.value = value;
  return stress;
}

std::string Complaint(const StressConfig& stress) {
  return ErrorOf([&] { CheckStressConfig(stress); });
}

TEST(CheckStressConfig, NamesTheKeyAtFault) {
  EXPECT_EQ(Complaint({}), "no error");
  EXPECT_EQ(Complaint(Planted("*.down", 3, -1e30)), "no error");
  ExpectMessage(Complaint(Planted("*.down", 3, 1.01e30)), {"stress.value: ", "1.01e+30"});
  ExpectMessage(Complaint(Planted("*.down", 3, std::nan(""))), {"stress.value: nan"});
  ExpectMessage(Complaint(Planted("*.down", 3, -INFINITY)), {"stress.value: -inf"});
  ExpectMessage(Complaint(Planted("", 3, 7)), {"stress.value: 7", "stress.point"});
  StressConfig tail;
  for (const double fits : {1e-9, 4.0}) {
    tail.input_tail = fits;
    EXPECT_EQ(Complaint(tail), "no error");
  }
  for (const double wrong : {-1e-9, 4.001, std::nan(""), static_cast<double>(INFINITY)}) {
    tail.input_tail = wrong;
    ExpectMessage(Complaint(tail), {"stress.input_tail: ", "0 <= x <= 4"});
  }
}

TEST(CheckStressConfig, JumpsAreFactorsAboveZero) {
  for (const auto& [key, factor] :
       {std::pair{"stress.jump_loss: ", &StressConfig::jump_loss},
        std::pair{"stress.jump_contrast: ", &StressConfig::jump_contrast}}) {
    StressConfig stress;
    for (const double fits : {1e-9, 1.0, 1e6}) {
      stress.*factor = fits;
      EXPECT_EQ(Complaint(stress), "no error") << key << fits;
    }
    for (const double wrong :
         {0.0, -0.0, -1.0, 1.0001e6, std::nan(""), static_cast<double>(INFINITY)}) {
      stress.*factor = wrong;
      ExpectMessage(Complaint(stress), {key, "0 < x <= 1000000"});
    }
  }
}

TEST(CheckStressConfig, IsPartOfEveryConfiguration) {
  const auto error = [](const std::vector<std::string>& overrides) {
    return ErrorOf([&] { ParseTrainConfig("", "test", {}, overrides); });
  };
  ExpectMessage(error({"stress.value=2"}), {"stress.value: 2"});
  ExpectMessage(error({"stress.input_tail=5"}), {"stress.input_tail: 5"});
  ExpectMessage(error({"stress.channel=-1"}), {"stress.channel: -1"});
  ExpectMessage(error({"stress.jump_loss=0"}), {"stress.jump_loss: 0"});
  ExpectMessage(error({"stress.jump_contrast=-2"}), {"stress.jump_contrast: -2"});
  ExpectMessage(error({"stress.jump_step=-1"}), {"stress.jump_step: -1"});
  TrainConfig config = TinyConfig();
  config.stress = Planted("head", 0, INFINITY);
  ExpectMessage(ErrorOf([&] { CheckTrainConfig(config); }), {"stress.value: inf"});
}

TEST(PlantActivation, AddsToOneChannelOfAllRowsWhereThePatternCovers) {
  const StressConfig stress = Planted("blocks.*.down", 1, 0.1);
  std::vector<float> x = {1, 2, 3, -4, -5, -6};
  const MatrixSpan<float> view(x.data(), 2, 3);
  PlantActivation(stress, "blocks.0.up", view);
  PlantActivation(stress, "image.blocks.0.down", view);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, -4, -5, -6}));
  PlantActivation(stress, "blocks.0.down", view);
  EXPECT_EQ(x, (std::vector<float>{1, 2.0f + 0.1f, 3, -4, -5.0f + 0.1f, -6}));
  // The same constant in float64.
  std::vector<double> y = {1, 0, 3};
  PlantActivation(stress, "blocks.0.down", MatrixSpan<double>(y.data(), 1, 3));
  EXPECT_EQ(y, (std::vector<double>{1, static_cast<double>(0.1f), 3}));
  EXPECT_EQ(
      ErrorOf([&] { PlantActivation(stress, "blocks.0.down", MatrixSpan<float>(x.data(), 6, 1)); }),
      "PlantActivation: blocks.0.down has 1 columns, and stress.channel is 1");
}

TEST(PlantActivation, NothingIsAddedWithoutAPointOrValue) {
  std::vector<float> x = {-0.0f};
  PlantActivation(Planted("*", 0, 0), "p", MatrixSpan<float>(x.data(), 1, 1));
  PlantActivation(Planted("", 0, 1), "", MatrixSpan<float>(x.data(), 1, 1));
  EXPECT_TRUE(std::signbit(x[0]));
}

// A model of float64 whose passes have the constant planted.
class PlantingObserver final : public PassObserver<double> {
 public:
  explicit PlantingObserver(const StressConfig& stress) : stress_(stress) {}
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<double> values) override {
    if (role == TensorRole::kActivation) PlantActivation(stress_, point, values);
  }

 private:
  StressConfig stress_;
};

// How far gradients are from difference quotients along a random direction of all parameters,
// relative to the larger one.
double GradientError(Model<double>& model, const Batch& batch, const StressConfig& stress) {
  PlantingObserver observer(stress);
  Pass<double> pass;
  pass.observer = &observer;
  model.Forward(pass, batch);
  model.Backward(pass);
  std::vector<std::vector<double>> kept, direction;
  double along = 0;
  for (const Parameter<double>& parameter : model.parameters()) {
    const std::span<const double> values = parameter.value.View().Span();
    kept.emplace_back(values.begin(), values.end());
    std::vector<float> draws(values.size());
    FillNormal({9, kept.size()}, 0, draws);
    direction.emplace_back(draws.begin(), draws.end());
    const std::span<const double> gradient = parameter.gradient.View().Span();
    for (size_t i = 0; i < gradient.size(); ++i) along += gradient[i] * direction.back()[i];
  }
  const auto loss = [&](double t) {
    for (size_t p = 0; p < kept.size(); ++p) {
      const std::span<double> values = model.parameters()[p].value.View().Span();
      for (size_t i = 0; i < values.size(); ++i) values[i] = kept[p][i] + t * direction[p][i];
    }
    return model.Forward(pass, batch).Mean();
  };
  const double difference = Derivative(loss, 1e-5);
  loss(0);
  return std::fabs(along - difference) / std::max(std::fabs(along), std::fabs(difference));
}

struct Problem {
  ModelConfig config;
  Batch batch;
};

std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  for (const ModelConfig& config : LanguageModelConfigs()) {
    problems.push_back({config, RandomText(2, config.context, config.vocabulary, 3)});
  }
  for (const ModelKind kind : {ModelKind::kVit, ModelKind::kClip}) {
    for (const ModelConfig& config : ImageModelConfigs(kind)) {
      problems.push_back({config, RandomImages(config, 3, 4)});
      if (kind == ModelKind::kVit) problems.back().batch.tokens.clear();
    }
  }
  ModelConfig student;
  student.kind = ModelKind::kMlp;
  student.layers = 2;
  student.width = student.hidden = 10;
  student.inputs = 7;
  Batch features;
  features.examples = 5;
  features.values = NormalDraws(5 * student.inputs, 5);
  problems.push_back({student, features});
  return problems;
}

template <typename T>
std::unique_ptr<Model<T>> MakeUnsettledModel(const ModelConfig& config) {
  auto model = MakeModel<T>(config, Float32Products(), 1);
  Unsettle(model->parameters(), 0.2F, 2);
  return model;
}

// At every point of every model: either the gradients are right, or the point is refused.
TEST(CheckStressPoint, RefusesJustThePointsWhereGradientsWouldBeWrong) {
  size_t refused_points = 0;
  for (const Problem& problem : Problems()) {
    const auto model = MakeUnsettledModel<double>(problem.config);
    const auto single = MakeUnsettledModel<float>(problem.config);
    Recorder<double> recorder;
    Pass<double> pass;
    pass.observer = &recorder;
    model->Forward(pass, problem.batch);
    for (const std::string& point : recorder.order[TensorRole::kActivation]) {
      SCOPED_TRACE(Describe(problem.config) + " " + point);
      const StressConfig stress = Planted(point, 1, 2);
      const std::string message =
          ErrorOf([&] { CheckStressPoint(stress, *single, problem.batch); });
      const double error = GradientError(*model, problem.batch, stress);
      if (message == "no error") {
        EXPECT_LT(error, 1e-5);
      } else {
        ++refused_points;
        ExpectMessage(message, {"stress.point: ", "'" + point + "'"});
        EXPECT_GT(error, 1e-4);
      }
    }
  }
  // Two blocks of six language models and two classifiers; of two clips three blocks and logits.
  EXPECT_EQ(refused_points, 2u * 8 + 2u * 4);
}

TEST(CheckStressPoint, ListsThePointsWhereNoneIsCovered) {
  const ModelConfig config = TinyLanguageModel(ModelKind::kGpt);
  const auto model = MakeModel<float>(config, {}, 1);
  const Batch batch = RandomText(1, config.context, config.vocabulary, 3);
  const auto error = [&](const StressConfig& stress) {
    return ErrorOf([&] { CheckStressPoint(stress, *model, batch); });
  };
  ExpectMessage(error(Planted("block.0", 0, 1)),
                {"stress.point: 'block.0' matches no tensor", "embedding, ", "blocks.1, ", "head"});
  ExpectMessage(error(Planted("blocks.*", 0, 1)), {"stress.point: ", "blocks.0.attention.core"});
  EXPECT_EQ(error(Planted("", 99, 0)), "no error");
  EXPECT_EQ(error(Planted("blocks.1", config.width - 1, 1)), "no error");
  ExpectMessage(error(Planted("blocks.1", config.width, 1)),
                {"stress.channel: 12", "'blocks.1'", "0 to 11"});
  // The least of several decides, whichever comes first.
  ExpectMessage(error(Planted("*.mlp.*", 10, 1)), {"stress.channel: 10", "mlp.up'", "0 to 9"});
}

TEST(CheckStressPoint, IsPartOfMakingATrainer) {
  TrainConfig config = StatefulConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  const auto error = [&] { return ErrorOf([&] { Trainer(config, data); }); };
  config.stress = Planted("nope", 0, 1);
  ExpectMessage(error(), {"stress.point: 'nope'"});
  config.stress = Planted("blocks.0", 16, 0);
  ExpectMessage(error(), {"stress.channel: 16"});
  // Looking leaves no trace: delayed scales are those of a trainer without it.
  config.stress = Planted("blocks.0", 15, 0);
  Trainer looked(config, data);
  config.stress = {};
  Trainer plain(config, data);
  StepUntil(looked, 3);
  StepUntil(plain, 3);
  EXPECT_EQ(TensorBytes(looked.Save()), TensorBytes(plain.Save()));
}

TEST(Trainer, RefusesAPatternOfMomentsThatMatchesNoParameter) {
  TrainConfig config = StatefulConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  config.optimizer.moment_tensors = "block.*";
  ExpectMessage(ErrorOf([&] { Trainer(config, data); }),
                {"optimizer.moment_tensors: 'block.*' matches no parameter", "blocks.0."});
}

TEST(TensorObserver, PlantsBeforeRoundingAndMeasuring) {
  StorageConfig storage;
  storage.activations = ParseFormat("bf16");
  TensorObserver observer(storage, Planted("p", 0, 0.00390625));
  EXPECT_TRUE(observer.ChangesTensors());
  EXPECT_TRUE(TensorObserver({}, Planted("p", 0, 0)).ChangesTensors());
  Telemetry telemetry;
  observer.Begin(0, &telemetry, nullptr);
  // 1 + 2^-8 is a tie that goes to 1; with the constant it is 1 + 2^-7, which bf16 has.
  std::vector<float> x = {1.00390625f, 1.00390625f}, g = x;
  observer.Tensor("p", TensorRole::kActivation, MatrixSpan<float>(x.data(), 1, 2));
  observer.Tensor("p", TensorRole::kGradient, MatrixSpan<float>(g.data(), 1, 2));
  EXPECT_EQ(x, (std::vector<float>{1.0078125f, 1.0f}));
  EXPECT_EQ(g, (std::vector<float>{1.00390625f, 1.00390625f}));
  EXPECT_EQ(telemetry.Of("tensors").Number(0, "max_abs"), 1.0078125);
}

TEST(StressOfATraining, IsPlantedInEveryPass) {
  TrainConfig config = TinyConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  config.stress = Planted("blocks.0.mlp.down", 3, 40);
  config.telemetry.tensors_every = 1;
  Trainer seen(config, data);
  config.telemetry.tensors_every = 0;
  Trainer unseen(config, data);
  config.stress = {};
  Trainer plain(config, data);
  EXPECT_NE(unseen.Validate().sum, plain.Validate().sum);
  for (int i = 0; i < 3; ++i) {
    seen.Step();
    unseen.Step();
    plain.Step();
    EXPECT_EQ(seen.last_loss(), unseen.last_loss());
    EXPECT_NE(seen.last_loss(), plain.last_loss());
  }
  EXPECT_EQ(TensorBytes(seen.Save()), TensorBytes(unseen.Save()));
  const Table& table = seen.telemetry().Of("tensors");
  size_t rows = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.Text(row, "point") != "blocks.0.mlp.down") continue;
    const bool activation = table.Text(row, "role") == "activation";
    EXPECT_EQ(table.Number(row, "max_abs") > 39, activation);
    rows += activation ? 1 : 0;
  }
  EXPECT_EQ(rows, 3u);
}

TEST(StressOfATraining, IsPartOfTheConfigurationThatContinues) {
  TrainConfig config = StatefulConfig();
  config.stress = Planted("blocks.0", 2, 25);
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer whole(config, data), first(config, data), second(config, data);
  StepUntil(whole);
  StepUntil(first, 6);
  const TrainState state = first.Save();
  second.Restore(state);
  StepUntil(second);
  EXPECT_EQ(TensorBytes(second.Save()), TensorBytes(whole.Save()));
  config.stress.value = 26;
  Trainer other(config, data);
  ExpectMessage(ErrorOf([&] { other.Restore(state); }), {"stress.value is now 26 and was 25"});
}

std::vector<float> Stretched(double tail, std::vector<float> values) {
  Batch batch;
  batch.values = std::move(values);
  StretchInputs(tail, batch);
  return batch.values;
}

TEST(StretchInputs, IsTheHyperbolicSineRoundedOnce) {
  std::vector<float> x = NormalDraws(2000, 1);
  for (size_t i = 0; i < 1000; ++i) x[i] *= std::ldexp(1.0f, -static_cast<int>(i % 40));
  for (const double tail : {1e-300, 1e-4, 0.5, 1.5, 4.0}) {
    const std::vector<float> y = Stretched(tail, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double argument = static_cast<long double>(tail) * x[i];
      const long double exact = std::sinh(argument) / static_cast<long double>(tail);
      const long double ulp = std::nextafter(std::fabs(y[i]), INFINITY) - std::fabs(y[i]);
      EXPECT_LE(std::fabs(y[i] - exact), 0.5001L * ulp) << x[i] << " at " << tail;
    }
  }
}

TEST(StretchInputs, IsOddAndLeavesZeroAndTailZeroAlone) {
  const std::vector<float> x = {0.3f, -0.3f, 5.0f, -5.0f, 1e-30f, -1e-30f, 0.0f, -0.0f};
  const std::vector<float> y = Stretched(1.7, x);
  for (size_t i = 0; i < x.size(); i += 2) EXPECT_EQ(y[i], -y[i + 1]);
  EXPECT_GT(y[2], 5.0f);
  EXPECT_TRUE(std::signbit(y[7]));
  EXPECT_EQ(Stretched(0, x), x);
  EXPECT_TRUE(Stretched(2, {}).empty());
}

TEST(StretchInputs, BeyondFloat32ItIsAnErrorNotAnInfinity) {
  // sinh(4 x) / 4 reaches 2^128 near x = 22.7.
  EXPECT_TRUE(std::isfinite(Stretched(4, {1.0f, -22.6f})[1]));
  for (const float x : {22.8f, -22.8f, 30.0f, 1e10f, 3e38f}) {
    ExpectMessage(ErrorOf([&] {
                    Stretched(4, {0.0f, x, 1.0f});
                  }),
                  {"stress.input_tail: 4 ", "float32"});
  }
}

TEST(StretchInputs, ThreadsDoNotChangeABit) {
  const ExecutionState state;
  const std::vector<float> x = NormalDraws(100000, 2);
  SetThreadCount(1);
  const std::vector<float> one = Stretched(1.3, x);
  for (const int threads : {2, 5}) {
    SetThreadCount(threads);
    EXPECT_EQ(Stretched(1.3, x), one);
  }
}

// A student of features.
TrainConfig StudentConfig() {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kMlp;
  config.data.kind = DataKind::kGaussian;
  config.data.size = 4096;
  config.data.features = 16;
  return config;
}

// Training and validation of a student see the stretched features.
TEST(StressOfATraining, InputTailIsThatOfEveryBatch) {
  TrainConfig config = StudentConfig();
  config.stress.input_tail = 1.5;
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  const auto model = MakeModel<float>(trainer.config().model, config.linear, config.train.seed);
  Batch batch;
  LossSum valid;
  for (uint64_t i = 0; i < config.train.valid_batches; ++i) {
    data->ValidBatch(i, config.train.batch, 0, batch);
    StretchInputs(1.5, batch);
    valid.sum += model->Forward({}, batch).sum;
  }
  EXPECT_EQ(trainer.Validate().sum, valid.sum);
  const uint64_t shuffle = DeriveSeed(config.train.seed, RandomPurpose::kShuffle);
  data->TrainBatch(shuffle, 0, config.train.batch, 0, batch);
  StretchInputs(1.5, batch);
  trainer.Step();
  EXPECT_EQ(trainer.last_loss(), model->Forward({}, batch).Mean());
}

std::vector<float> Scaled(double factor, std::vector<float> values) {
  Batch batch;
  batch.values = std::move(values);
  ScaleInputs(factor, batch);
  return batch.values;
}

TEST(ScaleInputs, MultipliesEveryValue) {
  const std::vector<float> x = NormalDraws(2000, 3);
  for (const double factor : {1e-3, 0.5, 1.0, 3.0, 1e6}) {
    const std::vector<float> y = Scaled(factor, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = factor * static_cast<double>(x[i]);
      // Half an ulp of the factor as a float32, and half an ulp of the product.
      EXPECT_NEAR(y[i], exact, 0x1.01p-23 * std::fabs(exact)) << x[i] << " times " << factor;
    }
  }
  EXPECT_EQ(Scaled(0.5, {3.0f, -7.0f, 0.0f}), (std::vector<float>{1.5f, -3.5f, 0.0f}));
  EXPECT_TRUE(std::signbit(Scaled(2, {-0.0f})[0]));
  EXPECT_TRUE(Scaled(2, {}).empty());
}

TEST(ScaleInputs, BeyondFloat32ItIsAnErrorNotAnInfinity) {
  EXPECT_TRUE(std::isfinite(Scaled(1e6, {-3.4e32f})[0]));
  for (const float x : {3.5e32f, -3.5e32f, 3e38f}) {
    ExpectMessage(ErrorOf([&] {
                    Scaled(1e6, {0.0f, x, 1.0f});
                  }),
                  {"stress.jump_contrast: 1000000 ", "float32"});
  }
}

StressConfig Jump(uint64_t step, double loss, double contrast) {
  StressConfig stress;
  stress.jump_step = step;
  stress.jump_loss = loss;
  stress.jump_contrast = contrast;
  return stress;
}

TEST(StressConfig, FactorsBeginWithTheirStep) {
  const StressConfig stress = Jump(5, 3, 7);
  for (const uint64_t step : {0, 4, 5, 6, 1000}) {
    EXPECT_EQ(stress.LossFactor(step), step < 5 ? 1 : 3) << step;
    EXPECT_EQ(stress.ContrastFactor(step), step < 5 ? 1 : 7) << step;
  }
  EXPECT_EQ(Jump(0, 3, 7).LossFactor(0), 3);  // from the start
  EXPECT_EQ(StressConfig().LossFactor(0), 1);
  EXPECT_EQ(StressConfig().ContrastFactor(0), 1);
}

// The steps of a training with a jump, each beside a pass by hand with the same weights: the loss
// is that of the pass, and the gradients are those of the pass times `factor(step)`.
void ExpectGradientsTimes(const TrainConfig& config,
                          const std::function<double(uint64_t)>& factor,
                          double tolerance) {
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  const auto model = MakeModel<float>(trainer.config().model, config.linear, config.train.seed);
  const size_t context = trainer.config().model.context;
  const uint64_t shuffle = DeriveSeed(config.train.seed, RandomPurpose::kShuffle);
  Batch batch;
  for (uint64_t step = 0; step < 6; ++step) {
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const auto from = trainer.model().parameters()[i].value.View().Span();
      std::copy(from.begin(), from.end(), model->parameters()[i].value.View().Span().begin());
    }
    data->TrainBatch(shuffle, step, config.train.batch, context, batch);
    const double loss = model->Forward({}, batch).Mean();
    model->Backward({});
    trainer.Step();
    EXPECT_EQ(trainer.last_loss(), loss) << step;
    double square = 0;
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const MatrixSpan<float> plain = model->parameters()[i].gradient.View();
      const std::span<const float> jumped = trainer.model().parameters()[i].gradient.View().Span();
      const double largest = factor(step) * MeasureAbsolute(plain).max;
      for (size_t k = 0; k < jumped.size(); ++k) {
        const double expected = factor(step) * static_cast<double>(plain.Span()[k]);
        ASSERT_NEAR(jumped[k], expected, tolerance * largest)
            << step << ' ' << model->parameters()[i].name << ' ' << k;
        square += expected * expected;
      }
    }
    const double norm = trainer.telemetry().Of("train").Number(step, "gradient_norm");
    EXPECT_NEAR(norm, std::sqrt(square), (tolerance + 1e-6) * norm) << step;
  }
}

TEST(StressOfATraining, GradientsJumpAtTheirStepAndLossesAreReportedAsTheyAre) {
  TrainConfig config = TinyConfig();
  const auto from_step_3 = [](double factor) {
    return [factor](uint64_t step) { return step < 3 ? 1 : factor; };
  };
  config.stress = Jump(3, 64, 1);
  ExpectGradientsTimes(config, from_step_3(64), 0);  // a power of two: no bit is lost
  config.stress = Jump(3, 0.3, 1);
  ExpectGradientsTimes(config, from_step_3(0.3), 1e-4);
  config.stress = Jump(0, 10, 1);
  ExpectGradientsTimes(
      config, [](uint64_t) { return 10; }, 1e-4);
  TrainConfig student = StudentConfig();
  student.stress = Jump(3, 64, 1);
  ExpectGradientsTimes(student, from_step_3(64), 0);
}

TEST(StressOfATraining, GradientsOfPartsAndOfAScaledLossJumpAlike) {
  for (const bool scaled : {false, true}) {
    TrainConfig config = TinyConfig();
    config.train.accumulate = scaled ? 1 : 2;
    if (scaled) config.loss_scaler.kind = LossScaling::kDynamic;
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer plain(config, data);
    config.stress = Jump(2, 8, 1);
    Trainer jumped(config, data);
    StepUntil(plain, 3);
    StepUntil(jumped, 3);
    const Table &before = plain.telemetry().Of("train"), &after = jumped.telemetry().Of("train");
    for (size_t step = 0; step < 3; ++step) {
      EXPECT_EQ(after.Number(step, "loss"), before.Number(step, "loss"));
      EXPECT_EQ(after.Number(step, "loss_scale"), before.Number(step, "loss_scale"));
      EXPECT_EQ(after.Number(step, "gradient_norm"),
                (step < 2 ? 1 : 8) * before.Number(step, "gradient_norm"));
    }
  }
}

// All weights of a trainer, in the order of the model.
std::vector<float> WeightsOf(const Trainer& trainer) {
  std::vector<float> weights;
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const auto values = parameter.value.View().Span();
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

// The largest distance between two weights.
double Apart(const std::vector<float>& x, const std::vector<float>& y) {
  EXPECT_EQ(x.size(), y.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  }
  return largest;
}

TEST(StressOfATraining, AFactorOfAllGradientsIsNothingToAdam) {
  TrainConfig config = StudentConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  const auto trained = [&](double epsilon, const StressConfig& stress) {
    config.optimizer.epsilon = epsilon;
    config.stress = stress;
    Trainer trainer(config, data);
    StepUntil(trainer);
    EXPECT_EQ(trainer.status(), TrainStatus::kFinished);
    return WeightsOf(trainer);
  };
  const std::vector<float> plain = trained(1e-30, {});
  const double moved = Apart(plain, trained(1e30, {}));  // where nothing moves except by decay
  EXPECT_GT(moved, 1e-3);
  for (const double factor : {1e-3, 7.0, 1e3}) {
    EXPECT_LT(Apart(trained(1e-30, Jump(0, factor, 1)), plain), 1e-3 * moved) << factor;
  }
  // Otherwise it counts: with a large epsilon, and if it begins in the middle.
  EXPECT_GT(Apart(trained(1, Jump(0, 1e3, 1)), trained(1, {})), 0.1 * moved);
  EXPECT_GT(Apart(trained(1e-30, Jump(4, 1e3, 1)), plain), 0.1 * moved);
}

// Training sees the features times the factor, after their tails, and validation does not.
TEST(StressOfATraining, ContrastIsThatOfTrainingAlone) {
  for (const double tail : {0.0, 1.5}) {
    TrainConfig config = StudentConfig();
    config.train.steps = 4;
    config.stress = Jump(2, 1, 3);
    config.stress.input_tail = tail;
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer trainer(config, data);
    const auto model = MakeModel<float>(trainer.config().model, config.linear, config.train.seed);
    const uint64_t shuffle = DeriveSeed(config.train.seed, RandomPurpose::kShuffle);
    Batch batch, next;
    for (uint64_t step = 0; step < 4; ++step) {
      for (size_t i = 0; i < model->parameters().size(); ++i) {
        const auto from = trainer.model().parameters()[i].value.View().Span();
        std::copy(from.begin(), from.end(), model->parameters()[i].value.View().Span().begin());
      }
      double valid = 0;
      for (uint64_t i = 0; i < config.train.valid_batches; ++i) {
        data->ValidBatch(i, config.train.batch, 0, batch);
        StretchInputs(tail, batch);
        valid += model->Forward({}, batch).sum;
      }
      EXPECT_EQ(trainer.Validate().sum, valid) << step;
      data->TrainBatch(shuffle, step, config.train.batch, 0, batch);
      StretchInputs(tail, batch);
      if (step >= 2) {
        for (float& x : batch.values) x *= 3;
      }
      trainer.NextBatch(next);
      EXPECT_EQ(next.values, batch.values) << step;
      trainer.Step();
      EXPECT_EQ(trainer.last_loss(), model->Forward({}, batch).Mean()) << step;
    }
  }
}

TEST(StressOfATraining, ContrastIsOfPixelsAndNotOfText) {
  TrainConfig config = TinyConfig();
  config.stress = Jump(1000, 1, 2);  // also of a jump that never comes
  ExpectMessage(ErrorOf([&] { Trainer(config, OpenShared(config.data)); }),
                {"stress.jump_contrast: ", "text"});
  config.stress = Jump(0, 2, 1);
  EXPECT_EQ(ErrorOf([&] { Trainer(config, OpenShared(config.data)); }), "no error");
  config.model.kind = ModelKind::kVit;
  config.data.kind = DataKind::kGeneratedImages;
  config.data.size = 256;
  Batch plain, scaled;
  config.stress = {};
  Trainer(config, OpenShared(config.data)).NextBatch(plain);
  config.stress = Jump(0, 1, 2);
  Trainer(config, OpenShared(config.data)).NextBatch(scaled);
  EXPECT_EQ(scaled.values, Scaled(2, plain.values));
  EXPECT_EQ(scaled.targets, plain.targets);
}

TEST(StressOfATraining, JumpsAreResumedAndPartOfTheConfigurationThatContinues) {
  TrainConfig config = StudentConfig();
  config.stress = Jump(6, 5, 2);
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer whole(config, data);
  StepUntil(whole);
  for (const uint64_t at : {4, 6, 8}) {
    Trainer first(config, data), second(config, data);
    StepUntil(first, at);
    const TrainState state = first.Save();
    second.Restore(state);
    StepUntil(second);
    EXPECT_EQ(TensorBytes(second.Save()), TensorBytes(whole.Save())) << at;
    TrainConfig changed = config;
    changed.stress.jump_loss = 4;
    Trainer other(changed, data);
    ExpectMessage(ErrorOf([&] { other.Restore(state); }), {"stress.jump_loss is now 4 and was 5"});
  }
}

// The tensor-level scaler skips the tensor of the burst alone, and in the steps of the burst.
TEST(StressOfATraining, ABurstIsInItsTensorAndItsSteps) {
  TrainConfig config = TinyConfig();
  config.loss_scaler.kind = LossScaling::kTensor;
  config.loss_scaler.initial = 1;
  config.stress.burst_tensor = "head.weight";
  config.stress.burst_step = 3;
  config.stress.burst_steps = 2;
  Trainer trainer(config, OpenShared(config.data));
  for (uint64_t step = 0; step < 7; ++step) {
    trainer.Step();
    size_t i = 0;
    for (const Parameter<float>& parameter : trainer.model().parameters()) {
      const bool burst = parameter.name == "head.weight" && (step == 3 || step == 4);
      EXPECT_EQ(trainer.last_update().tensors.at(i++).skipped, burst) << parameter.name << step;
    }
  }
  config.stress.burst_tensor = "haed.weight";
  EXPECT_EQ(ErrorOf([&] { Trainer(config, OpenShared(config.data)); }),
            "stress.burst_tensor: there is no parameter 'haed.weight'; did you mean head.weight?");
}

// Returns the weights of a trainer, one after the other.
std::vector<float> WeightsOf(Trainer& trainer) {
  std::vector<float> weights;
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const std::span<const float> values = parameter.value.View().Span();
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

// Returns the numbers of the weights whose bits differ.
std::vector<size_t> Differing(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<size_t> found;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) found.push_back(i);
  }
  return found;
}

// A learning rate of 0 shows the nudge alone: one weight, by one ulp away from zero, at its step.
TEST(StressOfATraining, ANudgeChangesOneWeightByOneUlpBeforeItsStep) {
  TrainConfig config = TinyConfig();
  config.schedule.peak = 0;
  config.optimizer.weight_decay = 0;
  const auto data = OpenShared(config.data);
  Trainer plain(config, data);
  const std::vector<float> before = WeightsOf(plain);
  std::set<size_t> drawn;
  for (uint64_t draw = 1; draw <= 8; ++draw) {
    TrainConfig nudged = config;
    nudged.stress.nudge_draw = draw;
    nudged.stress.nudge_step = 2;
    Trainer trainer(nudged, data);
    StepUntil(trainer, 2);
    EXPECT_TRUE(Differing(before, WeightsOf(trainer)).empty());
    StepUntil(trainer, 3);
    const std::vector<float> after = WeightsOf(trainer);
    const std::vector<size_t> changed = Differing(before, after);
    ASSERT_EQ(changed.size(), 1u);
    const float was = before[changed[0]];
    EXPECT_EQ(after[changed[0]], std::nextafter(was, std::copysign(1e30f, was)));
    drawn.insert(changed[0]);
    StepUntil(trainer, 5);
    EXPECT_EQ(WeightsOf(trainer), after);
  }
  EXPECT_EQ(drawn.size(), 8u);
}

// Every weight has the same chance: over many draws the mean number is that of the middle weight.
TEST(StressOfATraining, DrawsOfANudgeReachAllWeights) {
  TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  const std::vector<float> before = WeightsOf(trainer);
  constexpr int kDraws = 2000;
  double sum = 0;
  std::vector<float> last = before;
  for (int draw = 1; draw <= kDraws; ++draw) {
    StressConfig stress;
    stress.nudge_draw = static_cast<uint64_t>(draw);
    NudgeWeight(stress, config.train.seed, trainer.model().parameters());
    const std::vector<float> after = WeightsOf(trainer);
    const std::vector<size_t> changed = Differing(last, after);
    ASSERT_EQ(changed.size(), 1u);
    sum += static_cast<double>(changed[0]) / static_cast<double>(before.size());
    last = after;
  }
  // A uniform number in [0, 1) has the standard deviation 0.289: this is 5 standard errors.
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.289 / std::sqrt(kDraws));
}

TEST(StressOfATraining, ANudgedTrainingGoesOnBitForBit) {
  TrainConfig config = TinyConfig();
  config.stress.nudge_draw = 3;
  config.stress.nudge_step = 4;
  const auto data = OpenShared(config.data);
  Trainer whole(config, data);
  StepUntil(whole, 8);
  TrainConfig without = config;
  without.stress = {};
  Trainer plain(without, data);
  StepUntil(plain, 8);
  EXPECT_NE(WeightsOf(whole), WeightsOf(plain));
  for (const uint64_t at : {3, 4, 5}) {
    Trainer first(config, data), second(config, data);
    StepUntil(first, at);
    second.Restore(first.Save());
    StepUntil(second, 8);
    EXPECT_EQ(TensorBytes(second.Save()), TensorBytes(whole.Save())) << at;
  }
}

TEST(StressOfATraining, ANudgeThatCannotBeIsRefused) {
  TrainConfig config = TinyConfig();
  config.stress.nudge_draw = 1;
  config.stress.nudge_step = config.train.steps;
  ExpectMessage(ErrorOf([&] { CheckTrainConfig(config); }),
                {"stress.nudge_step: " + std::to_string(config.train.steps) +
                 " is not below the number of steps"});
  config.stress.nudge_step = 0;
  config.optimizer.weights = ParseFormat("bf16");
  ExpectMessage(ErrorOf([&] { CheckTrainConfig(config); }),
                {"stress.nudge_draw: the neighbours of weights are those in fp32"});
}

TEST(CheckStressConfig, RefusesWhatHasNoEffect) {
  const auto error = [](StressConfig stress) {
    return ErrorOf([&] { CheckStressConfig(stress); });
  };
  EXPECT_EQ(error({}), kNoError);
  EXPECT_EQ(error({.jump_step = 3}),
            "stress.jump_step: 3 is set without stress.jump_loss or stress.jump_contrast");
  EXPECT_EQ(error({.jump_step = 3, .jump_contrast = 2}), kNoError);
  EXPECT_EQ(error({.old_batches = 2}), "stress.old_batches: 2 is set without stress.old_steps");
  EXPECT_EQ(error({.old_steps = 3, .old_batches = 2}), kNoError);
  EXPECT_EQ(error({.burst_steps = 2}),
            "stress.burst_tensor: a burst is set without the parameter that it is in");
  EXPECT_EQ(error({.burst_tensor = "a", .burst_step = 4}), kNoError);
  EXPECT_EQ(error({.nudge_step = 4}), "stress.nudge_step: 4 is set without stress.nudge_draw");
}

}  // namespace
}  // namespace numsim
