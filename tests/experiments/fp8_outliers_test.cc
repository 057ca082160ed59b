// The experiment `fp8-outliers`: recipes, plants, trainings against the trainer itself, claims from
// hand-made tables.
#include "experiments/fp8_outliers/fp8_outliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/fp8_outliers/identity.h"
#include "experiments/fp8_outliers/plant.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/trial_toml.h"
#include "numsim/base/parallel.h"
#include "numsim/train/trainer.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::fp8_outliers {
namespace {

using study::ConfigOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that trains in milliseconds.
const Overrides kTiny = TinyRun("fp8-outliers");

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(Fp8Outliers(), "quick", 0, seeds, overrides);
}

std::vector<Trial> Trials(const Settings& settings) { return Fp8Outliers().trials(settings); }
Rows Measure(const Settings& settings, const Trial& trial) {
  return Fp8Outliers().run(settings, trial);
}

std::string ComplaintAbout(const std::string& name, const std::string& value) {
  return ErrorOf([&] { Trials(SettingsWith(With(kTiny, name, value))); });
}

TEST(Fp8Outliers, HasATrialPerPlantAndPerScratchTraining) {
  std::vector<std::string> labels;
  for (const Trial& trial : Trials(SettingsWith(kTiny))) labels.push_back(trial.label);
  EXPECT_THAT(labels,
              ElementsAre("none all 4e-3 seed=0",
                          "once:1e6 all 4e-3 seed=0",
                          "scratch bf16 4e-3 seed=0",
                          "scratch te-max 4e-3 seed=0",
                          "scratch bf16 1e-3 seed=0",
                          "scratch bf16-smooth 1e-3 seed=0",
                          "scratch bf16-smooth 4e-3 seed=0"));
  EXPECT_EQ(Trials(SettingsWith(kTiny, 3)).size(), 3 * labels.size());
}

TEST(Fp8Outliers, BadOptionsAreNamed) {
  EXPECT_THAT(ComplaintAbout("plants", "twice:3"), HasSubstr("--plants: 'twice:3' is not one of"));
  EXPECT_THAT(ComplaintAbout("plants", "once"), HasSubstr("expected once:SIZE"));
  EXPECT_THAT(ComplaintAbout("plants", "none:3"), HasSubstr("expected none"));
  EXPECT_THAT(ComplaintAbout("plants", "once:0.5"), HasSubstr("--plants"));
  EXPECT_THAT(ComplaintAbout("plants", "none,none"), HasSubstr("none is listed twice"));
  EXPECT_THAT(ComplaintAbout("recipes", "bf16,te-mxa"), HasSubstr("did you mean te-max"));
  EXPECT_THAT(ComplaintAbout("recipes", "te-max,bf16"), HasSubstr("expected bf16"));
  EXPECT_THAT(ComplaintAbout("recipes", "bf16,te-max-gelu"), HasSubstr("has no SwiGLU"));
  EXPECT_THAT(ComplaintAbout("scratch", "te-maximum"), HasSubstr("--scratch"));
  EXPECT_THAT(ComplaintAbout("lead", "12"), HasSubstr("--lead 12"));
  EXPECT_THAT(ComplaintAbout("blocks", "2"), HasSubstr("--blocks"));
  EXPECT_THAT(ComplaintAbout("blocks", "1,1"), HasSubstr("listed twice"));
}

// The recipes of whole models that `numsim train` has by a name of its own.
TEST(Fp8Outliers, RecipesAreThoseOfNumsimTrain) {
  const Settings settings = SettingsWith(kTiny);
  const TrainConfig plain = ConfigOf(Fp8OutliersStudy(), settings, {"none", "bf16", "4e-3"}, 0);
  const std::vector<std::pair<std::string, std::string>> recipes = {
      {"bf16", "bf16"},
      {"te-max", "fp8-delayed"},
      {"te-current", "fp8-current"},
      {"row", "fp8-row-wise"},
      {"block", "fp8-block"},
      {"w3-bf16", "fp8-delayed-w3-bf16"},
      {"smooth", "fp8-delayed-smooth"},
      {"fishman", "fp8-fishman"},
      {"fishman-smooth", "fp8-fishman-smooth"}};
  for (const auto& [recipe, name] : recipes) {
    TrainConfig expected = plain;
    ApplyTrainRecipe(name, expected);
    EXPECT_EQ(WriteTrainConfig(ConfigOf(Fp8OutliersStudy(), settings, {"none", recipe, "4e-3"}, 0)),
              WriteTrainConfig(expected))
        << recipe;
  }
  const TrainConfig other = ConfigOf(Fp8OutliersStudy(),
                                     SettingsWith(With(kTiny, "history", "64")),
                                     {"none", "w3-bf16", "4e-3"},
                                     0);
  EXPECT_EQ(other.linear.all.delayed->history, 64u);
  EXPECT_EQ(other.linear.overrides.at(0).precision.delayed->history, 64u);
}

