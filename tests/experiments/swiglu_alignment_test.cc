// The experiment `swiglu-alignment`: what its options set, records, and a tiny run.
#include "experiments/swiglu_alignment/swiglu_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

TEST(SwigluArms, SetTheTraining) {
  const TrainConfig config = ConfigOf(TinySettings(), {"2x32", "3e-3", "0.7", "40"}, 9);
  EXPECT_EQ(config.model.kind, ModelKind::kLlama);
  EXPECT_EQ(config.optimizer.weight_decay, 0.7);
  EXPECT_EQ(config.schedule.steps, 40u);
  EXPECT_EQ(config.schedule.warmup, 4u);  // half as long, as the training
  EXPECT_EQ(config.data.size, 16384u);
  EXPECT_EQ(config.linear.all.high_precision, "fp32");
}

TEST(SwigluArms, HaveTheProductsOfTheOption) {
  const auto linear = [](const char* products) {
    const Settings settings = TinySettings({{"products", products}});
    return ConfigOf(settings, {"2x32", "1e-2", "0", "80"}, 0).linear.all;
  };
  EXPECT_EQ(linear("tensor-wise:e4m3fn/e5m2").kind, "tensor-wise");
  EXPECT_EQ(linear("tensor-wise:e4m3fn/e5m2").format, "e4m3fn");
  EXPECT_EQ(linear("tensor-wise:e4m3fn/e5m2").gradient_format, "e5m2");
  EXPECT_EQ(linear("switchback").format, "");
  EXPECT_EQ(linear("switchback").high_precision, "");
  EXPECT_THAT(ErrorOf([&] { linear("wrong"); }), HasSubstr("--products: 'wrong'"));
}

TEST(SwigluRecords, AreAtTheStartEarlyAndAtEqualDistances) {
  EXPECT_THAT(RecordSteps(TinySettings(), 80), ElementsAre(0, 2, 20, 40, 60, 80));
  EXPECT_THAT(RecordSteps(TinySettings(), 3), ElementsAre(0, 1, 2, 3));
}

TEST(SwigluRecords, AreAtMostOnePerStep) {
  const Settings settings = TinySettings({{"points", "200"}});
  EXPECT_EQ(SwigluAlignment().trials(settings).size(), 2u + 2 + 2);
  EXPECT_EQ(RecordSteps(settings, 80).size(), 81u);
}

// A training of the experiment against one that this test runs by itself.
TEST_F(SwigluTraining, FollowsTheOutlierChannelFromTheStart) {
  const Settings settings = TinySettings();
  const Experiment experiment = SwigluAlignment();
  const Trial trial = experiment.trials(settings).at(2 + 2);  // after those that train nothing
  const Rows rows = experiment.run(settings, trial);
  Tables tables;
  for (const TableSpec& spec : experiment.tables) {
    for (const Column& column : spec.columns) tables[spec.name].columns.push_back(column.name);
    if (rows.contains(spec.name)) tables[spec.name].rows = rows.at(spec.name);
  }
  const TrainConfig config =
      ConfigOf(settings, study::ArmOf(SwigluAlignmentStudy(), trial), trial.seed);
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
  const Experiment experiment = SwigluAlignment();
  RunWithoutFigures(experiment, settings, directory.Path());
  Tables tables;
  for (const TableSpec& spec : experiment.tables) {
    tables[spec.name] = ReadCsv(directory.Path() / (spec.name + ".csv"));
  }
  const std::vector<Figure> figures = experiment.figures(settings, tables);
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
  const Experiment experiment = SwigluAlignment();
  ExpectStopsChangeNothing(experiment, settings, experiment.trials(settings).back());
}

}  // namespace
}  // namespace numsim::experiments::swiglu_alignment
