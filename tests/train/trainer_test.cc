#include "numsim/train/trainer.h"

#include <bit>
#include <cmath>
#include <set>
#include <thread>

#include "numsim/base/parallel.h"
#include "numsim/ops/elementwise.h"
#include "numsim/random/streams.h"
#include "numsim/train/internal/loss_history.h"
#include "numsim/train/internal/run_summary.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

struct Outcome {
  std::map<std::string, std::vector<std::byte>> tensors;
  std::string telemetry;
  double loss = 0;
};

Outcome TrainToTheEnd(const TrainConfig& config) {
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  EXPECT_EQ(trainer.status(), TrainStatus::kFinished) << trainer.reason();
  return {TensorBytes(trainer.Save()), TelemetryText(trainer.telemetry()), trainer.last_loss()};
}

void ExpectEqual(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.tensors, b.tensors);
  EXPECT_EQ(a.telemetry, b.telemetry);
}

TEST(Trainer, LossFallsTowardTheEnd) {
  TrainConfig config = TinyConfig();
  config.train.steps = 60;
  config.schedule.peak = 1e-2;
  Trainer trainer(config, OpenShared(config.data));
  const double first = trainer.Validate().Mean();
  EXPECT_NEAR(first, std::log(256.0), 0.1);
  StepUntil(trainer);
  EXPECT_EQ(trainer.status(), TrainStatus::kFinished);
  EXPECT_EQ(trainer.steps_taken(), 60u);
  EXPECT_EQ(trainer.reason(), "");
  EXPECT_LT(trainer.Validate().Mean(), first - 1);
}

// RMS_t of each tensor.
std::vector<double> RmsOf(const OptimizerStep& update) {
  std::vector<double> rms;
  for (const TensorStep& tensor : update.tensors) rms.push_back(tensor.rms);
  return rms;
}

// The loop written out: batch, forward, backward, step.
void ExpectStepsOfTheParts(const TrainConfig& config) {
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  const uint64_t seed = config.train.seed;
  const auto model = MakeModel<float>(trainer.config().model, config.linear, seed);
  Optimizer optimizer(config.optimizer, config.loss_scaler, model->parameters(), seed);
  Batch batch;
  for (uint64_t step = 0; step < 5; ++step) {
    Pass<float> pass;
    pass.seed = seed;
    pass.step = step;
    pass.loss_scale = optimizer.LossScale();
    data->TrainBatch(DeriveSeed(seed, RandomPurpose::kShuffle), step, 4, 16, batch);
    const double loss = model->Forward(pass, batch).Mean();
    model->Backward(pass);
    const double learning_rate = trainer.config().schedule.At(step);
    const OptimizerStep& update = optimizer.Step(learning_rate, step);
    const double norm = update.gradient_norm;
    trainer.Step();
    EXPECT_EQ(trainer.last_loss(), loss);
    EXPECT_EQ(RmsOf(trainer.last_update()), RmsOf(update));
    EXPECT_EQ(trainer.last_update().learning_rate, learning_rate);
    EXPECT_EQ(trainer.last_update().gradient_norm, norm);
    const Table& table = trainer.telemetry().Of("train");
    EXPECT_EQ(table.Number(step, "loss"), loss);
    EXPECT_EQ(table.Number(step, "lr"), learning_rate);
    EXPECT_EQ(table.Number(step, "gradient_norm"), norm);
  }
  const TrainState state = trainer.Save();
  for (const Parameter<float>& parameter : model->parameters()) {
    const std::span<const std::byte> bytes = std::as_bytes(parameter.value.View().Span());
    EXPECT_EQ(state.FindTensor("model/" + parameter.name)->bytes,
              std::vector<std::byte>(bytes.begin(), bytes.end()))
        << parameter.name;
  }
}

TEST(Trainer, AStepIsWhatItsPartsMakeOfTheBatch) {
  ExpectStepsOfTheParts(TinyConfig());
  TrainConfig config = StatefulConfig();
  config.storage = {};
  ExpectStepsOfTheParts(config);
}

// The same examples in one part and in two: equal except for rounding.
TEST(Trainer, PartsOfABatchMakeTheStepOfTheWhole) {
  TrainConfig config = TinyConfig();
  Trainer whole(config, OpenShared(config.data));
  config.train.accumulate = 2;
  Trainer parts(config, OpenShared(config.data));
  for (size_t step = 0; step < 3; ++step) {
    whole.Step();
    parts.Step();
    EXPECT_NEAR(parts.last_loss(), whole.last_loss(), 1e-5);
    const double norm = whole.telemetry().Of("train").Number(step, "gradient_norm");
    EXPECT_NEAR(parts.telemetry().Of("train").Number(step, "gradient_norm"), norm, 1e-4 * norm);
  }
  EXPECT_EQ(parts.tokens_per_step(), whole.tokens_per_step());
  config.train.accumulate = 3;
  EXPECT_EQ(ErrorOf([&] { CheckTrainConfig(config); }),
            "train.accumulate: 3 does not divide train.batch = 4");
}