TEST(Fp8Outliers, TheLargestPlantOfAKindComesFirst) {
  const Settings settings = SettingsWith(With(kTiny, "plants", "once:10,none,once:1e3,every:5"));
  EXPECT_THAT(PlantsOf(settings, "once"), ElementsAre("once:1e3", "once:10"));
  EXPECT_THAT(PlantsOf(settings, "weights"), ElementsAre());
  EXPECT_EQ(ParsePlant("every:2.5e3").size, 2500);
}

TEST(Fp8Outliers, AStepIsBadIfItSaturatesOrFlushes) {
  EXPECT_TRUE(Saturates(0.001, 19.9));
  EXPECT_FALSE(Saturates(0.001, 20.1));
  EXPECT_FALSE(Saturates(0, 5));
  EXPECT_TRUE(Flushes(0.51));
  EXPECT_FALSE(Flushes(0.5));
}

// ---- trainings

Trial TrialOf(const std::string& plant, const std::string& recipe = "all", uint64_t seed = 0) {
  return {.label = "",
          .seed = seed,
          .parameters = {{"plant", plant}, {"recipe", recipe}, {"lr", "4e-3"}}};
}

// Returns a cell of the row of a recipe.
Cell CellOf(const Rows& rows, const std::string& recipe, const std::string& column) {
  for (const TableSpec& spec : Fp8Outliers().tables) {
    if (spec.name != kRunsTable) continue;
    for (const Row& row : rows.at(spec.name)) {
      if (row.at(1).Text() != recipe) continue;
      for (size_t i = 0; i < spec.columns.size(); ++i) {
        if (spec.columns[i].name == column) return row.at(i);
      }
    }
  }
  ADD_FAILURE() << recipe << " " << column;
  return {};
}
double NumberOf(const Rows& rows, const std::string& recipe, const std::string& column) {
  return CellOf(rows, recipe, column).Number();
}

// A trial from scratch is a file of `numsim train`, and gives the same loss.
TEST(Fp8Outliers, ATrialFromScratchIsRepeatedByItsFile) {
  std::vector<std::string> assignments;
  for (const auto& [name, value] : kTiny) assignments.push_back(name + "=" + value);
  const std::string toml = TrialToml(Fp8Outliers(), "quick", assignments, 3);
  EXPECT_THAT(toml, HasSubstr("scratch te-max 4e-3 seed=0"));
  TrainConfig config = ParseTrainConfig(toml, "trial", {}, {});
  Trainer trainer(config, OpenData(config.data));
  while (trainer.status() == TrainStatus::kRunning) trainer.Step();
  const Rows rows = Measure(SettingsWith(kTiny), TrialOf("scratch", "te-max"));
  EXPECT_EQ(trainer.Validate().Mean(), NumberOf(rows, "te-max", "valid_loss"));
  EXPECT_THAT(ErrorOf([&] { TrialToml(Fp8Outliers(), "quick", assignments, 1); }),
              HasSubstr("--trial 1: 'once:1e6 all 4e-3 seed=0' is no single file"));
}

// Every recipe goes on from the same checkpoint: bf16 is an uninterrupted training.
TEST(Fp8Outliers, Bf16IsTheTrainingFromItsFirstStep) {
  const Settings settings = SettingsWith(kTiny);
  const Rows planted = Measure(settings, TrialOf("none"));
  const Rows scratch = Measure(settings, TrialOf("scratch", "bf16"));
  EXPECT_EQ(CellOf(planted, "bf16", "valid_loss"), CellOf(scratch, "bf16", "valid_loss"));
  EXPECT_EQ(NumberOf(planted, "bf16", "steps"), 22);
  EXPECT_EQ(NumberOf(planted, "bf16", "bad_steps"), 0);
}

