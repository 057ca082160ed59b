// The experiment `loss-spikes`: trainings against the trainer itself, and their rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/loss_spikes/loss_spikes.h"
#include "numsim/analysis/curvature.h"
#include "numsim/base/parallel.h"
#include "numsim/train/trainer.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/loss_spikes_fixture.h"
#include "tests/experiments/stops.h"

namespace numsim::experiments::loss_spikes {
namespace {

// A data source of which a training sees two batches before step 12.
class OldThenAll final : public DataSource {
 public:
  explicit OldThenAll(const DataConfig& config) : all_(OpenData(config)) {}
  const DataShape& shape() const override { return all_->shape(); }
  void TrainBatch(
      uint64_t seed, uint64_t index, size_t count, size_t length, Batch& batch) const override {
    if (index < 12) index = index % 2 == 0 ? 0 : 1;
    all_->TrainBatch(seed, index, count, length, batch);
  }
  size_t TrainBatches(size_t count, size_t length) const override {
    return all_->TrainBatches(count, length);
  }
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const override {
    all_->ValidBatch(index, count, length, batch);
  }
  size_t ValidBatches(size_t count, size_t length) const override {
    return all_->ValidBatches(count, length);
  }
  std::string Describe() const override { return ""; }

 private:
  std::unique_ptr<const DataSource> all_;
};

// The record of a trainer, step by step.
struct Recorded {
  explicit Recorded(TrainConfig config, bool new_data = false) {
    config.telemetry.every = 1;
    std::shared_ptr<const DataSource> data;
    if (new_data) {
      config.stress = {};
      data = std::make_shared<OldThenAll>(config.data);
    } else {
      data = OpenData(config.data);
    }
    Trainer trainer(config, data);
    start = trainer.Validate().Mean();
    while (trainer.status() == TrainStatus::kRunning) {
      trainer.Step();
      size_t i = 0;
      for (const Parameter<float>& parameter : trainer.model().parameters()) {
        rms[parameter.name].push_back(trainer.last_update().tensors.at(i).rms);
        update_rms[parameter.name].push_back(trainer.last_update().tensors.at(i++).update_rms);
      }
    }
    const Table& train = trainer.telemetry().Of("train");
    for (size_t row = 0; row < train.rows.size(); ++row) {
      losses.push_back(train.Number(row, "loss"));
    }
    recent = trainer.recent_loss();
    parameters = trainer.model().parameters().Elements();
    status = ToString(trainer.status());
    steps = trainer.steps_taken();
    const LossSum sum = trainer.Validate();
    valid = sum.Mean();
    accuracy = static_cast<double>(sum.correct) / static_cast<double>(sum.counted);
    if (trainer.last_zero_shot().has_value()) accuracy = trainer.last_zero_shot()->Accuracy();
    // The frequencies of the answers of the validation.
    Batch batch;
    std::map<int32_t, int> counts;
    int all = 0;
    for (size_t i = 0;
         i < std::min<size_t>(2, data->ValidBatches(config.train.batch, config.model.context));
         ++i) {
      data->ValidBatch(i, config.train.batch, config.model.context, batch);
      for (const int32_t target : batch.targets) ++counts[target], ++all;
    }
    for (const auto& [target, count] : counts) entropy += count * std::log(1.0 * all / count) / all;
  }