// The maxima of the parts of a step, by hand: layers of two models with the same weights.
TEST(Trainer, DelayedScalesRecordEveryPartAndAreUpdatedOncePerStep) {
  TrainConfig config = StatefulConfig();
  config.storage = {};
  config.train.accumulate = 4;
  config.optimizer.weights = ParseFormat("fp32");
  config.optimizer.update = {};
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  // In the first step all scales are 1: those of the parts before do not matter, and each part of its
  // own records its maxima in a fresh model.
  std::map<std::string, std::vector<float>> largest;  // by layer: those of X, W and G
  const size_t history = config.linear.all.delayed->history;
  for (uint64_t part = 0; part < 4; ++part) {
    const auto model = MakeModel<float>(trainer.config().model, config.linear, config.train.seed);
    Batch batch;
    Pass<float> pass;
    pass.seed = config.train.seed;
    pass.step = part;
    pass.loss_scale = trainer.optimizer().LossScale() / 4;
    pass.updates_scales = false;
    data->TrainBatch(DeriveSeed(config.train.seed, RandomPurpose::kShuffle), part, 1, 16, batch);
    model->Forward(pass, batch);
    model->Backward(pass);
    for (const NamedState& state : model->SaveState()) {
      std::vector<float>& found = largest[state.name];
      found.resize(3);
      for (size_t tensor = 0; tensor < 3; ++tensor) {
        const size_t at = tensor * (1 + history);
        EXPECT_EQ(state.values[at], 1) << "a scale was updated";
        found[tensor] = std::max(found[tensor], state.values[at + 1]);
      }
    }
  }
  trainer.Step();
  for (const NamedState& state : trainer.model().SaveState()) {
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      const size_t at = tensor * (1 + history);
      const float* const history_of = &state.values[at + 1];
      EXPECT_EQ(history_of[0], 0) << "a maximum is left over";
      EXPECT_EQ(history_of[history - 1], largest.at(state.name)[tensor]) << state.name;
      EXPECT_EQ(std::count(history_of, history_of + history, 0.0f),
                static_cast<std::ptrdiff_t>(history - 1))
          << "one maximum per step";
      EXPECT_NE(state.values[at], 1);
    }
  }
}

TEST(Trainer, LastUpdateIsThatOfTheLastStepThatWasAskedFor) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  EXPECT_TRUE(trainer.last_update().tensors.empty());
  StepUntil(trainer, 2);
  EXPECT_EQ(trainer.last_update().tensors.size(), trainer.model().parameters().size());
  const std::vector<double> second = RmsOf(trainer.last_update());
  trainer.Validate();
  EXPECT_EQ(RmsOf(trainer.last_update()), second);
  // No update is asked for where the loss is not finite.
  for (Parameter<float>& parameter : trainer.model().parameters()) {
    parameter.value.View().data[0] = std::nanf("");
  }
  EXPECT_EQ(trainer.Step(), TrainStatus::kDiverged);
  EXPECT_EQ(trainer.last_update().learning_rate, trainer.config().schedule.At(1));
  EXPECT_EQ(RmsOf(trainer.last_update()), second);
}

TEST(Trainer, StepAfterTheEndThrows) {
  TrainConfig config = TinyConfig();
  config.train.steps = 1;
  Trainer trainer(config, OpenShared(config.data));
  EXPECT_EQ(trainer.Step(), TrainStatus::kFinished);
  EXPECT_EQ(ErrorOf([&] { trainer.Step(); }),
            "Trainer::Step: the training is finished, expected running");
}

TEST(Trainer, ThreadsDoNotChangeABit) {
  const int threads = ThreadCount();
  TrainConfig attention = TinyConfig();
  attention.model.attention = {.format = "e4m3fn",
                               .gradient_format = "e5m2",
                               .accumulate = "hopper-fp8-fast",
                               .p_scale = 0x1p-8};
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig(), attention}) {
    SetThreadCount(1);
    const Outcome one = TrainToTheEnd(config);
    SetThreadCount(2);
    const Outcome two = TrainToTheEnd(config);
    SetThreadCount(5);
    const Outcome five = TrainToTheEnd(config);
    ExpectEqual(one, two);
    ExpectEqual(one, five);
  }
  SetThreadCount(threads);
}

TEST(Trainer, SideBySideInThreadsTheyAreAsAlone) {
  const TrainConfig configs[] = {TinyConfig(), StatefulConfig()};
  const Outcome alone[] = {TrainToTheEnd(configs[0]), TrainToTheEnd(configs[1])};
  Outcome together[2];
  std::thread first([&] { together[0] = TrainToTheEnd(configs[0]); });
  std::thread second([&] { together[1] = TrainToTheEnd(configs[1]); });
  first.join();
  second.join();
  ExpectEqual(together[0], alone[0]);
  ExpectEqual(together[1], alone[1]);
}

TEST(Trainer, SeedsDiffer) {
  TrainConfig config = TinyConfig();
  const Outcome one = TrainToTheEnd(config);
  config.train.seed = 8;
  EXPECT_NE(TrainToTheEnd(config).telemetry, one.telemetry);
}

TEST(Trainer, RestoredAnywhereItContinuesBitForBit) {
  const TrainConfig config = StatefulConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer whole(config, data);
  for (uint64_t at = 0; at <= config.train.steps; ++at) {
    if (at > 0) whole.Step();
    const TrainState state = whole.Save();
    Trainer restored(config, data);
    if (at % 2 == 0 && at < config.train.steps) restored.Step();  // which Restore undoes
    restored.Restore(state);
    EXPECT_EQ(restored.status(), whole.status());
    EXPECT_EQ(restored.steps_taken(), at);
    EXPECT_EQ(TensorBytes(restored.Save()), TensorBytes(state));
    EXPECT_EQ(restored.Save().fields, state.fields);
    if (at + 1 > config.train.steps) continue;
    // One more step of each, from the same state.
    Trainer other(config, data);
    other.Restore(state);
    restored.Step();
    other.Step();
    EXPECT_EQ(TensorBytes(restored.Save()), TensorBytes(other.Save()));
  }
}