TEST(Fp8Outliers, OneTokenSaturatesADelayedScaleAndThenFlushesItsHistory) {
  const Rows rows = Measure(SettingsWith(kTiny), TrialOf("once:1e6"));
  EXPECT_EQ(NumberOf(rows, "te-max", "saturated_steps"), 1);
  EXPECT_EQ(NumberOf(rows, "te-max", "first_bad"), 0);
  EXPECT_EQ(NumberOf(rows, "te-max", "flushed_steps"), 7);  // of the 8 steps from the outlier on
  EXPECT_EQ(NumberOf(rows, "te-max", "last_bad"), 7);
  EXPECT_EQ(NumberOf(rows, "te-current", "saturated_steps"), 0);
  EXPECT_EQ(NumberOf(rows, "te-current", "flushed_steps"), 1);
  EXPECT_EQ(NumberOf(rows, "smooth", "bad_steps"), 0);
  EXPECT_EQ(NumberOf(rows, "smooth-token", "saturated_steps"), 1);
  EXPECT_TRUE(std::isnan(NumberOf(rows, "bf16", "first_bad")));
  // The trace of the first seed: 12 steps of each recipe, the outlier in step 0.
  EXPECT_EQ(rows.at("trace").size(), 5 * 12u);
  EXPECT_FALSE(Measure(SettingsWith(kTiny), TrialOf("once:1e6", "all", 1)).contains("trace"));
}

TEST(Fp8Outliers, ARepeatedTokenComesEveryPeriod) {
  const Settings settings = SettingsWith(With(With(kTiny, "period", "3"), "plants", "every:1e6"));
  const Rows rows = Measure(settings, TrialOf("every:1e6"));
  EXPECT_EQ(NumberOf(rows, "te-current", "flushed_steps"), 3);  // steps 0, 3 and 6
  EXPECT_EQ(NumberOf(rows, "te-current", "last_bad"), 6);
}

TEST(Fp8Outliers, ThreadsDoNotChangeARow) {
  const Settings settings = SettingsWith(With(kTiny, "recipes", "bf16,fishman-smooth,clamp"));
  const int threads = ThreadCount();
  SetThreadCount(1);
  const Rows one = Measure(settings, TrialOf("weights:50"));
  SetThreadCount(3);
  EXPECT_EQ(Measure(settings, TrialOf("weights:50")), one);
  SetThreadCount(threads);
}

// ---- plants

class Fp8OutliersPlants : public ::testing::Test {
 protected:
  TrainConfig config_ =
      ConfigOf(Fp8OutliersStudy(), SettingsWith(kTiny), {"none", "bf16", "4e-3"}, 0);
  Trainer trainer_{config_, OpenData(config_.data)};
};

// Records what down sees in one block.
struct Hidden final : PassObserver<float> {
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role == TensorRole::kActivation && point == "blocks.1.mlp.hidden") {
      rows = values.rows;
      cols = values.cols;
      hidden.assign(values.Span().begin(), values.Span().end());
    }
  }
  float Largest(size_t column) const {
    float largest = 0;
    for (size_t row = 0; row < rows; ++row) {
      largest = std::max(largest, std::abs(hidden[row * cols + column]));
    }
    return largest;
  }
  size_t rows = 0, cols = 0;
  std::vector<float> hidden;
};

Hidden Look(Trainer& trainer) {
  Batch batch;
  trainer.NextBatch(batch);
  Hidden hidden;
  Pass<float> pass;
  pass.observer = &hidden;
  trainer.model().Forward(pass, batch);
  return hidden;
}

TEST_F(Fp8OutliersPlants, MagnitudesAreThoseOfTheBlock) {
  const std::vector<CleanMlp> cleans = MeasureMlps(trainer_, {"blocks.0", "blocks.1"});
  ASSERT_EQ(cleans.size(), 2u);
  const Hidden hidden = Look(trainer_);
  EXPECT_EQ(cleans[1].block, "blocks.1");
  EXPECT_EQ(cleans[1].channel, hidden.Largest(0));
  float largest = 0;
  for (size_t column = 0; column < hidden.cols; ++column) {
    largest = std::max(largest, hidden.Largest(column));
  }
  EXPECT_EQ(cleans[1].product, largest);
  EXPECT_GT(cleans[1].gate, 0);
}

