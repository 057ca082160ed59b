// The experiment `swiglu-alignment`: arms, options, records, and a tiny run.
#include "experiments/swiglu_alignment/swiglu_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "experiments/swiglu_alignment/channels.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/swiglu_alignment_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ArmTexts(const Overrides& changes) {
  std::vector<std::string> texts;
  for (const Arm& arm : ArmsOf(TinySettings(changes))) texts.push_back(arm.Text());
  return texts;
}

TEST(SwigluArms, DepartFromTheCentreInOneRespect) {
  EXPECT_THAT(ArmTexts({{"lrs", "1e-3,1e-2"}, {"weight-decays", "0,1"}, {"lengths", "40"}}),
              ElementsAre("2x32 lr 1e-2 weight decay 0.1 steps 80",
                          "2x32 lr 1e-3 weight decay 0.1 steps 80",
                          "2x32 lr 1e-2 weight decay 0 steps 80",
                          "2x32 lr 1e-2 weight decay 1 steps 80",
                          "2x32 lr 1e-2 weight decay 0.1 steps 40"));
}

TEST(SwigluArms, SetTheTraining) {
  Arm arm = Centre(TinySettings());
  arm.lr = "3e-3";
  arm.weight_decay = "0.7";
  arm.steps = "40";
  const TrainConfig config = ConfigOf(TinySettings(), arm, 9);
  EXPECT_EQ(config.model.kind, ModelKind::kLlama);
  EXPECT_EQ(config.model.width, 32u);
  EXPECT_EQ(config.schedule.peak, 3e-3);
  EXPECT_EQ(config.optimizer.weight_decay, 0.7);
  EXPECT_EQ(config.train.steps, 40u);
  EXPECT_EQ(config.schedule.steps, 40u);
  EXPECT_EQ(config.schedule.warmup, 4u);  // half as long, as the training
  EXPECT_EQ(config.train.seed, 9u);
  EXPECT_EQ(config.linear.all.high_precision, "fp32");
}

TEST(SwigluRecords, AreAtTheStartEarlyAndAtEqualDistances) {
  EXPECT_THAT(RecordSteps(TinySettings(), 80), ElementsAre(0, 2, 20, 40, 60, 80));
  EXPECT_THAT(RecordSteps(TinySettings(), 3), ElementsAre(0, 1, 2, 3));
}

TEST(SwigluOptions, ErrorsNameThem) {
  const auto error = [](const char* option, const char* value) {
    const Settings settings = TinySettings({{option, value}});
    return ErrorOf([&] { SwigluAlignment().trials(settings); });
  };
  EXPECT_THAT(error("size", "2"), HasSubstr("--size: '2' is not LAYERSxWIDTH"));
  EXPECT_THAT(error("lr", "fast"), HasSubstr("--lr"));
  EXPECT_THAT(error("lrs", "1e-3,fast"), HasSubstr("--lrs"));
  EXPECT_THAT(error("weight-decays", "-1"), HasSubstr("--weight-decays"));
  EXPECT_THAT(error("weight-decays", "0,0"), HasSubstr("--weight-decays"));
  EXPECT_THAT(error("lengths", "0"), HasSubstr("--lengths"));
  EXPECT_THAT(error("steps", "0"), HasSubstr("--steps"));
  EXPECT_THAT(error("points", "0"), HasSubstr("--points"));
  EXPECT_THAT(error("starts", "0"), HasSubstr("--starts"));
  EXPECT_THAT(error("neuron-steps", "0"), HasSubstr("--neuron-steps"));
  EXPECT_THAT(error("products", "wrong"), HasSubstr("--products: 'wrong'"));
  EXPECT_THAT(error("final-lr", "2"), HasSubstr("--final-lr"));
  EXPECT_THAT(error("context", "100000000"), HasSubstr("--context"));
}

TEST(SwigluTrials, HaveDistinctLabels) {
  std::set<std::string> labels;
  const std::vector<Trial> trials = SwigluAlignment().trials(TinySettings({}, 3));
  for (const Trial& trial : trials) labels.insert(trial.label);
  EXPECT_EQ(labels.size(), trials.size());
  EXPECT_EQ(trials.size(), 2u + 2 + 2 * 3);  // exact, starts, trainings of two arms
}