TEST(Trainer, ResumedInTheMiddleItEqualsTheUninterrupted) {
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig()}) {
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    const Outcome whole = TrainToTheEnd(config);
    for (const uint64_t at : {1, 4, 7}) {
      Trainer first(config, data);
      StepUntil(first, at);
      Trainer second(config, data);
      second.Restore(first.Save());
      StepUntil(second);
      EXPECT_EQ(TensorBytes(second.Save()), whole.tensors) << at;
      EXPECT_EQ(second.last_loss(), whole.loss) << at;
    }
  }
}

TEST(Trainer, ValidationLeavesNoTrace) {
  TrainConfig config = StatefulConfig();
  config.train.valid_every = 0;
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer quiet(config, data), curious(config, data);
  for (int i = 0; i < 6; ++i) {
    const LossSum first = curious.Validate(), second = curious.Validate();
    EXPECT_EQ(first.sum, second.sum);
    EXPECT_EQ(first.counted, 2u * 4 * 16);
    quiet.Step();
    curious.Step();
  }
  EXPECT_EQ(TensorBytes(quiet.Save()), TensorBytes(curious.Save()));
  EXPECT_TRUE(quiet.telemetry().Of("valid").rows.empty());
}

std::vector<std::string> Steps(Trainer& trainer, std::string_view table) {
  std::vector<std::string> steps;
  const Table& rows = trainer.telemetry().Of(table);
  for (size_t row = 0; row < rows.rows.size(); ++row) {
    const std::string step = rows.Text(row, "step");
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }
  return steps;
}

TEST(Trainer, TelemetryComesAtItsIntervals) {
  TrainConfig config = StatefulConfig();
  config.telemetry.every = 3;
  config.telemetry.tensors_every = 5;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Steps(trainer, "train"), (Texts{"0", "3", "6", "9", "11"}));
  EXPECT_EQ(Steps(trainer, "valid"), (Texts{"0", "4", "8", "12"}));
  for (const char* const table : {"tensors", "quantised", "optimizer"}) {
    EXPECT_EQ(Steps(trainer, table), (Texts{"0", "5", "10"})) << table;
  }
  EXPECT_EQ(trainer.telemetry().Of("train").Number(1, "tokens"), 4.0 * 4 * 16);
  EXPECT_EQ(trainer.telemetry().Of("optimizer").rows.size(),
            3 * trainer.model().parameters().size());
}

TEST(Trainer, WithoutIntervalsThereIsTheEndAlone) {
  TrainConfig config = StatefulConfig();
  config.telemetry.every = 100;
  config.telemetry.tensors_every = 0;
  config.train.valid_every = 0;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Steps(trainer, "train"), (Texts{"0", "11"}));
  EXPECT_EQ(Steps(trainer, "valid"), Texts{"12"});
  EXPECT_TRUE(trainer.telemetry().Of("tensors").rows.empty());
  ASSERT_TRUE(trainer.last_validation().has_value());
  EXPECT_EQ(FormatCell(trainer.last_validation()->Mean()),
            trainer.telemetry().Of("valid").Text(0, "loss"));
}

// Standard deviations by which the last loss exceeds the mean of the others, of which the last 128
// count: two passes in long double. NaN for fewer than 16 others.
double DeviationOfLast(std::vector<double> losses) {
  if (losses.size() < 17) return std::nan("");
  const double last = losses.back();
  losses.pop_back();
  losses.erase(losses.begin(), losses.end() - std::min<long>(losses.size(), 128));
  const auto n = static_cast<long double>(losses.size());
  long double sum = 0, squares = 0;
  for (const double loss : losses) sum += loss;
  for (const double loss : losses) squares += (loss - sum / n) * (loss - sum / n);
  return static_cast<double>((last - sum / n) / std::sqrt(squares / n));
}

// Expects equal numbers, or NaN twice.
void ExpectDeviation(double deviation, double expected, size_t number) {
  EXPECT_EQ(std::isnan(deviation), std::isnan(expected)) << number;
  if (std::isnan(expected)) return;
  EXPECT_NEAR(deviation, expected, 1e-9 * (1 + std::abs(expected))) << number;
}

TEST(Trainer, TrainCsvHasTheLargestRmsAndItsTensor) {
  TrainConfig config = TinyConfig();
  config.telemetry.tensors_every = 1;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  const Table& train = trainer.telemetry().Of("train");
  const Table& tensors = trainer.telemetry().Of("optimizer");
  ASSERT_EQ(train.rows.size(), 12u);
  std::set<std::string> named;
  for (size_t step = 0; step < 12; ++step) {
    double largest = 0;
    std::string name;
    for (size_t row = 0; row < tensors.rows.size(); ++row) {
      if (tensors.Text(row, "step") != train.Text(step, "step")) continue;
      if (tensors.Number(row, "rms") <= largest) continue;
      largest = tensors.Number(row, "rms");
      name = tensors.Text(row, "tensor");
    }
    EXPECT_GT(largest, 0);
    EXPECT_EQ(train.Number(step, "rms"), largest);
    EXPECT_EQ(train.Text(step, "rms_tensor"), name);
    named.insert(name);
  }
  EXPECT_GT(named.size(), 1u);  // or this test would be one of a constant
}