// Up to the rounding of bf16 operands: swish is nearly the identity at a size of 10^6, so that the
// product is that of the clean model times the factor, and the column shrinks by as much.
TEST_F(Fp8OutliersPlants, GrownWeightsGiveTheProductAndKeepTheOutput) {
  const CleanMlp clean = MeasureMlps(trainer_, {"blocks.1"}).front();
  ParameterList<float>& parameters = trainer_.model().parameters();
  const MatrixSpan<float> down = parameters.Find("blocks.1.mlp.down.weight")->value.View();
  const MatrixSpan<float> up = parameters.Find("blocks.1.mlp.gate_up.weight")->value.View();
  const float column = down.Row(3)[0], other = down.Row(3)[1], gate = up.Row(0)[2];
  GrowingWeights weights(clean, parameters);
  weights.Impose(1e6, parameters);
  const double product = Look(trainer_).Largest(0);
  EXPECT_NEAR(product / (1e6 * clean.product), 1, 0.02);
  EXPECT_NEAR(down.Row(3)[0] * product / (column * clean.channel), 1, 0.02);
  EXPECT_EQ(down.Row(3)[1], other);
  EXPECT_EQ(up.Row(0)[2], up.Row(down.cols)[2]);
  EXPECT_NEAR(up.Row(0)[2] / gate, std::sqrt(1e6 * clean.product) / clean.gate, 1);
}

TEST_F(Fp8OutliersPlants, AWatchAddsToOneTokenOfOneChannel) {
  Watch watch({{.block = "b", .product = 4}});
  std::vector<float> values(3 * 8, 1.0f);
  const MatrixSpan<float> gate_up(values.data(), 3, 8);
  watch.Begin(0);
  watch.Tensor("b.mlp.gate_up", TensorRole::kActivation, gate_up);
  EXPECT_EQ(values, std::vector<float>(24, 1.0f));
  watch.Begin(100);  // sqrt(100 * 4) = 20
  watch.Tensor("b.mlp.gate_up", TensorRole::kGradient, gate_up);
  watch.Tensor("c.mlp.gate_up", TensorRole::kActivation, gate_up);
  EXPECT_EQ(values, std::vector<float>(24, 1.0f));
  watch.Tensor("b.mlp.gate_up", TensorRole::kActivation, gate_up);
  std::vector<float> expected(24, 1.0f);
  expected[0] = expected[4] = 21;
  EXPECT_EQ(values, expected);
}

// ---- Smooth-SwiGLU by itself

TEST(SmoothSwigluIdentity, GradientsAgreeUpToTheRoundingOfFloat64) {
  const double difference = GradientDifference();
  EXPECT_LT(difference, 1e-13);
  EXPECT_GT(difference, 0);  // they were computed in another way
}

TEST(SmoothSwigluIdentity, MergedScalesChangeNoBitInBf16AndSomeInFp8) {
  const Merging bf16 = MergeScales("bf16");
  EXPECT_EQ(bf16.logits, 4 * 32 * 256u);
  EXPECT_EQ(bf16.different, 0u);
  EXPECT_EQ(bf16.relative, 0);
  const Merging fp8 = MergeScales("fp8-current");
  EXPECT_GT(fp8.different, fp8.logits / 2);
  EXPECT_TRUE(fp8.relative > 1e-3 && fp8.relative < 0.2) << fp8.relative;
}

// ---- claims

// Noise of a loss, whose mean over ten seeds is 0.
double Noise(int seed) { return 0.001 * ((seed * 7) % 5 - 2); }

class Fp8OutliersClaims : public ::testing::Test {
 protected:
  void Run(const std::string& plant,
           const std::string& recipe,
           int seed,
           std::map<std::string, Cell> cells,
           const std::string& lr = "4e-3") {
    cells.insert({{"plant", plant},
                  {"recipe", recipe},
                  {"lr", lr},
                  {"seed", seed},
                  {"parameters", 1000},
                  {"status", "finished"},
                  {"start_loss", 5},
                  {"valid_loss", 2 + 0.1 * seed},
                  {"saturated_steps", 0},
                  {"flushed_steps", 0},
                  {"bad_steps", 0}});
    results_.Add("runs", cells);
  }
  // Ten seeds with these losses above bf16's, up to small noise.
  void Gap(const std::string& plant, const std::string& recipe, double gap, double bad = 0) {
    for (int seed = 0; seed < 10; ++seed) {
      Run(plant,
          recipe,
          seed,
          {{"valid_loss", 2 + 0.1 * seed + gap + Noise(seed)},
           {"bad_steps", bad},
           {"saturated_steps", bad},
           {"flushed_steps", bad}});
    }
  }
  std::string VerdictOf(const std::string& name) { return results_.VerdictOf(name); }

