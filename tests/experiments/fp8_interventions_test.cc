// The experiment `fp8-interventions`: its ladder, its choices, the trainings that they ask for.
#include "experiments/fp8_interventions/fp8_interventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::fp8_interventions {
namespace {

using ::testing::HasSubstr;
using Overrides = std::map<std::string, std::string>;

const Overrides& Tiny() { return TinyRun("fp8-interventions"); }

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

Settings SettingsWith(const Overrides& overrides) {
  return MakeSettings(Fp8Interventions(), "quick", 0, 1, overrides);
}

study::Choice Precision(const std::string& text) {
  return study::ChoiceOf(Fp8InterventionsStudy().axes[1], text);
}

TrainConfig ConfigOf(const Settings& settings, const study::Arm& arm, uint64_t seed = 7) {
  return study::ConfigOf(Fp8InterventionsStudy(), settings, arm, seed);
}

// As the description has them.
TEST(PrecisionLadder, HasTheRangesThatAreStated) {
  const std::map<std::string, std::pair<double, double>> ranges = {
      {"e3m3:inf=none,nan=none", {30, 1.0 / 32}},
      {"e4m2:inf=none,nan=none", {448, 1.0 / 256}},
      {"e3m2", {28, 1.0 / 16}},
      {"e2m3", {7.5, 1.0 / 8}}};
  for (const auto& [text, range] : ranges) {
    const FormatSpec spec = ParseFormat(text).spec;
    EXPECT_EQ(MaxFinite(spec), range.first) << text;
    EXPECT_EQ(MinPositive(spec), range.second) << text;
    for (const float value : DecodeTable(spec)) EXPECT_TRUE(std::isfinite(value)) << text;
  }
}

// Earlier results call formats of the ladder e3m3 and e4m2, which are IEEE-like elsewhere.
TEST(FormerLadder, KeepsItsMeaning) {
  const auto FromFormerNames = Fp8Interventions().from_former_names;
  EXPECT_EQ(FromFormerNames("e4m3fn/e5m2,e3m3,e4m2,e3m2,e2m3"),
            "e4m3fn/e5m2,e3m3:inf=none,nan=none,e4m2:inf=none,nan=none,e3m2,e2m3");
  EXPECT_EQ(FromFormerNames("none e3m3/e5m2 seed=0"), "none e3m3:inf=none,nan=none/e5m2 seed=0");
  EXPECT_EQ(FromFormerNames("e2m1,e2m3:bias=2"), "ieee-e2m1,ieee-e2m3:bias=2");
  for (const char* const text : {"e3m3:inf=none,nan=none/e5m2", "e2m3", "ieee-e3m3", "e2m3fn"}) {
    EXPECT_EQ(FromFormerNames(text), text);
  }
}

TEST(Precisions, HaveOneNameHoweverTheyAreWritten) {
  for (const auto& [text, name] : std::map<std::string, std::string>{
           {"e2m3fn", "e2m3"},
           {"e2m3/e2m3:inf=none,nan=none", "e2m3"},
           {"bf16", "bf16"},
           {"e3m3:nan=none,inf=none/e5m2", "e3m3:inf=none,nan=none/e5m2"},
           {"e4m3fn/e4m3fn", "e4m3fn"}}) {
    EXPECT_EQ(Precision(text).name, name);
    EXPECT_EQ(Precision(name).keys, Precision(text).keys);
  }
}

TEST(InterventionConfig, TurnsOnWhatIsNamedAndNothingElse) {
  const Settings settings = SettingsWith(With(Tiny(), "clip-norm", "0.5"));
  TrainConfig none = ConfigOf(settings, {"none", "e2m3"});
  EXPECT_EQ(none.optimizer.clip_norm, 0);
  EXPECT_FALSE(none.model.qk_norm);
  EXPECT_FALSE(none.model.layer_scale.has_value());
  none.optimizer.clip_norm = 0.5;
  EXPECT_EQ(WriteTrainConfig(ConfigOf(settings, {"clip", "e2m3"})), WriteTrainConfig(none));
  none.model.qk_norm = true;
  none.model.layer_scale = 0.0f;
  EXPECT_EQ(WriteTrainConfig(ConfigOf(settings, {"clip+qk-norm+layer-scale", "e2m3"})),
            WriteTrainConfig(none));
}

TEST(InterventionConfig, PrecisionsDifferInNothingElse) {
  const Settings settings = SettingsWith(Tiny());
  TrainConfig config = ConfigOf(settings, {"none", "e3m3/e5m2"});
  EXPECT_EQ(config.linear.all.kind, "tensor-wise");
  EXPECT_EQ(config.linear.all.format, "e3m3");
  EXPECT_EQ(config.linear.all.gradient_format, "e5m2");
  EXPECT_EQ(config.linear.all.high_precision, "bf16");
  config.linear.all.kind = "standard";
  config.linear.all.format = config.linear.all.gradient_format = "";
  EXPECT_EQ(WriteTrainConfig(config), WriteTrainConfig(ConfigOf(settings, {"none", "bf16"})));
}

// Steps 0, every, 2 every, ...: no fewer than asked for, and no more than they need be.
TEST(InterventionConfig, TakesNoFewerSnapshotsThanAskedFor) {
  for (uint64_t snapshots = 1; snapshots <= 10; ++snapshots) {
    const Settings settings = SettingsWith(With(Tiny(), "snapshots", std::to_string(snapshots)));
    const uint64_t every = ConfigOf(settings, {"none", "bf16"}).telemetry.tensors_every;
    EXPECT_LE(every * snapshots, 10u) << snapshots;
    EXPECT_GT((every + 1) * snapshots, 10u) << snapshots;
  }
}

TEST(InterventionConfig, TakesEveryStress) {
  const TrainConfig config = ConfigOf(SettingsWith({{"plant-point", "image.*"},
                                                    {"plant-channel", "5"},
                                                    {"plant-value", "-7"},
                                                    {"input-tail", "1.5"},
                                                    {"scaled-branches", "no"}}),
                                      {"none", "bf16"});
  EXPECT_EQ(config.stress.point, "image.*");
  EXPECT_EQ(config.stress.channel, 5u);
  EXPECT_EQ(config.stress.value, -7);
  EXPECT_EQ(config.stress.input_tail, 1.5);
  EXPECT_FALSE(config.model.scaled_branches);
}

// The control of a run with a stress has neither a plant nor stretched pixels.
TEST(InterventionConfig, UnstressedIsBf16WithoutTheStress) {
  const Settings settings = SettingsWith(With(Tiny(), "input-tail", "1"));
  TrainConfig plain = ConfigOf(settings, {"none", "bf16"});
  EXPECT_FALSE(plain.stress.point.empty());
  plain.stress = {};
  EXPECT_EQ(WriteTrainConfig(ConfigOf(settings, {"unstressed", "bf16"})), WriteTrainConfig(plain));
  EXPECT_EQ(Fp8Interventions().trials(settings).at(0).label, "bf16 unstressed seed=0");
  EXPECT_EQ(Fp8Interventions().trials(SettingsWith(With(Tiny(), "plant-point", ""))).at(0).label,
            "bf16 none seed=0");
}

TEST(InterventionConfig, IsThePapersByDefault) {
  const TrainConfig config = ConfigOf(SettingsWith({}), {"none", "bf16"});
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kStableAdamW);
  EXPECT_EQ(config.optimizer.beta2, 0.99);
  EXPECT_EQ(config.schedule.final, 0);
  EXPECT_EQ(config.model.patch_dropout, 0.5);
  EXPECT_EQ(config.storage.activations.name, "bf16");
}