TEST(Trainer, LossDeviationIsThatFromTheLossesBefore) {
  TrainConfig config = TinyConfig();
  config.train.steps = 30;
  config.train.valid_every = 0;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  const Table& train = trainer.telemetry().Of("train");
  std::vector<double> losses;
  for (size_t step = 0; step < 30; ++step) {
    losses.push_back(train.Number(step, "loss"));
    ExpectDeviation(train.Number(step, "loss_deviation"), DeviationOfLast(losses), step);
  }
  EXPECT_EQ(train.Text(15, "loss_deviation"), "nan");
  EXPECT_NE(train.Text(16, "loss_deviation"), "nan");
  // Steps without a row count too.
  config.telemetry.every = 3;
  Trainer seldom(config, OpenShared(config.data));
  StepUntil(seldom);
  const Table& rows = seldom.telemetry().Of("train");
  ASSERT_EQ(rows.rows.size(), 11u);
  for (size_t row = 0; row < rows.rows.size(); ++row) {
    const auto step = static_cast<size_t>(rows.Number(row, "step"));
    for (const char* const column : {"rms", "rms_tensor", "loss_deviation"}) {
      EXPECT_EQ(rows.Text(row, column), train.Text(step, column)) << column << ' ' << step;
    }
  }
}

// Rows of a role at a step, by point.
std::map<std::string, double> RootMeanSquares(const Table& table,
                                              std::string_view step,
                                              std::string_view role) {
  std::map<std::string, double> found;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.Text(row, "step") != step || table.Text(row, "role") != role) continue;
    EXPECT_TRUE(found.emplace(table.Text(row, "point"), table.Number(row, "rms")).second);
  }
  return found;
}

// Before clipping, and with the loss scale that optimizer.csv takes away.
TEST(Trainer, WeightsAndTheirGradientsAreThoseOfTheBackwardPass) {
  TrainConfig config = TinyConfig();
  config.optimizer.clip_norm = 0.01;
  config.loss_scaler.kind = LossScaling::kDynamic;
  config.loss_scaler.initial = 1024;
  Trainer trainer(config, OpenShared(config.data));
  std::map<std::string, double> first_weights;
  for (Parameter<float>& parameter : trainer.model().parameters()) {
    const AbsoluteStatistics measured = MeasureAbsolute(parameter.value.View());
    const auto elements = static_cast<double>(parameter.Elements());
    first_weights[parameter.name] = std::sqrt(measured.square_sum / elements);
  }
  StepUntil(trainer);
  const Table& tensors = trainer.telemetry().Of("tensors");
  EXPECT_EQ(RootMeanSquares(tensors, "0", "weight"), first_weights);  // before the step
  const Table& steps = trainer.telemetry().Of("optimizer");
  for (const char* const step : {"0", "5", "10"}) {
    const auto gradients = RootMeanSquares(tensors, step, "weight-gradient");
    const auto weights = RootMeanSquares(tensors, step, "weight");
    EXPECT_EQ(gradients.size(), trainer.model().parameters().size());
    EXPECT_EQ(weights.size(), gradients.size());
    for (size_t row = 0; row < steps.rows.size(); ++row) {
      if (steps.Text(row, "step") != step) continue;
      const std::string name = steps.Text(row, "tensor");
      const auto elements =
          static_cast<double>(trainer.model().parameters().Find(name)->Elements());
      const double norm = 1024 * steps.Number(row, "gradient_norm");
      EXPECT_NEAR(gradients.at(name) * std::sqrt(elements), norm, 1e-9 * norm) << name;
      EXPECT_GT(norm, 0) << name;
    }
  }
}

TEST(Trainer, MeasuringChangesNothing) {
  TrainConfig config = StatefulConfig();
  const Outcome seldom = TrainToTheEnd(config);
  config.telemetry.tensors_every = 1;
  EXPECT_EQ(TrainToTheEnd(config).tensors, seldom.tensors);
}

// Whether every element of a column can have come from values of bf16: the largest magnitudes.
bool AllBf16(const Table& table, std::string_view role) {
  bool any = false;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.Text(row, "role") != role) continue;
    any = true;
    const auto max = static_cast<float>(table.Number(row, "max_abs"));
    if ((std::bit_cast<uint32_t>(max) & 0xFFFFu) != 0) return false;
  }
  EXPECT_TRUE(any);
  return any;
}

TEST(Trainer, TensorsAreStoredInTheirFormats) {
  TrainConfig config = TinyConfig();
  config.storage.activations = ParseFormat("bf16");
  Trainer activations(config, OpenShared(config.data));
  StepUntil(activations);
  EXPECT_TRUE(AllBf16(activations.telemetry().Of("tensors"), "activation"));
  EXPECT_FALSE(AllBf16(activations.telemetry().Of("tensors"), "gradient"));
  config.storage.gradients = ParseFormat("bf16");
  Trainer both(config, OpenShared(config.data));
  StepUntil(both);
  EXPECT_TRUE(AllBf16(both.telemetry().Of("tensors"), "gradient"));
  EXPECT_FALSE(AllBf16(both.telemetry().Of("tensors"), "weight"));
  // Rounding is not a matter of measuring: it happens in every step.
  EXPECT_NE(TensorBytes(both.Save()), TensorBytes(activations.Save()));
  config.telemetry.tensors_every = 0;
  EXPECT_EQ(TrainToTheEnd(config).tensors, TensorBytes(both.Save()));
}

TEST(Trainer, ValidationStoresActivationsToo) {
  TrainConfig config = TinyConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  const double plain = Trainer(config, data).Validate().sum;
  config.storage.gradients = ParseFormat("e5m2");
  EXPECT_EQ(Trainer(config, data).Validate().sum, plain);
  config.storage.activations = ParseFormat("e5m2");
  EXPECT_NE(Trainer(config, data).Validate().sum, plain);
}