  ResultTables results_{
      Fp8Outliers(),
      {{"plants", "none,once:1e6,every:1e6,weights:100"}, {"scratch-lr", "1e-3,4e-3"}},
      10};
};

// The margin of a loss is 0.02 nats; the noise of a mean is below 0.002.
TEST_F(Fp8OutliersClaims, AnArmSurvivesFailsOrIsUndecided) {
  Gap("once:1e6", "bf16", 0);
  Gap("once:1e6", "te-current", 0.017);
  Gap("once:1e6", "te-recent", 0.02);
  Gap("once:1e6", "te-max", 0.023);
  Gap("once:1e6", "smooth", 0);
  Run("once:1e6", "smooth", 10, {{"status", "diverged"}, {"valid_loss", HUGE_VAL}});
  std::map<std::string, std::string> outcomes;
  results_.Of("arms").ForEach(
      [&](const Frame& arm) { outcomes[arm.Text("recipe")] = arm.Text("outcome"); });
  EXPECT_EQ(outcomes,
            (std::map<std::string, std::string>{{"bf16", "survives"},
                                                {"te-current", "survives"},
                                                {"te-recent", "undecided"},
                                                {"te-max", "fails"},
                                                {"smooth", "fails"}}));
}

TEST(Fp8OutliersFigures, ThreeSizesGiveACurvePerRecipe) {
  ResultTables results(Fp8Outliers(),
                       {{"plants", "once:1e5,none,once:1e3,once:1e4"}, {"recipes", "bf16,te-max"}},
                       1);
  double bad = 7;
  for (const char* plant : {"none", "once:1e5", "once:1e3", "once:1e4"}) {
    for (const char* recipe : {"bf16", "te-max"}) {
      const double loss = std::string(recipe) == "bf16" ? 2 : 2.5;
      results.Add("runs",
                  {{"plant", plant},
                   {"recipe", recipe},
                   {"lr", "4e-3"},
                   {"seed", 0},
                   {"parameters", 1000},
                   {"status", "finished"},
                   {"valid_loss", std::string(plant) == "once:1e3" ? 2.0 : loss},
                   {"bad_steps", bad}});
    }
    ++bad;
  }
  const std::vector<Figure> figures = Fp8Outliers().figures(results.settings(), results.Finish());
  const auto sizes = std::ranges::find(figures, std::string("outliers-sizes"), &Figure::name);
  ASSERT_NE(sizes, figures.end());
  ASSERT_EQ(sizes->panels.size(), 2u);
  for (const Panel& panel : sizes->panels) {
    ASSERT_EQ(panel.series.size(), 1u);
    EXPECT_EQ(panel.series[0].label, "te-max");
    EXPECT_THAT(panel.series[0].x, ElementsAre(1e3, 1e4, 1e5));
  }
  EXPECT_THAT(sizes->panels[0].series[0].y, ElementsAre(9, 10, 8));
  const Panel& gaps = sizes->panels[1];
  EXPECT_THAT(gaps.series[0].y, ElementsAre(0, 0.5, 0.5)) << "0 is not shown, and not changed";
  EXPECT_EQ(gaps.y.low, 1e-3);
  EXPECT_GT(gaps.y.high, 0.5);
}

TEST_F(Fp8OutliersClaims, AreSupportedWhereThePaperIsReproduced) {
  for (const char* plant : {"none", "once:1e6", "every:1e6", "weights:100"}) Gap(plant, "bf16", 0);
  Gap("once:1e6", "te-max", 1, 9);
  Gap("once:1e6", "te-current", 0, 1);
  Gap("once:1e6", "te-recent", 0, 2);
  Gap("once:1e6", "w3-bf16", 0);
  Gap("once:1e6", "smooth", 0);
  Gap("every:1e6", "te-max", 1, 9);
  Gap("every:1e6", "smooth", 0, 0);
  Gap("weights:100", "te-max", 0);
  EXPECT_EQ(VerdictOf("once-spares-bf16"), "supported");
  EXPECT_EQ(VerdictOf("every-spares-bf16"), "supported");
  EXPECT_EQ(VerdictOf("weights-spares-bf16"), "not tested") << "these weights harm nothing";
  EXPECT_EQ(VerdictOf("outlier-saturates-delayed"), "supported");
  EXPECT_EQ(VerdictOf("long-history-loses-the-rest"), "supported");
  EXPECT_EQ(VerdictOf("delayed-costs-loss"), "supported");
  EXPECT_EQ(VerdictOf("w3-in-bf16-restores"), "supported");
  EXPECT_EQ(VerdictOf("smooth-restores"), "supported");
  EXPECT_EQ(VerdictOf("smooth-prevents-bad-steps"), "supported");
  EXPECT_EQ(VerdictOf("code-smooth-restores"), "not tested");
}

