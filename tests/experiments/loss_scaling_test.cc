// The experiment `loss-scaling`: arms, trainings against the trainer itself, claims from hand-made
// tables.
#include "experiments/loss_scaling/loss_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/train/trainer.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::loss_scaling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that trains in milliseconds.
const Overrides kTiny = TinyRun("loss-scaling");

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(LossScaling(), "quick", 0, seeds, overrides);
}

std::vector<Trial> Trials(const Overrides& overrides, int seeds = 1) {
  return LossScaling().trials(SettingsWith(overrides, seeds));
}

TrainConfig ConfigOf(const Arm& arm) {
  return study::ConfigOf(LossScalingStudy(), SettingsWith(kTiny), arm, 0);
}

TEST(LossScaling, HasAnArmPerScalerScaleAndEvent) {
  std::vector<std::string> labels;
  for (const Trial& trial : Trials(kTiny)) labels.push_back(trial.label);
  EXPECT_THAT(labels,
              ElementsAre("fp32 1 natural seed=0",
                          "dynamic 1024 natural seed=0",
                          "tensor 1024 natural seed=0",
                          "dynamic 1099511627776 natural seed=0",
                          "tensor 1099511627776 natural seed=0",
                          "dynamic 1024 burst seed=0",
                          "tensor 1024 burst seed=0"));
}

TEST(LossScaling, OnlyFp16HasAScaler) {
  const TrainConfig fp32 = ConfigOf({"fp32", "1", "natural"});
  EXPECT_EQ(fp32.loss_scaler.kind, LossScaling::kNone);
  EXPECT_EQ(fp32.loss_scaler.initial, LossScalerConfig().initial);
  TrainConfig fp16 = ConfigOf({"tensor", "1024", "burst"});
  EXPECT_EQ(fp16.loss_scaler.kind, LossScaling::kTensor);
  EXPECT_EQ(fp16.loss_scaler.initial, 1024);
  EXPECT_EQ(fp16.storage.gradients.name, "fp16");
  EXPECT_EQ(fp16.stress.burst_tensor, "image.patches.weight");
  fp16.loss_scaler = {};
  fp16.stress = {};
  fp16.linear.all.high_precision = "fp32";
  fp16.storage = fp32.storage;
  EXPECT_EQ(WriteTrainConfig(fp16), WriteTrainConfig(fp32));
}

TEST(LossScaling, BadOptionsAreNamed) {
  const auto message = [](const char* option, const char* value) {
    return ErrorOf([&] { Trials(With(kTiny, option, value)); });
  };
  EXPECT_THAT(message("scales", "8,0"), HasSubstr("--scales \"0\""));
  EXPECT_THAT(message("scales", "8,8"), HasSubstr("--scales: 8 is listed twice"));
  EXPECT_THAT(message("burst-step", "18"), HasSubstr("--burst-step 18: the burst ends after"));
  EXPECT_THAT(message("burst-tensor", ""), HasSubstr("--burst-tensor: a burst is set without"));
  EXPECT_THAT(message("window", "1"), HasSubstr("--window"));
}

// 2000 steps without a failure double the scale once, and each failure halved it.
TEST(LossScaling, ADynamicScaleTakes2000StepsPerHalving) {
  const LossScalerConfig pytorch{.kind = LossScaling::kDynamic};
  for (int burst = 1; burst <= 5; ++burst) EXPECT_EQ(RecoverySteps(pytorch, burst), 2000u * burst);
  const LossScalerConfig fast{.kind = LossScaling::kDynamic, .growth_interval = 3};
  EXPECT_EQ(RecoverySteps(fast, 4), 12u);
}

TEST(LossScaling, EarlyTensorsAreBeforeBlockOne) {
  for (const char* const early : {"image.patches.weight",
                                  "image.positions",
                                  "image.class_token",
                                  "image.pre_norm.gain",
                                  "image.blocks.0.mlp.up.weight",
                                  "text.embedding.tokens",
                                  "text.blocks.0.attention.qkv.bias"}) {
    EXPECT_TRUE(IsEarly(early)) << early;
  }
  for (const char* const late : {"image.blocks.1.mlp.up.weight", "text.blocks.10.mlp.up.weight"}) {
    EXPECT_FALSE(IsEarly(late)) << late;
    EXPECT_TRUE(IsLate(late)) << late;
  }
  for (const char* const neither :
       {"logit_scale", "image.final_norm.gain", "text.projection.weight"}) {
    EXPECT_FALSE(IsEarly(neither) || IsLate(neither)) << neither;
  }
}