TEST(Trainer, QuantisedOperandsAreListed) {
  const TrainConfig config = StatefulConfig();
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const Table& table = trainer.telemetry().Of("quantised");
  std::map<std::string, std::string> formats;  // of the operands of one layer
  for (size_t row = 0; row < table.rows.size(); ++row) {
    if (table.Text(row, "layer") != "head") continue;
    formats[table.Text(row, "operand")] = table.Text(row, "format");
  }
  EXPECT_EQ(formats,
            (std::map<std::string, std::string>{
                {"forward W", "e4m3fn"}, {"forward X", "e4m3fn"}, {"input gradient G", "e5m2"}}));
}

TEST(Trainer, ALearningRateThatIsTooLargeDivergesAsAResult) {
  TrainConfig config = TinyConfig();
  config.train.steps = 200;
  config.schedule.peak = 100;
  config.train.diverged_above = 1.5;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  EXPECT_EQ(trainer.status(), TrainStatus::kDiverged);
  ExpectMessage(trainer.reason(),
                {fmt::format("step {}: ", trainer.steps_taken() - 1), "above 1.5 times the first"});
  EXPECT_GE(trainer.steps_taken(), LossHistory::kRecent);
  EXPECT_LT(trainer.steps_taken(), 200u);
  EXPECT_EQ(Steps(trainer, "train").back(), FormatCell(trainer.steps_taken() - 1));
  EXPECT_EQ(Steps(trainer, "valid").back(), FormatCell(trainer.steps_taken()));
  // It stays so.
  Trainer restored(config, OpenShared(config.data));
  restored.Restore(trainer.Save());
  EXPECT_EQ(restored.status(), TrainStatus::kDiverged);
  EXPECT_EQ(restored.reason(), trainer.reason());
}

// A trainer whose weights of the head hold `value` in one place.
void Plant(Trainer& trainer, float value) {
  trainer.model().parameters().Find("head.weight")->value.View().data[3] = value;
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheTraining) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  Plant(trainer, std::nanf(""));
  EXPECT_EQ(trainer.Step(), TrainStatus::kDiverged);
  EXPECT_EQ(trainer.reason(), "step 2: the loss is not finite");
  EXPECT_EQ(trainer.steps_taken(), 2u);
  EXPECT_TRUE(std::isnan(trainer.last_loss()));
  const Table& table = trainer.telemetry().Of("train");
  EXPECT_EQ(table.Text(2, "loss"), "nan");
  EXPECT_EQ(table.Text(2, "gradient_norm"), "nan");
  EXPECT_EQ(table.Number(2, "skipped"), static_cast<double>(trainer.model().parameters().size()));
  EXPECT_EQ(table.Text(2, "rms"), "nan");
  EXPECT_EQ(table.Text(2, "rms_tensor"), "");
  EXPECT_TRUE(std::isnan(trainer.last_validation()->Mean()));
}

// The backward pass after such a loss runs, and leaves nothing but maxima for delayed scales: the
// weights and moments of the checkpoint are those before the step, and no table has its gradients.
TEST(Trainer, GradientsOfALossThatIsNotFiniteAreNotUsed) {
  for (const size_t parts : {1, 2}) {
    TrainConfig config = StatefulConfig();
    config.train.accumulate = parts;
    config.telemetry.tensors_every = 1;
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, 3);
    Plant(trainer, std::nanf(""));
    const auto before = TensorBytes(trainer.Save());
    EXPECT_EQ(trainer.Step(), TrainStatus::kDiverged);
    size_t scales = 0;
    for (const auto& [name, bytes] : TensorBytes(trainer.Save())) {
      const bool same = bytes == before.at(name);
      if (name.starts_with("scaling/")) scales += !same;
      EXPECT_TRUE(same || name.starts_with("scaling/")) << name;
    }
    EXPECT_GT(scales, 0u);
    const std::span<const float> gradient =
        trainer.model().parameters().Find("head.weight")->gradient.View().Span();
    EXPECT_TRUE(
        std::any_of(gradient.begin(), gradient.end(), [](float x) { return std::isnan(x); }));
    const Table& tensors = trainer.telemetry().Of("tensors");
    for (size_t row = 0; row < tensors.rows.size(); ++row) {
      EXPECT_TRUE(tensors.Text(row, "step") != "3" || tensors.Text(row, "role") == "activation");
    }
    EXPECT_EQ(Steps(trainer, "optimizer").back(), "2");
  }
}

TEST(Trainer, ALossThatIsNotFiniteDeviatesInfinitely) {
  TrainConfig config = TinyConfig();
  config.train.steps = 30;
  for (const uint64_t before : {15, 16}) {
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, before);
    Plant(trainer, std::nanf(""));
    trainer.Step();
    EXPECT_EQ(trainer.telemetry().Of("train").Text(before, "loss_deviation"),
              before < 16 ? "nan" : "inf");
  }
}

TEST(Trainer, NoStepIsValidatedTwice) {
  TrainConfig config = TinyConfig();
  config.train.valid_every = 1;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 2);
  Plant(trainer, std::nanf(""));
  trainer.Step();  // which is not taken
  EXPECT_EQ(trainer.telemetry().Of("valid").rows.size(), 3u);
}