TEST_F(Fp8OutliersClaims, AreContradictedWhereItIsNot) {
  Gap("none", "bf16", 0);
  Gap("once:1e6", "bf16", 0.2);
  Gap("once:1e6", "te-max", 0.2, 0);
  Gap("once:1e6", "te-current", 0.2, 0);
  Gap("once:1e6", "w3-bf16", 0.5);
  Gap("once:1e6", "smooth", 0.5);
  EXPECT_EQ(VerdictOf("once-spares-bf16"), "contradicted");
  EXPECT_EQ(VerdictOf("outlier-saturates-delayed"), "not tested") << "0 steps to 0 is no ratio";
  EXPECT_EQ(VerdictOf("delayed-costs-loss"), "contradicted");
  EXPECT_EQ(VerdictOf("w3-in-bf16-restores"), "contradicted");
  EXPECT_EQ(VerdictOf("smooth-restores"), "contradicted");
}

TEST_F(Fp8OutliersClaims, OneSizeOfAnOutlierIsOneClaim) {
  ResultTables results(Fp8Outliers(), {{"plants", "none,once:3e4,once:1e6"}}, 10);
  const auto add = [&](const char* plant, const char* recipe, double gap) {
    for (int seed = 0; seed < 10; ++seed) {
      results.Add("runs",
                  {{"plant", plant},
                   {"recipe", recipe},
                   {"lr", "4e-3"},
                   {"seed", seed},
                   {"parameters", 1000},
                   {"status", "finished"},
                   {"valid_loss", 2 + gap + Noise(seed)}});
    }
  };
  for (const char* plant : {"once:3e4", "once:1e6"}) add(plant, "bf16", 0);
  add("once:3e4", "te-max", 0.005);
  add("once:1e6", "te-max", 1);
  add("once:1e6", "fishman", 0.003);
  EXPECT_EQ(results.VerdictOf("delayed-costs-loss"), "supported");
  EXPECT_EQ(results.VerdictOf("smaller-outlier-costs-loss"), "contradicted");
  EXPECT_EQ(results.VerdictOf("own-recipe-loses-by-one-outlier"), "contradicted");
  EXPECT_EQ(results.VerdictOf("own-recipe-loses-by-repeated-outliers"), "not tested");
}

// More saturated steps than none in one seed of ten is no evidence, and more than half of the bad steps have to
// go.
TEST_F(Fp8OutliersClaims, NumbersOfStepsAreComparedByTheirRatio) {
  const auto verdict = [&](const char* plant, const char* recipe, const char* name, auto count) {
    results_.Clear("runs");
    for (int seed = 0; seed < 10; ++seed) {
      const auto add = [&](const char* of, int steps) {
        Run(plant,
            of,
            seed,
            {{"saturated_steps", steps}, {"flushed_steps", steps}, {"bad_steps", steps}});
      };
      add(recipe, count(seed).first);
      add(std::string(recipe) == "te-max" ? "te-current" : "te-max", count(seed).second);
    }
    return VerdictOf(name);
  };
  const char* const saturates = "outlier-saturates-delayed";
  const auto once = [&](auto count) { return verdict("once:1e6", "te-max", saturates, count); };
  EXPECT_EQ(once([](int) { return std::pair(1, 0); }), "supported");
  EXPECT_EQ(once([](int seed) { return std::pair(seed == 4 ? 9 : 0, 0); }), "inconclusive");
  EXPECT_EQ(once([](int) { return std::pair(40, 41); }), "inconclusive");
  EXPECT_EQ(once([](int) { return std::pair(0, 1); }), "contradicted");
  const char* const prevents = "smooth-prevents-bad-steps";
  const auto every = [&](auto count) { return verdict("every:1e6", "smooth", prevents, count); };
  EXPECT_EQ(every([](int) { return std::pair(0, 80); }), "supported");
  EXPECT_EQ(every([](int) { return std::pair(30, 80); }), "supported");
  EXPECT_EQ(every([](int) { return std::pair(40, 80); }), "inconclusive");
  EXPECT_EQ(every([](int) { return std::pair(50, 80); }), "contradicted");
  EXPECT_EQ(every([](int seed) { return std::pair(seed < 4 ? 80 : 1, 80); }), "inconclusive");
}