// ---- trainings

Trial TrialOf(const Arm& arm, uint64_t seed = 0) {
  return {.label = "",
          .seed = seed,
          .parameters = {{"scaler", arm[kScaler]}, {"scale", arm[kScale]}, {"event", arm[kEvent]}}};
}
Rows Measure(const Settings& settings, const Trial& trial) {
  return LossScaling().run(settings, trial);
}

// Returns a cell of the row of the run.
Cell CellOf(const Rows& rows, const std::string& column) {
  for (const TableSpec& spec : LossScaling().tables) {
    if (spec.name != "runs") continue;
    for (size_t i = 0; i < spec.columns.size(); ++i) {
      if (spec.columns[i].name == column) return rows.at(spec.name).at(0).at(i);
    }
  }
  ADD_FAILURE() << column;
  return {};
}
double NumberOf(const Rows& rows, const std::string& column) {
  return CellOf(rows, column).Number();
}

size_t TensorCount() {
  const TrainConfig config = ConfigOf({"fp32", "1", "natural"});
  return Trainer(config, OpenData(config.data)).model().parameters().size();
}

TEST(LossScaling, ABurstSkipsTheNetworkOrTheTensor) {
  const Settings settings = SettingsWith(kTiny);
  const Rows dynamic = Measure(settings, TrialOf({"dynamic", "1024", "burst"}));
  EXPECT_EQ(NumberOf(dynamic, "burst_skipped"), 1);
  EXPECT_EQ(NumberOf(dynamic, "steps_skipped"), 3);
  EXPECT_EQ(NumberOf(dynamic, "scale_end"), 128);
  EXPECT_EQ(NumberOf(dynamic, "recovery"), HUGE_VAL);
  const Rows tensor = Measure(settings, TrialOf({"tensor", "1024", "burst"}));
  const auto tensors = static_cast<double>(TensorCount());
  EXPECT_DOUBLE_EQ(NumberOf(tensor, "burst_skipped"), 1 / tensors);
  EXPECT_DOUBLE_EQ(NumberOf(tensor, "updates_skipped"), 3 / (20 * tensors));
  EXPECT_EQ(NumberOf(tensor, "steps_skipped"), 0);
  EXPECT_EQ(NumberOf(tensor, "early"), 1);
  EXPECT_EQ(NumberOf(tensor, "scale_min"), 1024);
  ASSERT_EQ(tensor.at("tensors").size(), 1u);
  EXPECT_EQ(tensor.at("tensors")[0][4].Text(), "image.patches.weight");
  EXPECT_EQ(tensor.at("tensors")[0][6].Text(), "3");
}

TEST(LossScaling, AScaleThatIsFarTooLargeOverflowsByItself) {
  const Settings settings = SettingsWith(kTiny);
  const Rows tensor = Measure(settings, TrialOf({"tensor", "1099511627776", "natural"}));
  EXPECT_GT(NumberOf(tensor, "updates_skipped"), 0.5);
  EXPECT_EQ(NumberOf(tensor, "scale_end"), 0x1p40);
  const Rows dynamic = Measure(settings, TrialOf({"dynamic", "1099511627776", "natural"}));
  const double skipped = NumberOf(dynamic, "steps_skipped");
  EXPECT_GT(skipped, 5);
  EXPECT_GE(NumberOf(dynamic, "scale_min"), 0x1p40 / std::pow(2, skipped));
}

// The loss is that of a training by hand, and the scale that of its optimiser.
TEST(LossScaling, TheRowsAreThoseOfTheTraining) {
  const Settings settings = SettingsWith(kTiny);
  const Arm arm{"dynamic", "1024", "burst"};
  const Rows rows = Measure(settings, TrialOf(arm));
  TrainConfig config = ConfigOf(arm);
  config.telemetry.tensors_every = 0;
  Trainer trainer(config, OpenData(config.data));
  for (size_t step = 0; step < 20; ++step) {
    const Row& row = rows.at("scale").at(step);
    EXPECT_EQ(row[5], Cell(trainer.optimizer().LossScale())) << step;
    trainer.Step();
    EXPECT_EQ(row[6], Cell(trainer.last_loss())) << step;
  }
  EXPECT_EQ(CellOf(rows, "valid_loss"), Cell(trainer.Validate().Mean()));
  EXPECT_FALSE(Measure(settings, TrialOf(arm, 1)).contains("scale"));
}