// Gradients that overflow e4m3fn become NaN there, while the loss stays finite.
TrainConfig OverflowingConfig() {
  TrainConfig config = TinyConfig();
  config.storage.gradients = ParseFormat("e4m3fn");
  config.loss_scaler.kind = LossScaling::kTensor;
  config.loss_scaler.initial = 1e8;
  return config;
}

TEST(Trainer, GradientsThatAreNotFiniteEndATrainingWithoutAScaler) {
  TrainConfig config = OverflowingConfig();
  Trainer scaled(config, OpenShared(config.data));
  EXPECT_EQ(scaled.Step(), TrainStatus::kRunning);
  EXPECT_GT(scaled.telemetry().Of("train").Number(0, "skipped"), 0);
  EXPECT_EQ(scaled.telemetry().Of("optimizer").Text(0, "skipped"), "1");

  config.loss_scaler = {};
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  Plant(trainer, 1e37f);  // logits stay finite, the gradient of what stands before does not
  EXPECT_EQ(trainer.Step(), TrainStatus::kDiverged);
  EXPECT_EQ(trainer.reason(), "step 1: gradients are not finite");
  EXPECT_EQ(trainer.steps_taken(), 1u);
  const Table& train = trainer.telemetry().Of("train");
  EXPECT_EQ(train.Text(train.rows.size() - 1, "rms"), "nan");  // no tensor was updated
  EXPECT_EQ(train.Text(train.rows.size() - 1, "rms_tensor"), "");
}

// Without a second moment there is no RMS_t, which 0 would hide.
TEST(Trainer, AnOptimizerWithoutRmsReportsNone) {
  TrainConfig config = TinyConfig();
  config.optimizer.kind = OptimizerKind::kLion;
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  EXPECT_EQ(trainer.telemetry().Of("train").Text(0, "rms"), "nan");
  EXPECT_EQ(trainer.telemetry().Of("train").Text(0, "rms_tensor"), "");
}

// With this scale the gradient of the logits fits e4m3fn, and that of the embedding does not.
TEST(Trainer, TheLargestRmsIsThatOfATensorThatWasUpdated) {
  TrainConfig config = OverflowingConfig();
  config.loss_scaler.initial = 20000;
  config.telemetry.tensors_every = 1;
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer, 3);
  const Table& train = trainer.telemetry().Of("train");
  const Table& tensors = trainer.telemetry().Of("optimizer");
  for (size_t step = 0; step < 3; ++step) {
    EXPECT_GT(train.Number(step, "skipped"), 0);
    bool found = false;
    for (size_t row = 0; row < tensors.rows.size(); ++row) {
      if (tensors.Text(row, "step") != train.Text(step, "step")) continue;
      if (tensors.Text(row, "skipped") == "1") continue;
      EXPECT_LE(tensors.Number(row, "rms"), train.Number(step, "rms"));
      if (tensors.Text(row, "tensor") != train.Text(step, "rms_tensor")) continue;
      EXPECT_EQ(tensors.Number(row, "rms"), train.Number(step, "rms"));
      found = true;
    }
    EXPECT_TRUE(found) << step;
  }
}

TEST(Trainer, TheDynamicScalerSkipsStepsAndGoesOn) {
  TrainConfig config = OverflowingConfig();
  config.loss_scaler.kind = LossScaling::kDynamic;
  Trainer trainer(config, OpenShared(config.data));
  const auto before = TensorBytes(trainer.Save());
  EXPECT_EQ(trainer.Step(), TrainStatus::kRunning);
  const auto after = TensorBytes(trainer.Save());
  for (const auto& [name, bytes] : before) {
    if (!name.starts_with("model/")) continue;
    EXPECT_EQ(after.at(name), bytes) << name;
  }
  EXPECT_EQ(trainer.telemetry().Of("train").Text(0, "rms"), "nan");
  EXPECT_EQ(trainer.telemetry().Of("train").Text(0, "rms_tensor"), "");
  EXPECT_TRUE(trainer.last_update().skipped);
  EXPECT_EQ(trainer.telemetry().Of("train").Number(0, "loss_scale"), 1e8);
  EXPECT_EQ(trainer.telemetry().Of("train").Number(0, "skipped"),
            static_cast<double>(trainer.model().parameters().size()));
  trainer.Step();
  EXPECT_EQ(trainer.telemetry().Of("train").Number(1, "loss_scale"), 5e7);
}

TEST(Trainer, OtherStatesAreRefused) {
  const TrainConfig config = TinyConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  StepUntil(trainer, 2);
  const TrainState good = trainer.Save();
  const auto error = [&](const TrainConfig& other, const TrainState& state) {
    Trainer restored(other, data);
    return ErrorOf([&] { restored.Restore(state); });
  };
  EXPECT_EQ(error(config, good), "no error");

  TrainConfig other = config;
  other.optimizer.beta2 = 0.5;
  ExpectMessage(error(other, good), {"optimizer.beta2 is now 0.5 and was 0.95"});
  other = config;
  other.train.steps = 11;
  ExpectMessage(error(other, good), {"train.steps is 11 and was 12"});
  other.train.steps = 13;
  other.checkpoint.every = 2;
  EXPECT_EQ(error(other, good), "no error");
  other = config;
  other.linear.overrides.push_back({"head", {}});
  ExpectMessage(error(other, good), {"linear.override.0.", "and was not set"});
  const TrainState with_override = Trainer(other, data).Save();
  EXPECT_EQ(error(other, with_override), "no error");
  ExpectMessage(error(config, with_override),
                {"linear.override.0.layers is now not set and was", "head"});

  TrainState broken = good;
  std::erase_if(broken.tensors, [](const auto& t) { return t.first == "model/head.weight"; });
  ExpectMessage(error(config, broken), {"'model/head.weight' is missing"});
  broken = good;
  broken.tensors.emplace_back("model/more", Array{ElementType::kF32, {0}, {}});
  ExpectMessage(error(config, broken), {"'model/more'", "no such parameter"});
  broken = good;
  for (auto& [name, array] : broken.tensors) {
    if (name == "model/head.weight") std::swap(array.shape[0], array.shape[1]);
  }
  ExpectMessage(error(config, broken), {"'model/head.weight'", "(16, 256)", "(256, 16)"});
  broken = good;
  std::erase_if(broken.tensors, [](const auto& t) { return t.first.starts_with("optimizer/"); });
  EXPECT_NE(error(config, broken), "no error");
  for (const char* const field : {"step", "status", "losses", "config", "validation", "data"}) {
    broken = good;
    std::erase_if(broken.fields, [&](const auto& f) { return f.first == field; });
    ExpectMessage(error(config, broken), {fmt::format("'{}' is missing", field)});
  }
}