// A growth at which nothing is flushed could not have failed, whatever the losses are.
TEST_F(Fp8OutliersClaims, AGrowthThatFlushesNothingTestsNothing) {
  const auto verdict = [&](double gap, int flushed) {
    results_.Clear("runs");
    Gap("weights:100", "bf16", 0);
    for (int seed = 0; seed < 10; ++seed) {
      Run("weights:100",
          "te-max",
          seed,
          {{"valid_loss", 2 + 0.1 * seed + gap + Noise(seed)},
           {"saturated_steps", 14},
           {"flushed_steps", seed == 3 ? flushed : 0}});
    }
    return VerdictOf("growing-weights-cost-loss");
  };
  EXPECT_EQ(verdict(0, 0), "not tested");
  EXPECT_EQ(verdict(1, 0), "not tested");
  EXPECT_EQ(verdict(0, 5), "contradicted");
  EXPECT_EQ(verdict(1, 5), "supported");
}

// A recipe that diverges in half of the seeds does not blur the comparison of the others, and is seen to
// fail.
TEST_F(Fp8OutliersClaims, ARecipeThatFailsDoesNotWidenTheOthers) {
  Gap("once:1e6", "bf16", 0);
  Gap("once:1e6", "smooth", 0);
  for (int seed = 0; seed < 10; ++seed) {
    Run("once:1e6",
        "te-max",
        seed,
        {{"status", seed % 2 ? "diverged" : "finished"},
         {"valid_loss", seed % 2 ? HUGE_VAL : 4.0}});
  }
  EXPECT_EQ(VerdictOf("smooth-restores"), "supported");
}

TEST_F(Fp8OutliersClaims, ADivergedRunHasTheLossOfItsStart) {
  Gap("once:1e6", "bf16", 0);
  for (int seed = 0; seed < 10; ++seed) {
    Run("once:1e6",
        "te-max",
        seed,
        {{"status", "diverged"}, {"valid_loss", HUGE_VAL}, {"start_loss", 4 + 0.1 * seed}});
  }
  EXPECT_EQ(VerdictOf("delayed-costs-loss"), "supported");
}

TEST_F(Fp8OutliersClaims, SmoothSwigluInBf16IsJudgedAtEachRate) {
  for (const char* lr : {"1e-3", "4e-3"}) {
    for (int seed = 0; seed < 10; ++seed) {
      Run("scratch", "bf16", seed, {}, lr);
      Run("scratch", "bf16-smooth-token", seed, {{"valid_loss", 2 + 0.1 * seed + Noise(seed)}}, lr);
    }
  }
  EXPECT_EQ(VerdictOf("smooth-lowers-bf16-loss"), "contradicted");
}

TEST_F(Fp8OutliersClaims, EqualLossesRefuteThatSmoothSwigluChangesBf16) {
  Gap("scratch", "bf16", 0);
  EXPECT_EQ(VerdictOf("smooth-per-channel-changes-bf16"), "not tested");
  Gap("scratch", "bf16-smooth", 0);
  EXPECT_EQ(VerdictOf("smooth-per-channel-changes-bf16"), "exact: refuted");
}

TEST_F(Fp8OutliersClaims, OneUnequalLossHolds) {
  Gap("scratch", "bf16", 0);
  for (int seed = 0; seed < 10; ++seed) {
    Run("scratch",
        "bf16-smooth",
        seed,
        {{"valid_loss", seed == 3 ? 9 : 2 + 0.1 * seed + Noise(seed)}});
  }
  EXPECT_EQ(VerdictOf("smooth-per-channel-changes-bf16"), "exact: holds");
}

// All recipes from one checkpoint, and a training from scratch.
TEST(Fp8Outliers, StopsChangeNothing) {
  const Settings settings = SettingsWith(With(kTiny, "recipes", "bf16,te-max"));
  const std::vector<Trial> trials = Trials(settings);
  ExpectStopsChangeNothing(Fp8Outliers(), settings, trials.at(1));
  ExpectStopsChangeNothing(Fp8Outliers(), settings, trials.at(2));
}

}  // namespace
}  // namespace numsim::experiments::fp8_outliers