// A step whose loss is not finite is not taken, also if it is the first.
TEST(LossScaling, AStepThatIsNotTakenHasNoRow) {
  const Arm arm{"tensor", "1024", "natural"};
  const Settings settings = SettingsWith(
      With(kTiny, "keys", "stress.point=image.blocks.0;stress.value=1e30"));  // infinite in fp16
  const Rows none = Measure(settings, TrialOf(arm));
  EXPECT_EQ(CellOf(none, "status"), Cell("diverged"));
  EXPECT_EQ(NumberOf(none, "steps"), 0);
  EXPECT_TRUE(std::isnan(NumberOf(none, "scale_min")));
  EXPECT_TRUE(std::isnan(NumberOf(none, "scale_end")));
  EXPECT_EQ(NumberOf(none, "recovery"), 0);
  EXPECT_FALSE(none.contains("scale"));
}

// ---- claims

class LossScalingClaims : public ::testing::Test {
 protected:
  void Run(const std::string& scaler,
           const std::string& event,
           int seed,
           std::map<std::string, Cell> cells,
           const std::string& scale = "65536") {
    cells.insert({{"scaler", scaler},
                  {"scale", scaler == "fp32" ? "1" : scale},
                  {"event", event},
                  {"seed", seed},
                  {"parameters", 1000},
                  {"status", "finished"},
                  {"start_loss", 4},
                  {"loss_spikes", 0}});
    results_.Add("runs", cells);
  }
  // Ten seeds of every arm at the first scale, with these losses of the burst.
  void AllArms(double dynamic, double tensor, double natural_tensor = 1) {
    for (int seed = 0; seed < 10; ++seed) {
      const double seeds = 0.2 * seed, noise = 0.001 * ((seed * 7) % 5 - 2);
      Run("fp32", "natural", seed, {{"valid_loss", 1 + seeds + noise}});
      Run("tensor", "natural", seed, {{"valid_loss", natural_tensor + seeds - noise}});
      Run("dynamic",
          "burst",
          seed,
          {{"valid_loss", dynamic + seeds + noise}, {"burst_skipped", 1}});
      Run("tensor",
          "burst",
          seed,
          {{"valid_loss", tensor + seeds - noise}, {"burst_skipped", 0.02}});
    }
  }
  std::string VerdictOf(const std::string& name) { return results_.VerdictOf(name); }

  ResultTables results_{LossScaling(), {}, 10};
};

TEST_F(LossScalingClaims, AreSupportedWhereThePaperIsReproduced) {
  AllArms(1.1, 1.0);
  EXPECT_EQ(VerdictOf("tensor-scaler-trains-in-fp16"), "supported");
  EXPECT_EQ(VerdictOf("tensor-scaler-survives-burst"), "supported");
  EXPECT_EQ(VerdictOf("dynamic-costs-loss"), "supported");
  EXPECT_EQ(VerdictOf("dynamic-skips-the-network"), "exact: holds");
  EXPECT_EQ(VerdictOf("recovery-takes-thousands"), "exact: holds");
}

TEST_F(LossScalingClaims, AreContradictedWhereItIsNot) {
  AllArms(1.0, 1.1, 1.2);
  EXPECT_EQ(VerdictOf("tensor-scaler-trains-in-fp16"), "contradicted");
  EXPECT_EQ(VerdictOf("tensor-scaler-survives-burst"), "contradicted");
  EXPECT_EQ(VerdictOf("dynamic-costs-loss"), "contradicted");
}

TEST_F(LossScalingClaims, ATensorScalerThatSkipsMoreThanItsTensorRefutes) {
  AllArms(1.1, 1.0);
  Run("tensor", "burst", 10, {{"valid_loss", 1}, {"burst_skipped", 0.5}});
  EXPECT_EQ(VerdictOf("dynamic-skips-the-network"), "exact: refuted");
}