TEST(Trainer, MoreStepsContinueWhatHadFinished) {
  TrainConfig config = TinyConfig();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  StepUntil(trainer);
  config.train.steps = 14;
  Trainer longer(config, data);
  longer.Restore(trainer.Save());
  EXPECT_EQ(longer.status(), TrainStatus::kRunning);
  StepUntil(longer);
  EXPECT_EQ(longer.steps_taken(), 14u);
  // Step 12 was validated by the other one.
  EXPECT_EQ(Steps(longer, "valid"), std::vector<std::string>{"14"});
  TrainConfig shorter = config;
  shorter.train.steps = 14;
  shorter.train.valid_every = 7;
  Trainer twice(shorter, data);
  StepUntil(twice);
  EXPECT_EQ(twice.telemetry().Of("valid").rows.size(), 3u);  // the last one once
}

TEST(Trainer, TimesItsSteps) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  EXPECT_EQ(trainer.steps_timed(), 0u);
  EXPECT_EQ(trainer.step_seconds(), 0);
  EXPECT_EQ(trainer.fastest_step_seconds(), 0);
  StepUntil(trainer);
  EXPECT_EQ(trainer.steps_timed(), 12u);
  EXPECT_EQ(trainer.tokens_per_step(), 64u);
  EXPECT_GT(trainer.profile()[StepPhase::kProduct], 0);
  EXPECT_GT(trainer.profile()[StepPhase::kOptimiser], 0);
  EXPECT_GT(trainer.profile()[StepPhase::kData], 0);
  EXPECT_GT(trainer.profile()[StepPhase::kTelemetry], 0);
  EXPECT_LE(trainer.profile().Sum(), trainer.step_seconds());
  const TrainSpeed speed = MeasureSpeed(trainer, /*rates=*/false);
  EXPECT_EQ(speed.steps, 12u);
  EXPECT_EQ(speed.seconds, trainer.step_seconds());
  EXPECT_EQ(speed.fastest, trainer.fastest_step_seconds());
  EXPECT_DOUBLE_EQ(speed.tokens_per_second, 12 * 64 / speed.seconds);
  const double products = speed.profile[StepPhase::kProduct];
  EXPECT_DOUBLE_EQ(speed.Share(StepPhase::kProduct), products / speed.seconds);
  // One forward and two backward GEMMs of each layer.
  EXPECT_DOUBLE_EQ(speed.layer_gflops,
                   3 * 12 * trainer.model().ForwardFlops(config.train.batch) / products / 1e9);
  EXPECT_EQ(speed.float32_gflops, 0);
  EXPECT_GT(MeasureSpeed(trainer, /*rates=*/true).float32_gflops, 0);
  EXPECT_GT(trainer.fastest_step_seconds(), 0);
  EXPECT_LE(12 * trainer.fastest_step_seconds(), trainer.step_seconds());
  // A state has no times: those of the steps before it belong to another process.
  Trainer restored(config, OpenShared(config.data));
  restored.Step();
  restored.Restore(trainer.Save());
  EXPECT_EQ(restored.steps_timed(), 0u);
  EXPECT_EQ(restored.step_seconds(), 0);
  EXPECT_EQ(restored.fastest_step_seconds(), 0);
  EXPECT_EQ(restored.profile().Sum(), 0);
}

// Counts what it sees, and can change a tensor.
struct Guest final : PassObserver<float> {
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    ++(role == TensorRole::kActivation ? activations : gradients);
    if (role == TensorRole::kActivation && point == "embedding") values.Row(0)[0] += added;
  }
  void Input(std::string_view, MatrixSpan<const float>) override { ++inputs; }
  void Quantized(std::string_view, LinearOperand, In<float>, const QuantizedMatrix&) override {
    ++quantized;
  }
  void Multiplied(std::string_view, LinearGemm) override { ++products; }

  float added = 0;
  size_t activations = 0, gradients = 0, inputs = 0, quantized = 0, products = 0;
};

