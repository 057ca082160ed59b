// The experiment `feature-statistics`: options, a small training against the trainer itself,
// figures.
#include "experiments/feature_statistics/feature_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "numsim/ops/elementwise.h"
#include "numsim/train/trainer.h"
#include "tests/experiments/feature_statistics_fixture.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/stops.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::feature_statistics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string OptionsError(const Overrides& overrides) {
  return ErrorOf([&] { FeatureStatistics().trials(SettingsWith(overrides)); });
}

TrainConfig ConfigOf(const Settings& settings, const study::Arm& arm) {
  return study::ConfigOf(FeatureStatisticsStudy(), settings, arm, 0);
}

TEST(FeatureOptions, AreNamedInErrors) {
  EXPECT_EQ(OptionsError({}), "no error");
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"layer-scales", "none,some"},
                                                        {"layer-scales", "-1"},
                                                        {"layer-scales", "0,0.0"},
                                                        {"sizes", "2x16,2x16"},
                                                        {"sizes", "2x"},
                                                        {"products", "sideways"},
                                                        {"products", "switchback:e9m9"},
                                                        {"products", "switchback:/e5m2"},
                                                        {"every", "0"},
                                                        {"histories", "0"},
                                                        {"steps", "1"},
                                                        {"warmup", "6"}}) {
    EXPECT_THAT(OptionsError({{option, value}}), HasSubstr("--" + option)) << value;
  }
}

TEST(FeatureOptions, BecomeTheTraining) {
  const Settings settings = SettingsWith({{"products", "tensor-wise:e4m3fn/e5m2"},
                                          {"sizes", "2x16,3x64"},
                                          {"layer-scales", "none,1e-4"},
                                          {"histories", "16,4,16"}});
  std::vector<std::string> labels;
  for (const Trial& trial : FeatureStatistics().trials(settings)) labels.push_back(trial.label);
  EXPECT_THAT(labels,
              ElementsAre("2x16 layer-scale=none seed=0",
                          "2x16 layer-scale=1e-04 seed=0",
                          "3x64 layer-scale=none seed=0",
                          "3x64 layer-scale=1e-04 seed=0"));
  const TrainConfig config = ConfigOf(settings, {"3x64", "1e-04"});
  EXPECT_EQ(config.model.layers, 3u);
  EXPECT_EQ(config.model.width, 64u);
  EXPECT_EQ(config.model.layer_scale, 1e-4f);
  EXPECT_EQ(config.linear.all.kind, "tensor-wise");
  EXPECT_EQ(config.linear.all.format, "e4m3fn");
  EXPECT_EQ(config.linear.all.gradient_format, "e5m2");
  EXPECT_FALSE(ConfigOf(settings, {"2x16", "none"}).model.layer_scale.has_value());
  EXPECT_EQ(HistoriesOf(settings), (std::vector<size_t>{1, 4, 16}));
}

// No training of an arm without layer-scale has one after all.
TEST(FeatureOptions, AreNotOverruledByKeys) {
  for (const char* const key : {"model.layer_scale=1", "linear.kind=tensor-wise"}) {
    EXPECT_THAT(OptionsError({{"layer-scales", "none"}, {"keys", key}}),
                HasSubstr("the experiment sets this key itself"));
  }
}