std::string TrialsMessage(const Overrides& overrides) {
  return ErrorOf([&] { Fp8Interventions().trials(SettingsWith(overrides)); });
}

// Those of its own; the engine's test has the others.
TEST(Fp8Interventions, BadOptionsAreNamed) {
  EXPECT_EQ(TrialsMessage(Tiny()), "no error");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"interventions", "clip+"},
      {"interventions", "unstressed"},
      {"formats", ""},
      {"formats", "e9m9"},
      {"formats", "e2m3,e4m3fn/"},
      {"formats", "/e5m2"},
      {"formats", "e4m3fn/e5m2/e5m2"},
      {"formats", "fp32"},
      {"formats", "e8m0fnu"},
      {"clip-norm", "0"},
      {"scaled-branches", "maybe"},
      {"plant-point", "nowhere"},
      {"plant-point", "image.blocks.0.attention.core"},
      {"plant-channel", "16"},
      {"plant-channel", "-1"},
      {"plant-value", "1e31"},
      {"plant-value", "nan"},
      {"input-tail", "-1"},
      {"input-tail", "5"},
      {"diverged-above", "0.5"},
      {"snapshots", "0"},
      {"snapshots", "11"},
      {"stress-chosen-on", "x"}};
  for (const auto& [option, value] : bad) {
    EXPECT_THAT(TrialsMessage(With(Tiny(), option, value)), HasSubstr("--" + option)) << value;
  }
}

Tables RunTrial(const Overrides& overrides,
                const std::string& intervention,
                const std::string& format) {
  const Experiment experiment = Fp8Interventions();
  const Settings settings = SettingsWith(overrides);
  const Trial trial{"trial", 3, {{"intervention", intervention}, {"format", format}}, 1};
  const numsim::experiments::Rows rows = experiment.run(settings, trial);
  Tables tables;
  for (const TableSpec& spec : experiment.tables) {
    Table& table = tables[spec.name];
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
    if (rows.contains(spec.name)) table.rows = rows.at(spec.name);
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << spec.name;
  }
  return tables;
}