TEST(Trainer, AnObserverSeesTrainingPassesAndChangesNothingByItself) {
  TrainConfig config = TinyConfig();
  config.linear.all.kind = "te-hybrid";
  const Outcome expected = TrainToTheEnd(config);
  Trainer trainer(config, OpenShared(config.data));
  Guest guest;
  trainer.Observe(&guest);
  const size_t layers = trainer.model().LinearLayers().size();
  trainer.Step();
  EXPECT_EQ(guest.inputs, layers);
  EXPECT_EQ(guest.products, 3 * layers);
  EXPECT_EQ(guest.quantized, 3 * layers);  // X, W and G, each once
  EXPECT_GT(guest.activations, layers);
  EXPECT_GT(guest.gradients, layers);
  trainer.Validate();
  EXPECT_EQ(guest.inputs, layers);
  trainer.Observe(nullptr);
  StepUntil(trainer);
  EXPECT_EQ(guest.inputs, layers);
  EXPECT_EQ(TensorBytes(trainer.Save()), expected.tensors);
}

TEST(Trainer, AnObserverMayChangeTensors) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data)), plain(config, OpenShared(config.data));
  Guest guest;
  guest.added = 5;
  trainer.Observe(&guest);
  trainer.Step();
  plain.Step();
  EXPECT_NE(trainer.last_loss(), plain.last_loss());
}

TEST(LossHistory, JudgesTheMeanOfTenAgainstTheFirst) {
  LossHistory losses;
  EXPECT_TRUE(std::isnan(losses.Recent()));
  EXPECT_TRUE(losses.Save().empty());
  losses.Add(2);
  for (int i = 0; i < 8; ++i) losses.Add(100);
  EXPECT_FALSE(losses.Diverged(3));  // nine of them
  losses.Add(100);
  EXPECT_TRUE(losses.Diverged(3));
  EXPECT_FALSE(losses.Diverged(0));
  EXPECT_DOUBLE_EQ(losses.Recent(), 90.2);
  losses.Add(98);  // the first one leaves the mean and stays the measure
  EXPECT_DOUBLE_EQ(losses.Recent(), 99.8);
  EXPECT_FALSE(losses.Diverged(49.9));
  EXPECT_TRUE(losses.Diverged(49.8));

  LossHistory restored;
  restored.Restore(losses.Save());
  EXPECT_EQ(restored.First(), 2);
  EXPECT_EQ(restored.Last(), 98);
  EXPECT_EQ(restored.Recent(), losses.Recent());
  ExpectMessage(ErrorOf([&] { restored.Restore({1.0}); }), {"1 losses"});
  ExpectMessage(ErrorOf([&] { restored.Restore(std::vector<double>(131)); }),
                {"131 losses", "2 to 130"});
  EXPECT_EQ(restored.Last(), 98);  // an error restores nothing
  for (const size_t valid : {0, 2, 11, 130}) {
    EXPECT_EQ(ErrorOf([&] { restored.Restore(std::vector<double>(valid)); }), kNoError) << valid;
    EXPECT_EQ(restored.Save().size(), valid);
  }
}

// Losses about 2, of which no two are equal.
std::vector<double> MadeUpLosses(size_t n) {
  std::vector<double> losses;
  for (size_t i = 0; i < n; ++i) losses.push_back(2 + std::sin(1.7 * static_cast<double>(i)));
  return losses;
}

TEST(LossHistory, DeviationIsFromTheMeanOfUpTo128LossesBefore) {
  LossHistory losses;
  EXPECT_TRUE(std::isnan(losses.Deviation()));
  std::vector<double> added;
  for (double loss : MadeUpLosses(300)) {
    // Far from the others, so that it is seen when it leaves the window.
    if (added.size() == 40) loss = 50;
    added.push_back(loss);
    losses.Add(loss);
    ExpectDeviation(losses.Deviation(), DeviationOfLast(added), added.size());
  }
  EXPECT_EQ(losses.First(), 2);
  EXPECT_EQ(losses.Save().size(), 130u);
}

TEST(LossHistory, DeviationOfEqualLossesIsZeroAndOfAnyOtherInfinite) {
  for (const double next : {0.1, 0.3, -7.0}) {
    LossHistory losses;
    for (int i = 0; i < 20; ++i) losses.Add(0.1);
    EXPECT_EQ(losses.Deviation(), 0);
    losses.Add(next);
    EXPECT_EQ(losses.Deviation(), next == 0.1 ? 0 : next > 0.1 ? HUGE_VAL : -HUGE_VAL) << next;
  }
}

TEST(LossHistory, DeviationLeavesOutLossesThatAreNotFinite) {
  LossHistory losses, finite;
  for (const double loss : MadeUpLosses(16)) {
    losses.Add(loss);
    finite.Add(loss);
    losses.Add(std::nan(""));
  }
  EXPECT_EQ(losses.Deviation(), HUGE_VAL);  // the NaN after 16 finite ones
  losses.Add(5);
  finite.Add(5);
  EXPECT_EQ(losses.Deviation(), finite.Deviation());
  losses.Add(HUGE_VAL);
  EXPECT_EQ(losses.Deviation(), HUGE_VAL);
}

TEST(LossHistory, RestoredItDeviatesAsTheUninterrupted) {
  const std::vector<double> made_up = MadeUpLosses(170);
  for (const size_t at : {1, 15, 16, 100, 129, 150}) {
    LossHistory whole, first;
    for (size_t i = 0; i < at; ++i) whole.Add(made_up[i]);
    first.Restore(whole.Save());
    for (size_t i = at; i < made_up.size(); ++i) {
      whole.Add(made_up[i]);
      first.Add(made_up[i]);
      if (i < 16) continue;
      EXPECT_EQ(first.Deviation(), whole.Deviation()) << at << ' ' << i;
    }
    EXPECT_EQ(first.Save(), whole.Save());
  }
}

}  // namespace
}  // namespace numsim