// A training of the experiment against one that this test runs by itself.
TEST_F(SwigluTraining, FollowsTheOutlierChannelFromTheStart) {
  const Settings settings = TinySettings();
  const std::vector<Trial> trials = SwigluAlignment().trials(settings);
  const Trial& trial = trials[4];
  const Rows rows = Measure(settings, trial);
  Tables tables;
  for (const TableSpec& spec : TableSpecs()) {
    for (const Column& column : spec.columns) tables[spec.name].columns.push_back(column.name);
    if (rows.contains(spec.name)) tables[spec.name].rows = rows.at(spec.name);
  }
  const TrainConfig config = ConfigOf(settings, ArmOf(trial), trial.seed);
  Trainer trainer(config, OpenData(config.data));
  const Frame run = tables.at("runs"), points = tables.at("points");
  const auto block = static_cast<size_t>(run.Number("block"));
  const auto channel = static_cast<size_t>(run.Number("channel"));
  ASSERT_EQ(points.Size(), 6u);
  for (size_t i = 0; i < points.Size(); ++i) {
    while (static_cast<double>(trainer.steps_taken()) < points.Number(i, "step")) trainer.Step();
    const std::vector<MlpSnapshot> mlps = SnapshotOf(trainer);
    const ChannelState state = ChannelsOf(mlps[block])[channel];
    EXPECT_EQ(points.Number(i, "cos"), state.cos);
    EXPECT_EQ(points.Number(i, "w2"), state.gate_norm);
    EXPECT_EQ(points.Number(i, "kurtosis"), KurtosisOf(mlps[block].hidden));
    EXPECT_EQ(points.Number(i, "tokens"), points.Number(i, "step") * 64);
    double largest = 0;
    for (const MlpSnapshot& mlp : mlps) {
      for (const float value : mlp.hidden.data)
        largest = std::max(largest, std::fabs(double{value}));
    }
    EXPECT_EQ(points.Number(i, "largest"), largest);
    if (i == 1) {
      EXPECT_EQ(run.Number("early_step"), 2);
      EXPECT_EQ(run.Number("cos_early"), state.cos);
      EXPECT_EQ(run.Number("w2_early"), state.gate_norm);
      EXPECT_EQ(tables.at("elements").Number(3, "w1"), mlps[block].Linear(channel)[3]);
    }
    if (i == 5) {
      EXPECT_EQ(run.Number("cos_late"), state.cos);
      EXPECT_EQ(run.Number("largest_late"), largest);
      EXPECT_EQ(state.largest, largest);  // the outlier channel leads at the end
      EXPECT_EQ(run.Number("above_one"), state.above_one);
      EXPECT_EQ(tables.at("elements").Number(32 + 3, "w2"), mlps[block].Gate(channel)[3]);
    }
  }
  EXPECT_EQ(run.Number("valid_loss"), trainer.Validate().Mean());
  double shares = 0;
  for (const double share : Frame(tables.at("gates")).Numbers("share")) shares += share;
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_EQ(tables.at("channels").rows.size(), 2 * 96u);
}

TEST_F(SwigluTraining, HasTheSameRowsOnAnyNumberOfThreads) {
  const Settings settings = TinySettings({}, 2);
  for (const char* const table : {"points", "starts"}) {
    const Table rows = RunOnThreads(SwigluAlignment(), settings, table).Read();
    EXPECT_FALSE(rows.rows.empty()) << table;
  }
}

TEST_F(SwigluTraining, HasFiguresOfEachPart) {
  const Settings settings = TinySettings({{"lrs", "1e-3"}}, 2);
  const TemporaryDirectory directory;
  RunWithoutFigures(SwigluAlignment(), settings, directory.Path());
  Tables tables;
  for (const TableSpec& spec : TableSpecs()) {
    tables[spec.name] = ReadCsv(directory.Path() / (spec.name + ".csv"));
  }
  const std::vector<Figure> figures = Figures(settings, tables);
  ASSERT_EQ(figures.size(), 5u);
  EXPECT_EQ(figures[0].panels[0].series[0].x.size(), 7u);  // angles
  EXPECT_EQ(figures[1].panels[0].series[0].x.size(), 6u);  // records
  EXPECT_EQ(figures[1].panels[0].series[0].low.size(), 6u);
  size_t elements = 0;
  for (const Series& part : figures[2].panels[1].series) {
    elements += static_cast<size_t>(
        std::count_if(part.x.begin(), part.x.end(), [](double x) { return std::isfinite(x); }));
  }
  EXPECT_EQ(elements, 32u);
  EXPECT_EQ(figures[3].panels[0].series.size(), 2u);  // seeds
  EXPECT_EQ(figures[4].panels.size(), 2u);            // weight decay, learning rate
}

TEST_F(SwigluTraining, StopsChangeNothing) {
  const Settings settings = TinySettings({{"steps", "24"}});
  for (const Trial& trial : Trials(settings)) {
    if (trial.parameters.at("part") != "training") continue;
    ExpectStopsChangeNothing(SwigluAlignment(), settings, trial);
    return;
  }
  FAIL() << "no training";
}

}  // namespace
}  // namespace numsim::experiments::swiglu_alignment