// The mean magnitude with the planted channel is known from that without it.
TEST(Fp8Training, FeaturesHoldThePlantedValueOnlyWhereLayerScaleDoesNotStopIt) {
  const Overrides overrides = With(Tiny(), "plant-value", "1000");
  const Tables without = RunTrial(overrides, "none", "e2m3");
  const Table& features = without.at("features");
  // Before, halfway and after; two blocks of images and one of text.
  ASSERT_EQ(features.rows.size(), 3 * 3u);
  EXPECT_EQ(features.Text(3, "step"), "5");
  EXPECT_EQ(features.Text(6, "step"), "10");
  EXPECT_EQ(features.Text(6, "valid_loss"), without.at("final").Text(0, "valid_loss"));
  for (size_t r = 0; r < features.rows.size(); ++r) {
    const double max = features.Number(r, "max_abs");
    const double rest = features.Number(r, "mean_abs_rest");
    EXPECT_NEAR(max, 1000, 20) << r;
    EXPECT_LT(rest, 10) << r;
    EXPECT_NEAR(features.Number(r, "mean_abs"), (1000 + 15 * rest) / 16, 1.5) << r;
  }
  const Tables with = RunTrial(overrides, "layer-scale", "e2m3");
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(with.at("features").Text(r, "step"), "0");
    EXPECT_LT(with.at("features").Number(r, "max_abs"), 10) << r;
  }
}

TEST(Fp8Training, RowsAreOfTheStepsThatWereAskedFor) {
  const Tables tables = RunTrial(Tiny(), "clip", "e3m2/e5m2");
  const Table& curves = tables.at("curves");
  std::vector<std::string> steps;
  for (size_t r = 0; r < curves.rows.size(); ++r) steps.push_back(curves.Text(r, "step"));
  EXPECT_EQ(steps, (std::vector<std::string>{"0", "5", "10"}));
  EXPECT_EQ(curves.Text(0, "intervention"), "clip");
  EXPECT_EQ(curves.Text(0, "format"), "e3m2/e5m2");
  EXPECT_EQ(curves.Text(0, "seed"), "3");
  const Table& quantized = tables.at("quantised");
  ASSERT_EQ(quantized.rows.size(), 2 * 3u);
  for (size_t r = 0; r < quantized.rows.size(); ++r) {
    EXPECT_EQ(quantized.Text(r, "step"), r < 3 ? "0" : "5");
    EXPECT_EQ(quantized.Text(r, "operand"), std::vector<std::string>({"X", "W", "G"})[r % 3]);
    EXPECT_GE(quantized.Number(r, "underflow"), 0);
    EXPECT_GE(quantized.Number(r, "underflow_worst"), quantized.Number(r, "underflow"));
    EXPECT_LE(quantized.Number(r, "underflow_worst"), 1);
    EXPECT_GT(quantized.Number(r, "sqnr_db"), 0);
  }
  const Table& last = tables.at("final");
  ASSERT_EQ(last.rows.size(), 1u);
  EXPECT_EQ(last.Text(0, "status"), "finished");
  EXPECT_EQ(last.Text(0, "steps"), "10");
  EXPECT_NEAR(last.Number(0, "chance_loss"), std::log(4.0), 1e-12);
  EXPECT_EQ(last.Number(0, "start_loss"), curves.Number(0, "loss"));
  EXPECT_GE(last.Number(0, "zero_shot"), 0);
  EXPECT_LE(last.Number(0, "zero_shot"), 1);
}

TEST(Fp8Training, Bf16IsNotMeasuredAsQuantised) {
  EXPECT_TRUE(RunTrial(Tiny(), "none", "bf16").at("quantised").rows.empty());
}

TEST(Fp8Training, DivergenceEndsItWithAnInfiniteLoss) {
  Overrides overrides = With(Tiny(), "lr", "100");
  overrides["diverged-above"] = "1.01";
  overrides["warmup"] = "0";
  overrides["steps"] = "40";
  const Tables tables = RunTrial(overrides, "layer-scale", "e2m3");
  const Table& last = tables.at("final");
  ASSERT_EQ(last.Text(0, "status"), "diverged");
  EXPECT_LT(last.Number(0, "steps"), 40);
  EXPECT_EQ(last.Text(0, "valid_loss"), "inf");
  EXPECT_EQ(last.Text(0, "zero_shot"), "nan");
}

TEST(Fp8Training, OtherModelsHaveOneTower) {
  const Overrides vit = With(Tiny(), "model", "vit");
  const Tables images = RunTrial(vit, "none", "e2m3");
  ASSERT_EQ(images.at("features").rows.size(), 6u);
  EXPECT_EQ(images.at("features").Text(0, "tower"), "image");
  EXPECT_EQ(images.at("final").Text(0, "zero_shot"), "nan");
  EXPECT_NEAR(images.at("final").Number(0, "chance_loss"), std::log(10.0), 1e-12);
  const Tables text = RunTrial(With(vit, "model", "llama"), "none", "e2m3");
  EXPECT_EQ(text.at("features").Text(0, "tower"), "text");
  EXPECT_NEAR(text.at("final").Number(0, "chance_loss"), std::log(256.0), 1e-12);
}

TEST(Fp8Interventions, StopsChangeNothing) {
  const Experiment experiment = Fp8Interventions();
  const Settings settings = SettingsWith(Tiny());
  ExpectStopsChangeNothing(experiment, settings, experiment.trials(settings).back());
}

}  // namespace
}  // namespace numsim::experiments::fp8_interventions