TEST_F(LossScalingClaims, EarlyTensorsAreJudgedAtTheSmallestScaleThatOverflows) {
  for (int seed = 0; seed < 10; ++seed) {
    Run("tensor", "natural", seed, {{"valid_loss", 1}});
    Run("tensor",
        "natural",
        seed,
        {{"valid_loss", 1}, {"early", 0.99 - 0.001 * (seed % 2)}},
        "1048576");
    results_.Add("tensors",
                 {{"scaler", "tensor"},
                  {"scale", "1048576"},
                  {"event", "natural"},
                  {"seed", seed},
                  {"tensor", "image.patches.weight"},
                  {"early", 1},
                  {"skipped", seed < 9 ? 1 : 0}});
  }
  // Nine updates are too few to say anything about tensors.
  EXPECT_EQ(VerdictOf("early-tensors-alone"), "not tested");
  for (const char* const tensor : {"logit_scale", "text.blocks.1.mlp.up.weight"}) {
    results_.Add("tensors",
                 {{"scaler", "tensor"},
                  {"scale", "1048576"},
                  {"event", "natural"},
                  {"seed", 0},
                  {"tensor", tensor},
                  {"early", 0},
                  {"skipped", 1}});
  }
  EXPECT_EQ(results_.OwnVerdictOf("early-tensors-alone"), "supported");
  EXPECT_EQ(VerdictOf("early-tensors-alone"), "not tested") << "without a control";
}

TEST_F(LossScalingClaims, WithoutAnOverflowEarlyTensorsAreNotTested) {
  AllArms(1, 1);
  EXPECT_EQ(VerdictOf("early-tensors-alone"), "not tested");
  EXPECT_EQ(results_.ClaimOf("early-tensors-alone").result.reason,
            "out of reach: fewer than 10 updates overflowed by themselves in two seeds (--scales)");
}

TEST_F(LossScalingClaims, SpikesCoincideAboveChanceOrNot) {
  for (int seed = 0; seed < 10; ++seed) {
    Run("dynamic",
        "natural",
        seed,
        {{"loss_spikes", 2},
         {"with_gradient", 2},
         {"near_gradient", 0.1},
         {"with_activation", seed % 2},
         {"near_activation", 0.25}});
  }
  EXPECT_EQ(VerdictOf("spikes-with-gradients"), "supported");
  // A quarter of the spikes, and a quarter of all steps.
  EXPECT_NE(VerdictOf("spikes-with-activations"), "supported");
}

TEST_F(LossScalingClaims, TooFewSpikesAreNoEvidence) {
  for (int seed = 0; seed < 9; ++seed) {
    Run("dynamic",
        "natural",
        seed,
        {{"loss_spikes", 1}, {"with_gradient", 1}, {"near_gradient", 0}});
  }
  EXPECT_EQ(results_.ClaimOf("spikes-with-gradients").result.reason,
            "out of reach: 9 loss spikes, expected at least 10");
}

// Training in fp32 has no scale and skips nothing.
TEST_F(LossScalingClaims, FiguresShowTheTracesAndTheSharesOfTheArms) {
  for (const char* const scaler : {"fp32", "dynamic"}) {
    Run(scaler, "natural", 0, {{"updates_skipped", 0.25}});
    for (const int step : {0, 1}) {
      results_.Add("scale",
                   {{"scaler", scaler},
                    {"scale", "65536"},
                    {"event", "natural"},
                    {"seed", 0},
                    {"step", step},
                    {"loss_scale", 65536},
                    {"loss", 4 - step}});
    }
  }
  const std::vector<Figure> figures = LossScaling().figures(results_.settings(), results_.Finish());
  ASSERT_EQ(figures.size(), 2u);
  ASSERT_EQ(figures[0].panels.size(), 2u);
  ASSERT_EQ(figures[0].panels[0].series.size(), 1u);
  EXPECT_EQ(figures[0].panels[0].series[0].label, "dynamic 65536 natural");
  EXPECT_THAT(figures[0].panels[0].series[0].y, ElementsAre(65536, 65536));
  EXPECT_TRUE(figures[0].panels[0].y.log2);
  ASSERT_EQ(figures[0].panels[1].series.size(), 2u);
  EXPECT_THAT(figures[0].panels[1].series[0].x, ElementsAre(0, 1));
  EXPECT_THAT(figures[0].panels[1].series[0].y, ElementsAre(4, 3));
  ASSERT_EQ(figures[1].panels.size(), 1u);
  EXPECT_THAT(figures[1].panels[0].rows, ElementsAre("dynamic 65536 natural"));
  EXPECT_THAT(figures[1].panels[0].series.at(0).x, ElementsAre(25));
}

TEST(LossScaling, StopsChangeNothing) {
  const Settings settings = SettingsWith(kTiny);
  ExpectStopsChangeNothing(LossScaling(), settings, Trials(kTiny).back());
}

}  // namespace
}  // namespace numsim::experiments::loss_scaling