// The tables of one training.
Tables Train(const Settings& settings, const std::string& scale) {
  const Rows rows = FeatureStatistics().run(
      settings, {.label = "", .seed = 0, .parameters = {{"size", "2x16"}, {"layer_scale", scale}}});
  Tables tables;
  for (const TableSpec& spec : FeatureStatistics().tables) {
    Table& table = tables[spec.name];
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
    if (rows.contains(spec.name)) table.rows = rows.at(spec.name);
    for (const Row& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  }
  return tables;
}

// Returns the signal over noise in dB of values in E4M3: eight numbers per power of 2 from 2^-6 on, steps of 2^-9 below,
// 448 at most.
double NaiveSqnr(std::span<const float> values, double maximum) {
  double signal = 0, noise = 0;
  for (const float value : values) {
    const double x = std::abs(value) * 448 / maximum;
    const double step = std::exp2(std::max(std::floor(std::log2(std::max(x, 1e-9))), -6.0) - 3);
    const double rounded = std::min(std::nearbyint(x / step) * step, 448.0);
    signal += x * x;
    noise += (rounded - x) * (rounded - x);
  }
  return 10 * std::log10(signal / noise);
}

// mean_abs and max_abs of a tensor of block 1, by step.
std::map<std::string, std::pair<double, double>> RecordsOf(const Table& features,
                                                           const std::string& tower,
                                                           const std::string& tensor) {
  std::map<std::string, std::pair<double, double>> records;
  for (size_t r = 0; r < features.rows.size(); ++r) {
    if (features.Text(r, "tower") == tower && features.Text(r, "tensor") == tensor &&
        features.Text(r, "block") == "1") {
      records[features.Text(r, "step")] = {features.Number(r, "mean_abs"),
                                           features.Number(r, "max_abs")};
    }
  }
  return records;
}

// Steps 0 and 4 by --every 4, and the last one.
TEST(FeatureTraining, RecordsWhatTheTrainerComputes) {
  const Settings settings = SettingsWith({});
  const Tables tables = Train(settings, "none");
  TrainConfig config = ConfigOf(settings, {"2x16", "none"});
  config.telemetry.tensors_every = 0;
  Trainer trainer(config, OpenData(config.data));
  const auto weight = [&] {
    return trainer.model().parameters().Find("text.blocks.1.mlp.up.weight");
  };
  const auto weights = RecordsOf(tables.at("features"), "text", "mlp-first-w");
  const auto gradients = RecordsOf(tables.at("features"), "text", "mlp-first-weight-gradient");
  ASSERT_EQ(weights.size(), 3u);
  ASSERT_EQ(gradients.size(), 3u);
  for (int step = 0; step < 6; ++step) {
    const AbsoluteStatistics before = MeasureAbsolute(weight()->value.View());
    trainer.Step();
    if (step != 0 && step != 4 && step != 5) continue;
    const AbsoluteStatistics gradient = MeasureAbsolute(weight()->gradient.View());
    EXPECT_EQ(weights.at(FormatCell(step)), std::pair(before.mean, before.max)) << step;
    EXPECT_EQ(gradients.at(FormatCell(step)), std::pair(gradient.mean, gradient.max)) << step;
  }
  EXPECT_EQ(tables.at("final").Text(0, "status"), "finished");
  EXPECT_EQ(tables.at("final").Number(0, "train_loss"), trainer.recent_loss());
  // Two towers of two blocks: all tensors at three steps; two sorts of steps, two forecasts,
  // histories of 1 and 2.
  EXPECT_EQ(tables.at("features").rows.size(), 2 * 2 * BlockTensors().size() * 3);
  EXPECT_EQ(tables.at("maxima").rows.size(), 2 * 2 * BlockTensors().size() * 2 * 2 * 2);
}

TEST(FeatureRun, HasARowForEachStepAndTensorOnAnyNumberOfThreads) {
  const RunOnThreads run(FeatureStatistics(), SettingsWith({{"sizes", "1x16"}}), "features");
  EXPECT_THAT(run.Csv(),
              StartsWith("size,layer_scale,seed,step,tower,block,tensor,mean_abs,max_abs,rms\n"));
  const Table table = run.Read();
  const size_t tensors = 2 * BlockTensors().size();  // of one block of each tower
  ASSERT_EQ(table.rows.size(), 2 * 3 * tensors);
  std::set<std::string> seen;
  size_t row = 0;
  for (const std::string scale : {"none", "0"}) {
    for (const std::string step : {"0", "4", "5"}) {
      for (size_t i = 0; i < tensors; ++i, ++row) {
        EXPECT_EQ(CellsOf(table, row, {"size", "layer_scale", "seed", "step", "block"}),
                  "1x16 " + scale + " 0 " + step + " 0");
        const std::string tensor = CellsOf(table, row, {"tower", "tensor"});
        EXPECT_EQ(tensor, CellsOf(table, i, {"tower", "tensor"})) << "in the order of step 0";
        seen.insert(tensor);
      }
    }
  }
  EXPECT_EQ(seen.size(), tensors);
}

// Of the weights, which the trainer has before each step: the signal over noise is computed element by element from
// the nearest numbers of E4M3, with scales from the maxima of the steps before.
TEST(FeatureTraining, ScalesOperandsByTheirMaximaAndByThoseBefore) {
  const Settings settings = SettingsWith({{"every", "1"}, {"storage", "fp32"}});
  const Tables tables = Train(settings, "none");
  const Frame scaled = tables.at("scaled");
  EXPECT_EQ(scaled.Size(), 2 * 2 * 6u) << "six operands of two blocks of two towers";
  const Frame row = scaled.Where("tower", std::string("text"))
                        .Where("block", std::string("1"))
                        .Where("tensor", std::string("mlp-first-w"));
  ASSERT_EQ(row.Size(), 1u);
  EXPECT_EQ(row.Number("history"), 2);
  EXPECT_EQ(row.Number("compared"), 4) << "6 steps, 2 of them warm-up";
  Trainer trainer(ConfigOf(settings, {"2x16", "none"}),
                  OpenData(ConfigOf(settings, {"2x16", "none"}).data));
  std::vector<double> maxima;
  double current = 0, average = 0, half = 0;
  for (int step = 0; step < 6; ++step) {
    const auto weights = trainer.model().parameters().Find("text.blocks.1.mlp.up.weight")->value;
    const std::span<const float> values = weights.View().Span();
    double own = 0;
    for (const float value : values) own = std::max(own, std::abs(static_cast<double>(value)));
    if (step >= 2) {
      const double mean = (maxima[step - 1] + maxima[step - 2]) / 2;
      current += NaiveSqnr(values, own) / 4;
      average += NaiveSqnr(values, mean) / 4;
      half += NaiveSqnr(values, mean / 2) / 4;
    }
    maxima.push_back(own);
    trainer.Step();
  }
  EXPECT_NEAR(row.Number("current"), current, 1e-2);
  EXPECT_NEAR(row.Number("average"), average, 1e-2);
  EXPECT_NEAR(row.Number("half"), half, 1e-2);
  EXPECT_GT(current, 25);
  EXPECT_GT(current - half, 1);
  // All operands have numbers that such a format gives.
  scaled.ForEach([](const Frame& one) {
    EXPECT_TRUE(one.Number("current") > 20 && one.Number("current") < 45) << one.Text("tensor");
    EXPECT_LT(one.Number("half"), one.Number("current")) << one.Text("tensor");
  });
}

// Blocks are the identity at first: no gradient reaches the weights of a branch.
TEST(FeatureTraining, ZeroLayerScaleBeginsWithoutGradientsOfWeights) {
  const Tables tables = Train(SettingsWith({}), "0");
  for (const char* const tensor : {"mlp-first-weight-gradient", "mlp-second-weight-gradient"}) {
    const auto records = RecordsOf(tables.at("features"), "image", tensor);
    EXPECT_EQ(records.at("0").second, 0) << tensor;
    EXPECT_GT(records.at("4").second, 0) << tensor;
  }
  // A history of zeros foretells nothing.
  const std::set<std::string> zero_at_first = {
      "mlp-first-weight-gradient", "mlp-second-weight-gradient", "mlp-first-g", "mlp-second-g"};
  const Table& maxima = tables.at("maxima");
  for (size_t r = 0; r < maxima.rows.size(); ++r) {
    const std::string tensor = maxima.Text(r, "tensor");
    const double all = maxima.Text(r, "steps") == "all" ? 5 : 4;
    EXPECT_EQ(maxima.Number(r, "compared"), zero_at_first.contains(tensor) ? 4 : all) << tensor;
  }
}

TEST(FeatureTraining, OtherModelsHaveTheSameTensors) {
  for (const std::string model : {"llama", "vit"}) {
    const Settings settings = SettingsWith({{"model", model}, {"products", "tensor-wise:e4m3fn"}});
    const Tables tables = Train(settings, "none");
    EXPECT_EQ(tables.at("features").rows.size(), 2 * BlockTensors().size() * 3) << model;
    EXPECT_EQ(tables.at("final").Text(0, "status"), "finished");
  }
}

TEST(FeatureTraining, DivergenceIsARowAndNotAnError) {
  const Tables tables = Train(SettingsWith({{"lr", "100"}, {"steps", "40"}}), "none");
  EXPECT_EQ(tables.at("final").Text(0, "status"), "diverged");
  EXPECT_EQ(tables.at("final").Text(0, "valid_loss"), "inf");
}

// All that is drawn has points and lies in the panels of its training.
TEST(FeatureFigures, HavePanelsForEachTraining) {
  const Settings settings = SettingsWith({});
  Tables tables = Train(settings, "none");
  const double largest_at_the_end =
      RecordsOf(tables.at("features"), "image", "mlp-first-weight-gradient").at("5").second;
  for (auto& [name, table] : Train(settings, "0")) {
    for (Row& row : table.rows) tables[name].rows.push_back(std::move(row));
  }
  FeatureStatistics().derive(settings, tables);
  const std::vector<Figure> figures = FeatureStatistics().figures(settings, tables);
  const std::map<std::string, size_t> panels = {{"feature-statistics", 4},
                                                {"feature-growth", 2},
                                                {"feature-depth", 2},
                                                {"feature-overruns", 4}};
  ASSERT_EQ(figures.size(), panels.size());
  for (const Figure& figure : figures) {
    EXPECT_EQ(figure.panels.size(), panels.at(figure.name)) << figure.name;
    for (const Panel& panel : figure.panels) {
      ASSERT_FALSE(panel.series.empty()) << panel.title;
      for (const Series& series : panel.series) {
        EXPECT_FALSE(series.x.empty()) << panel.title << ": " << series.label;
        EXPECT_EQ(series.x.size(), series.y.size());
      }
    }
  }
  // First and last block, mean and maximum, at three steps.
  const Panel& gradient = figures[0].panels[0];
  ASSERT_EQ(gradient.series.size(), 4u);
  EXPECT_EQ(gradient.series[0].label, "first block, mean");
  EXPECT_EQ(gradient.series[3].label, "last block, max");
  EXPECT_TRUE(gradient.series[3].dashed);
  EXPECT_EQ(gradient.series[0].x, (std::vector<double>{0, 4, 5}));
  EXPECT_EQ(gradient.series[3].y.back(), largest_at_the_end);
}

TEST(FeatureStatistics, StopsChangeNothing) {
  const Settings settings = SettingsWith(kTiny);
  ExpectStopsChangeNothing(
      FeatureStatistics(), settings, FeatureStatistics().trials(settings).front());
}

}  // namespace
}  // namespace numsim::experiments::feature_statistics