  double start = 0, recent = 0, valid = 0, accuracy = 0, entropy = 0;
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> rms, update_rms;  // by parameter
  size_t parameters = 0;
  std::string status;
  uint64_t steps = 0;
};

double MeanIn(const std::vector<double>& x, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += x[i];
  return sum / static_cast<double>(end - begin);
}

// The first of the events that are less than 10 steps apart from it.
Steps FirstsOf(const std::vector<bool>& events) {
  Steps firsts;
  for (size_t t = 0, free = 0; t < events.size(); ++t) {
    if (!events[t] || t < free) continue;
    firsts.push_back(t);
    free = t + 10;
  }
  return firsts;
}

// Windows of 8 losses: all 8 have to be there.
double DeviationAt(const std::vector<double>& losses, size_t t) {
  if (t < 8) return std::nan("");
  const double mean = MeanIn(losses, t - 8, t);
  double squares = 0;
  for (size_t i = t - 8; i < t; ++i) squares += (losses[i] - mean) * (losses[i] - mean);
  return (losses[t] - mean) / std::sqrt(squares / 8);
}

// Two losses within 10 steps that deviate by more than half a deviation, after the warm-up of 3.
Steps LossEvents(const std::vector<double>& losses) {
  std::vector<bool> deviates(losses.size()), events(losses.size());
  for (size_t t = 3; t < losses.size(); ++t) deviates[t] = DeviationAt(losses, t) > 0.5;
  for (size_t t = 0; t < losses.size(); ++t) {
    for (size_t again = t + 1; again < std::min(t + 10, losses.size()); ++again) {
      if (deviates[t] && deviates[again]) events[t] = true;
    }
  }
  return FirstsOf(events);
}

Steps EventsAbove(const std::vector<double>& series, double threshold) {
  std::vector<bool> events(series.size());
  for (size_t t = 3; t < series.size(); ++t) events[t] = series[t] >= threshold;
  return FirstsOf(events);
}

// Steps until the mean loss since the spike is that of the 10 losses before; 0 within another spike.
Steps LostIn(const std::vector<double>& losses, const Steps& spikes) {
  Steps lost;
  size_t back = 0;
  for (const uint64_t spike : spikes) {
    lost.push_back(0);
    if (spike < back) continue;
    const double before = MeanIn(losses, spike < 10 ? 0 : spike - 10, spike);
    for (back = spike + 1; back < losses.size(); ++back) {
      if (MeanIn(losses, std::max(spike + 10, back) - 10, back) <= before) break;
    }
    lost.back() = back - spike;
  }
  return lost;
}

std::string StepTexts(const Steps& steps) {
  std::string text;
  for (const uint64_t step : steps) text += (text.empty() ? "" : " ") + std::to_string(step);
  return text;
}

// The tables of one training.
Tables TablesOf(const Rows& rows) {
  Tables tables;
  for (const TableSpec& spec : LossSpikes().tables) {
    Table& table = tables[spec.name];
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
    if (rows.contains(spec.name)) table.rows = rows.at(spec.name);
    for (const Row& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << spec.name;
  }
  return tables;
}
Tables TrainTiny(const Arm& arm, const Overrides& changes = {}, uint64_t seed = 0) {
  return TablesOf(LossSpikes().run(TinySettings(changes), TrialOf(arm, seed)));
}

// The events of a kind as texts, by parameter.
std::map<std::string, std::string> EventTexts(const Tables& tables, const std::string& kind) {
  std::map<std::string, std::string> events;
  Frame(tables.at("events")).Where("event", kind).ForEach([&](const Frame& row) {
    EXPECT_TRUE(events.emplace(row.Text("tensor"), row.Text("at")).second) << row.Text("tensor");
    const std::string at = row.Text("at");
    const auto blanks = std::count(at.begin(), at.end(), ' ');
    EXPECT_EQ(row.Number("count"), at.empty() ? 0.0 : 1.0 + static_cast<double>(blanks));
  });
  return events;
}

// One thread: such small models are no faster with more.
class SpikeTraining : public ::testing::Test {
 protected:
  SpikeTraining() { SetThreadCount(1); }
  ~SpikeTraining() override { SetThreadCount(before_); }

 private:
  const int before_ = ThreadCount();
};

struct TrainedArm {
  Arm arm;
  std::string input;  // parameter that reads the input
  double beta2;       // of the bound of RMS_t; NaN: there is no bound
  bool classifies;    // the loss of a guess is the entropy of the targets; else of a pair, or none
};

std::vector<TrainedArm> TrainedArms() {
  const Arm centre = TinyArm();
  const double none = std::nan("");
  return {{centre, kPatches, 0.99, false},
          {TinyArm("0.9", "stable-adamw"), kPatches, 0.9, false},
          {TinyArm("0.99", "clip-1"), kPatches, 0.99, false},
          {TinyArm("0.99", "stable-adamw:decay"), kPatches, 0.99, false},
          {TinyArm("0.99", "stable-adamw:previous"), kPatches, none, false},
          {TinyArm("0.99", "stable-adamw:update"), kPatches, none, false},
          {TinyArm("0.99", "stable-adamw:moment"), kPatches, none, false},
          {TinyArm("1-t^-0.5"), kPatches, none, false},
          {TinyArm("0.99", "lion:3"), kPatches, none, false},
          {With(centre, kData, "new"), kPatches, 0.99, false},
          {With(centre, kData, "jump:50"), kPatches, 0.99, false},
          {With(centre, kData, "contrast:5"), kPatches, 0.99, false},
          {With(centre, kModel, "vit"), "patches.weight", 0.99, true},
          {With(centre, kModel, "llama"), "embedding.tokens", 0.99, true},
          {TinyStudent("adamw", "0.3"), "input.weight", 0.99, false},
          {TinyStudent("stable-adamw"), "input.weight", 0.99, false}};
}

TEST_F(SpikeTraining, RecordsWhatTheTrainerSays) {
  size_t loss_spikes = 0, rms_spikes = 0;
  std::set<std::string> collapsed;
  for (const TrainedArm& trained : TrainedArms()) {
    const Arm& arm = trained.arm;
    SCOPED_TRACE(TextOf(arm));
    const Tables tables = TrainTiny(arm, {}, 2);
    const Recorded expected(ConfigOf(TinySettings(), arm, 2), arm[kData] == "new");
    ASSERT_EQ(expected.losses.size(), 30u);
    const Frame run = tables.at("runs");
    ASSERT_EQ(run.Size(), 1u);
    EXPECT_EQ(ArmOfRow(run), arm);
    EXPECT_EQ(run.Text("seed"), "2");
    EXPECT_EQ(run.Number("parameters"), static_cast<double>(expected.parameters));
    EXPECT_EQ(run.Text("status"), "finished");
    EXPECT_EQ(run.Number("steps"), 30);
    EXPECT_EQ(run.Number("start_loss"), expected.start);
    EXPECT_EQ(run.Number("train_loss"), expected.recent);
    EXPECT_EQ(run.Number("valid_loss"), expected.valid);
    EXPECT_EQ(run.Number("accuracy"), expected.accuracy);

    const double chance = trained.classifies     ? expected.entropy
                          : arm[kModel] == "mlp" ? std::nan("")
                                                 : std::log(4);
    if (std::isnan(chance)) {
      EXPECT_EQ(run.Text("chance_loss"), "nan");
    } else {
      EXPECT_NEAR(run.Number("chance_loss"), chance, 1e-12);
    }
    EXPECT_EQ(run.Text("collapsed"), expected.valid > 0.95 * chance ? "1" : "0");
    collapsed.insert(run.Text("collapsed"));

    const Steps spikes = LossEvents(expected.losses), lost = LostIn(expected.losses, spikes);
    const auto losses = EventTexts(tables, "loss");
    EXPECT_EQ(losses.contains("") ? losses.at("") : "", StepTexts(spikes));
    EXPECT_EQ(run.Number("loss_spikes"), static_cast<double>(spikes.size()));
    double steps_lost = 0;
    for (const uint64_t steps : lost) steps_lost += static_cast<double>(steps);
    EXPECT_EQ(run.Number("steps_lost"), steps_lost);
    Frame(tables.at("events")).Where("event", "loss").ForEach([&](const Frame& row) {
      EXPECT_EQ(row.Text("lost"), StepTexts(lost));
    });
    loss_spikes += spikes.size();

    std::map<std::string, std::string> events;
    double largest = 0;
    for (const auto& [parameter, rms] : expected.rms) {
      const Steps steps = EventsAbove(rms, 1.1);
      if (!steps.empty()) events[parameter] = StepTexts(steps);
      largest = std::max(largest, *std::max_element(rms.begin(), rms.end()));
      rms_spikes += steps.size();
    }
    EXPECT_EQ(EventTexts(tables, "rms"), events);
    const std::vector<double>& input = expected.rms.at(trained.input);
    EXPECT_EQ(run.Number("rms_spikes"), static_cast<double>(EventsAbove(input, 1.1).size()));
    EXPECT_EQ(run.Number("max_rms"), *std::max_element(input.begin() + 3, input.end()));
    const double ratio = std::isnan(trained.beta2) ? 0 : largest * std::sqrt(1 - trained.beta2);
    EXPECT_NEAR(run.Number("bound_ratio"), ratio, 1e-12);
    EXPECT_LE(run.Number("bound_ratio"), 1 + 1e-5);
    // Too few steps before the change for a mean.
    for (const char* const column : {"change_rms", "change_max_rms", "change_update"}) {
      EXPECT_EQ(run.Text(column), "nan") << column;
    }
  }
  // Otherwise nothing was compared.
  EXPECT_GT(loss_spikes, 10u);
  EXPECT_GT(rms_spikes, 50u);
  EXPECT_EQ(collapsed, (std::set<std::string>{"0", "1"}));
}

// A planted jump at step 52 of 64.
TEST_F(SpikeTraining, RecordsTheEffectOfAChange) {
  const Overrides options = {{"steps", "64"}, {"change-step", "52"}};
  std::map<std::string, double> largest;
  for (const char* const data : {"steady", "jump:100", "constant:100"}) {
    const Arm arm = With(TinyArm(), kData, data);
    const Tables tables = TrainTiny(arm, options);
    const Recorded expected(ConfigOf(TinySettings(options), arm, 0));
    const std::vector<double>& rms = expected.rms.at(kPatches);
    const std::vector<double>& steps = expected.update_rms.at(kPatches);
    const Frame run = tables.at("runs");
    EXPECT_EQ(run.Number("change_rms"), rms[52]);
    EXPECT_EQ(run.Number("change_max_rms"), *std::max_element(rms.begin() + 52, rms.end()));
    EXPECT_NEAR(run.Number("change_update"),
                *std::max_element(steps.begin() + 52, steps.end()) / MeanIn(steps, 2, 52),
                1e-12);
    largest[data] = run.Number("change_max_rms");
  }
  EXPECT_GT(largest["jump:100"], 1.5 * largest["steady"]);
  EXPECT_LT(largest["constant:100"], 1.1 * largest["steady"]);
}

// A factor of all gradients changes nothing but the part of epsilon.
TEST_F(SpikeTraining, AConstantFactorDoesNothing) {
  const Overrides options = {{"epsilon", "1e-30"}};
  const double steady = TrainTiny(TinyArm(), options).at("runs").Number(0, "valid_loss");
  const Arm arm = With(TinyArm(), kData, "constant:64");
  EXPECT_NEAR(TrainTiny(arm, options).at("runs").Number(0, "valid_loss"), steady, 1e-4);
}

TEST_F(SpikeTraining, TracesTheCentreOfTheFirstSeed) {
  const Overrides options = {{"lambdas", "0.5"}, {"changes", "new"}, {"optimizers", "clip-1"}};
  const Settings settings = TinySettings(options, 2, 7);
  for (const Arm& arm :
       {TinyArm(), TinyArm("0.9"), TinyArm("0.99", "stable-adamw"), TinyArm("1-t^-0.5")}) {
    SCOPED_TRACE(TextOf(arm));
    const Tables tables = TablesOf(LossSpikes().run(settings, TrialOf(arm, 7)));
    const Frame trace = tables.at("trace");
    const Recorded expected(ConfigOf(settings, arm, 7));
    ASSERT_EQ(trace.Size(), 30u);
    for (size_t t = 0; t < 30; ++t) {
      EXPECT_EQ(trace.Text(t, "step"), std::to_string(t));
      EXPECT_EQ(trace.Text(t, "seed"), "7");
      EXPECT_EQ(trace.Number(t, "loss"), expected.losses[t]);
      EXPECT_EQ(trace.Number(t, "rms"), expected.rms.at(kPatches)[t]);
      if (t < 8) {
        EXPECT_EQ(trace.Text(t, "deviation"), "nan");
      } else {
        EXPECT_NEAR(trace.Number(t, "deviation"), DeviationAt(expected.losses, t), 1e-9);
      }
    }
    EXPECT_TRUE(TablesOf(LossSpikes().run(settings, TrialOf(arm, 8))).at("trace").rows.empty());
  }
  for (const Arm& arm : {TinyArm("0.99", "clip-1"),
                         With(TinyArm(), kData, "new"),
                         With(TinyArm(), kLr, "1e-3"),
                         With(TinyArm(), kModel, "vit"),
                         TinyStudent()}) {
    EXPECT_TRUE(TablesOf(LossSpikes().run(settings, TrialOf(arm, 7))).at("trace").rows.empty())
        << TextOf(arm);
  }
}

// From the warm-up on: the steps at which a quadratic would be unstable.
TEST_F(SpikeTraining, MeasuresTheCurvatureOfAdamWStudents) {
  size_t found = 0;
  for (const char* const lr : {"1e-3", "0.1", "0.3"}) {
    const Arm arm = TinyStudent("adamw", lr);
    const TrainConfig config = ConfigOf(TinySettings(), arm, 0);
    Trainer trainer(config, OpenData(config.data));
    std::vector<double> times;
    while (trainer.status() == TrainStatus::kRunning) {
      times.push_back(CurvatureOfNextStep(trainer).Times());
      trainer.Step();
    }
    const Tables tables = TrainTiny(arm);
    const auto curvature = EventTexts(tables, "curvature");
    ASSERT_EQ(curvature.size(), 1u) << "also without events";
    EXPECT_EQ(curvature.at(""), StepTexts(EventsAbove(times, 2)));
    found += curvature.at("").empty() ? 0 : 1;
    // To measure it changes nothing.
    const Tables without = TrainTiny(arm, {{"curvature", "no"}});
    EXPECT_TRUE(EventTexts(without, "curvature").empty());
    EXPECT_EQ(ToCsv(without.at("runs")), ToCsv(tables.at("runs")));
  }
  EXPECT_GT(found, 0u);
  EXPECT_LT(found, 3u);
  for (const Arm& arm :
       {TinyArm(), TinyStudent("stable-adamw"), With(TinyArm(), kModel, "llama")}) {
    EXPECT_TRUE(EventTexts(TrainTiny(arm), "curvature").empty()) << TextOf(arm);
  }
}

TEST_F(SpikeTraining, GivesTheSameRowsAgainAndOnMoreThreads) {
  const Settings settings = TinySettings({{"steps", "13"}});
  for (const Arm& arm : {With(TinyArm(), kData, "new"), TinyStudent()}) {
    SetThreadCount(1);
    const Rows expected = LossSpikes().run(settings, TrialOf(arm));
    for (const int threads : {1, 3}) {
      SetThreadCount(threads);
      EXPECT_EQ(LossSpikes().run(settings, TrialOf(arm)), expected)
          << TextOf(arm) << ": " << threads;
    }
  }
}

TEST(SpikeRuns, HaveARowPerTrialOnAnyNumberOfThreads) {
  const Settings settings = TinySettings({{"changes", "new"}, {"student-lrs", "1e-2"}}, 2);
  const Table runs = RunOnThreads(LossSpikes(), settings, "runs").Read();
  const std::vector<Trial> trials = LossSpikes().trials(settings);
  ASSERT_EQ(runs.rows.size(), trials.size());
  for (size_t i = 0; i < trials.size(); ++i) {
    const Frame row = Frame(runs).Where([&](const Frame& one) {
      return one.Text("seed") == std::to_string(trials[i].seed) &&
             TrialOf(ArmOfRow(one)).parameters == trials[i].parameters;
    });
    ASSERT_EQ(row.Size(), 1u) << trials[i].label;
    EXPECT_EQ(TextOf(ArmOfRow(row)) + " seed=" + runs.Text(i, "seed"), trials[i].label);
  }
}

// Activations in fp16 and such a rate: the loss overflows.
const Overrides kOverflows = {{"keys", "storage.activations=fp16"}};

TEST_F(SpikeTraining, DivergenceIsARowAndNotAnError) {
  for (const Arm& arm : {With(TinyArm(), kLr, "100"), TinyStudent("stable-adamw", "100")}) {
    const Tables tables = TrainTiny(arm, kOverflows);
    const Frame row = tables.at("runs");
    EXPECT_EQ(row.Text("status"), "diverged") << TextOf(arm);
    EXPECT_EQ(row.Text("valid_loss"), "inf");
    EXPECT_EQ(row.Number("accuracy"), 0);
    EXPECT_EQ(row.Number("collapsed"), 1);
    EXPECT_LT(row.Number("steps"), 30);
  }
}

// A loss that is high is no end of a training.
TEST_F(SpikeTraining, AHighLossDoesNotEndIt) {
  const Tables tables = TrainTiny(TinyStudent("adamw", "3"));
  EXPECT_EQ(tables.at("runs").Text(0, "status"), "finished");
  EXPECT_GT(tables.at("runs").Number(0, "train_loss"),
            3 * tables.at("runs").Number(0, "start_loss"));
}

// The step whose loss is not finite was not taken. With such a threshold there is an event every 10
// steps, and so at that step in some runs.
TEST_F(SpikeTraining, EventsOfADivergedRunAreAmongItsSteps) {
  Overrides options = kOverflows;
  options.insert({{"steps", "80"}, {"spike-rms", "0.001"}, {"window", "16"}});
  const Settings settings = TinySettings(options);
  size_t diverged = 0;
  for (const char* const lr : {"1", "1.5", "2"}) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const Arm arm{"mlp", "1x32", "16", lr, "10", "steady", "0.9", "adamw"};
      const Tables tables = TablesOf(LossSpikes().run(settings, TrialOf(arm, seed)));
      if (tables.at("runs").Text(0, "status") != "diverged") continue;
      for (const RunEvents& run : EventsOf(settings, tables, kStudentScope)) {
        ++diverged;
        for (const std::string& predictor : PredictorsOf({run})) {
          const EventSeries series = SeriesOf({run}, predictor).at(0);
          for (const uint64_t step : series.events) {
            EXPECT_LT(step, series.last) << predictor << ", lr " << lr << ", seed " << seed;
          }
        }
      }
    }
  }
  EXPECT_GT(diverged, 0u);
}

TEST(LossSpikes, StopsChangeNothing) {
  const Settings settings = TinySettings();
  ExpectStopsChangeNothing(LossSpikes(), settings, TrialOf(TinyArm()));
  // At this learning rate the curvature has events, which a lost record of it would lose.
  ExpectStopsChangeNothing(LossSpikes(), settings, TrialOf(TinyStudent("adamw", "0.3")));
  // A change of the data is measured by the updates in the 50 steps before it.
  ExpectStopsChangeNothing(LossSpikes(),
                           TinySettings({{"steps", "64"}, {"change-step", "52"}}),
                           TrialOf(With(TinyArm(), kData, "jump:100")));
}

}  // namespace
}  // namespace numsim::experiments::loss_spikes
