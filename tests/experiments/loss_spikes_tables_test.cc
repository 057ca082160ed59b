// Tests what `loss-spikes` derives from made-up runs: means over seeds, events, and how well they
// predict loss spikes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/loss_spikes/loss_spikes.h"
#include "tests/experiments/loss_spikes_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::loss_spikes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- arms

class ArmTables : public SpikeTables {
 protected:
  // A cell of the row of an arm.
  double Number(const Arm& arm, const char* column) { return RowOf(arm).Number(column); }
  std::string Text(const Arm& arm, const char* column) { return RowOf(arm).Text(column); }

 private:
  Frame RowOf(const Arm& arm) {
    const Frame row =
        results_.Of("arms").Where([&](const Frame& one) { return ArmOfRow(one) == arm; });
    EXPECT_EQ(row.Size(), 1u) << TextOf(arm);
    return row;
  }
};

// Student's t of two degrees of freedom: 4.302653 standard errors of the mean.
TEST_F(ArmTables, AreMeansAndIntervalsOverSeeds) {
  const Arm arm = CentreArm("0.99");
  const double losses[] = {1, 2, 4.5}, accuracies[] = {0.2, 0.3, 0.4}, rms[] = {2, 2, 5};
  for (int seed = 0; seed < 3; ++seed) {
    AddRun(arm,
           seed,
           {{"valid_loss", losses[seed]},
            {"accuracy", accuracies[seed]},
            {"loss_spikes", 2 * seed},
            {"steps_lost", 10 * seed},
            {"rms_spikes", 3 * seed},
            {"max_rms", rms[seed]},
            {"collapsed", seed == 0 ? 1 : 0}});
    AddRun(CentreArm("0.9"), seed, {{"valid_loss", 7}, {"accuracy", 1}});
  }
  EXPECT_EQ(Number(arm, "seeds"), 3);
  EXPECT_DOUBLE_EQ(Number(arm, "collapsed"), 1 / 3.0);
  EXPECT_DOUBLE_EQ(Number(arm, "valid_loss"), 2.5);
  // Squares 2.25, 0.25 and 4 over two, then over three.
  EXPECT_NEAR(Number(arm, "valid_loss_low"), 2.5 - 4.302653 * std::sqrt(3.25 / 3), 1e-6);
  EXPECT_NEAR(Number(arm, "valid_loss_high"), 2.5 + 4.302653 * std::sqrt(3.25 / 3), 1e-6);
  EXPECT_NEAR(Number(arm, "accuracy"), 0.3, 1e-12);
  EXPECT_NEAR(Number(arm, "accuracy_low"), 0.3 - 4.302653 * std::sqrt(0.01 / 3), 1e-6);
  EXPECT_NEAR(Number(arm, "accuracy_high"), 0.3 + 4.302653 * std::sqrt(0.01 / 3), 1e-6);
  EXPECT_EQ(Number(arm, "loss_spikes"), 2);
  EXPECT_NEAR(Number(arm, "loss_spikes_low"), 2 - 4.302653 * std::sqrt(4 / 3.0), 1e-5);
  EXPECT_NEAR(Number(arm, "loss_spikes_high"), 2 + 4.302653 * std::sqrt(4 / 3.0), 1e-5);
  EXPECT_EQ(Number(arm, "steps_lost"), 10);
  EXPECT_EQ(Number(arm, "rms_spikes"), 3);
  EXPECT_EQ(Number(arm, "max_rms"), 3);
  EXPECT_NEAR(Number(arm, "max_rms_low"), 3 - 4.302653, 1e-6);  // variance 3
  EXPECT_NEAR(Number(arm, "max_rms_high"), 3 + 4.302653, 1e-6);
  EXPECT_EQ(Number(CentreArm("0.9"), "valid_loss"), 7);
  EXPECT_EQ(results_.Of("arms").Size(), 2u);
}

TEST_F(ArmTables, OfOneSeedHaveNoIntervals) {
  const Arm arm = CentreArm("0.99");
  AddRun(arm, 0, {{"valid_loss", 3}, {"accuracy", 0.5}, {"loss_spikes", 4}, {"max_rms", 2}});
  EXPECT_EQ(Number(arm, "valid_loss"), 3);
  for (const char* const column : {"valid_loss", "accuracy", "loss_spikes", "max_rms"}) {
    EXPECT_EQ(Text(arm, (std::string(column) + "_low").c_str()), "nan") << column;
    EXPECT_EQ(Text(arm, (std::string(column) + "_high").c_str()), "nan") << column;
  }
}

// The loss is that of the runs that finished, everything else that of all.
TEST_F(ArmTables, LeaveTheLossOfDivergedRunsOut) {
  const Arm arm = CentreArm("0.99");
  AddRun(arm, 0, {{"valid_loss", 2}, {"accuracy", 0.4}, {"loss_spikes", 1}, {"max_rms", 2}});
  AddRun(arm, 1, {{"valid_loss", 3}, {"accuracy", 0.2}, {"loss_spikes", 2}, {"max_rms", 2}});
  AddRun(arm,
         2,
         {{"status", "diverged"},
          {"valid_loss", std::numeric_limits<double>::infinity()},
          {"accuracy", 0},
          {"loss_spikes", 9},
          {"max_rms", 2},
          {"collapsed", 1}});
  EXPECT_EQ(Number(arm, "seeds"), 3);
  EXPECT_EQ(Number(arm, "valid_loss"), 2.5);
  EXPECT_NEAR(Number(arm, "accuracy"), 0.2, 1e-12);
  EXPECT_EQ(Number(arm, "loss_spikes"), 4);
  EXPECT_DOUBLE_EQ(Number(arm, "collapsed"), 1 / 3.0);
}

TEST_F(ArmTables, AnArmOfWhichAllRunsDivergedHasNoLoss) {
  const Arm arm = CentreArm("0.999");
  for (int seed = 0; seed < 2; ++seed) {
    AddRun(arm,
           seed,
           {{"status", "diverged"},
            {"valid_loss", std::numeric_limits<double>::infinity()},
            {"accuracy", 0},
            {"loss_spikes", 3},
            {"max_rms", 2},
            {"collapsed", 1}});
  }
  ASSERT_EQ(ErrorOf([&] { results_.Finish(); }), kNoError);
  EXPECT_EQ(Text(arm, "valid_loss"), "nan");
  EXPECT_EQ(Text(arm, "valid_loss_low"), "nan");
  EXPECT_EQ(Number(arm, "collapsed"), 1);
  EXPECT_EQ(Number(arm, "loss_spikes"), 3);
}

// ---- events

class EventTables : public SpikeTables {
 protected:
  std::vector<RunEvents> Events(const char* scope) {
    return EventsOf(results_.settings(), results_.Finish(), scope);
  }
  // The texts "ARM seed SEED" of the runs of a scope.
  std::vector<std::string> RunsIn(const char* scope) {
    std::vector<std::string> texts;
    for (const RunEvents& run : Events(scope))
      texts.push_back(TextOf(run.arm) + " seed " + run.seed);
    return texts;
  }
};

TEST_F(EventTables, HaveTheEventsOfEachRun) {
  const Arm arm = CentreArm("0.999");
  AddRun(arm, 0);
  AddLossSpikes(arm, 0, {200, 300}, {15, 0});
  AddRmsSpikes(arm, 0, kPatches, {197});
  AddRmsSpikes(arm, 0, "text.final_norm.gain", {160, 400, 999});
  AddRun(arm, 1, {{"steps", 700}, {"status", "diverged"}});
  AddRun(CentreArm("0.99", "stable-adamw"), 0);
  AddLossSpikes(CentreArm("0.99", "stable-adamw"), 0, {500}, {1});
  const std::vector<RunEvents> runs = Events(kSteadyScope);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].arm, arm);
  EXPECT_EQ(runs[0].seed, "0");
  EXPECT_EQ(runs[0].first, 150u);  // the warm-up
  EXPECT_EQ(runs[0].last, 1000u);
  EXPECT_THAT(runs[0].spikes, ElementsAre(200, 300));
  EXPECT_THAT(runs[0].lost, ElementsAre(15, 0));
  EXPECT_EQ(
      runs[0].rms,
      (std::map<std::string, Steps>{{kPatches, {197}}, {"text.final_norm.gain", {160, 400, 999}}}));
  EXPECT_FALSE(runs[0].curvature.has_value());
  EXPECT_EQ(runs[1].seed, "1");
  EXPECT_EQ(runs[1].last, 700u);
  EXPECT_THAT(runs[1].spikes, IsEmpty());
  EXPECT_THAT(runs[1].rms, IsEmpty());
}

TEST_F(EventTables, AreThoseOfAdamWInItsScope) {
  SetOptions({{"models", "clip,vit"}, {"curvature", "no"}});
  const Arm centre = CentreArm("0.999");
  const Arm long_warmup = With(centre, kWarmup, "400");
  const Arm data = With(centre, kData, "new");
  Arm student = With(centre, kModel, "mlp");
  student[kBatch] = "128";
  for (const Arm& arm : {centre,
                         long_warmup,
                         With(centre, kSize, "4x48"),
                         data,
                         With(data, kOptimizer, "stable-adamw"),
                         With(centre, kData, "jump:100"),
                         With(centre, kModel, "vit"),
                         With(centre, kOptimizer, "clip-1"),
                         CentreArm("1-t^-0.5"),
                         student,
                         With(student, kOptimizer, "stable-adamw")}) {
    AddRun(arm, 3);
  }
  EXPECT_THAT(RunsIn(kSteadyScope),
              ::testing::UnorderedElementsAre(
                  TextOf(centre) + " seed 3",
                  TextOf(long_warmup) + " seed 3",
                  "clip 4x48 batch 32 lr 4e-3 warmup 150 steady beta2 0.999 adamw seed 3",
                  "clip 2x32 batch 32 lr 4e-3 warmup 150 steady beta2 1-t^-0.5 adamw seed 3"));
  EXPECT_THAT(RunsIn(kNewScope), ElementsAre(TextOf(data) + " seed 3"));
  EXPECT_THAT(RunsIn(kStudentScope), ElementsAre(TextOf(student) + " seed 3"));
  for (const RunEvents& run : Events(kSteadyScope)) {
    EXPECT_EQ(run.first, run.arm[kWarmup] == "400" ? 400u : 150u);
  }
}

// Nothing counts in the warm-up.
TEST_F(EventTables, LeaveRunsOutThatDivergedInTheWarmUp) {
  AddRun(CentreArm("0.999"), 0, {{"steps", 150}, {"status", "diverged"}});
  AddRun(CentreArm("0.999"), 1, {{"steps", 151}, {"status", "diverged"}});
  AddRun(CentreArm("0.999"), 2);
  const std::string arm = TextOf(CentreArm("0.999"));
  EXPECT_THAT(RunsIn(kSteadyScope), ElementsAre(arm + " seed 1", arm + " seed 2"));
}

TEST_F(EventTables, PredictorsAreParametersThenAnyThenTheCurvature) {
  RunEvents one, two;
  EXPECT_THAT(PredictorsOf({}), IsEmpty());
  EXPECT_THAT(PredictorsOf({one}), IsEmpty());
  one.rms = {{"text.a", {1}}, {kPatches, {2}}};
  two.rms = {{"image.a", {1}}, {kPatches, {2}}};
  EXPECT_THAT(PredictorsOf({one, two}), ElementsAre("image.a", kPatches, "text.a", "any"));
  one.curvature = {7};
  EXPECT_THAT(PredictorsOf({one, two}), ElementsAre("image.a", kPatches, "text.a", "any"));
  two.curvature = Steps();
  EXPECT_THAT(PredictorsOf({one, two}),
              ElementsAre("image.a", kPatches, "text.a", "any", "curvature"));
  one.rms.clear();
  EXPECT_THAT(PredictorsOf({one}), ElementsAre("curvature"));
}

RunEvents MadeUpRun(const std::string& size = "2x32") {
  RunEvents run;
  run.arm = {"clip", size, "32", "4e-3", "150", "steady", "0.999", "adamw"};
  run.seed = "0";
  run.first = 100;
  run.last = 300;
  return run;
}

TEST_F(EventTables, SeriesAreTheEventsOfOnePredictorPerRun) {
  RunEvents one = MadeUpRun(), two = MadeUpRun();
  one.spikes = {120, 130};
  one.rms = {{kPatches, {110}}, {"text.a", {111, 250}}};
  one.curvature = {140};
  two.spikes = {200};
  two.last = 280;
  two.curvature = Steps();
  const std::vector<EventSeries> patches = SeriesOf({one, two}, kPatches);
  ASSERT_EQ(patches.size(), 2u);
  EXPECT_EQ(patches[0].first, 100u);
  EXPECT_EQ(patches[0].last, 300u);
  EXPECT_THAT(patches[0].events, ElementsAre(110));
  EXPECT_THAT(patches[0].spikes, ElementsAre(120, 130));
  EXPECT_EQ(patches[1].last, 280u);
  EXPECT_THAT(patches[1].events, IsEmpty());
  EXPECT_THAT(patches[1].spikes, ElementsAre(200));
  EXPECT_THAT(SeriesOf({one, two}, kCurvature).at(0).events, ElementsAre(140));
  EXPECT_THAT(SeriesOf({one, two}, kCurvature).at(1).events, IsEmpty());
}

// Less than 10 steps after the first of a group is the same event.
TEST_F(EventTables, EventsOfAnyParameterAreThoseOfAll) {
  RunEvents run = MadeUpRun();
  run.rms = {{"a", {110, 150, 200}}, {"b", {115, 121, 150}}, {"c", {119, 160, 169}}};
  EXPECT_THAT(SeriesOf({run}, kAny).at(0).events,
              ElementsAre(110, 115, 119, 121, 150, 160, 169, 200));
  run.rms.clear();
  EXPECT_THAT(SeriesOf({run}, kAny).at(0).events, IsEmpty());
}

TEST_F(EventTables, DeeperBlocksCountOnlyInModelsThatHaveThem) {
  const RunEvents shallow = MadeUpRun("2x32"), deep = MadeUpRun("12x32");
  const auto runs = [&](const char* parameter) {
    return SeriesOf({shallow, deep}, parameter).size();
  };
  for (const char* const parameter : {"image.patches.weight",
                                      "image.blocks.0.mlp.up.weight",
                                      "text.blocks.1.mlp.up.weight",
                                      "blocks.1.norm.gain",
                                      "any"}) {
    EXPECT_EQ(runs(parameter), 2u) << parameter;
  }
  for (const char* const parameter : {"image.blocks.2.mlp.up.weight",
                                      "text.blocks.10.attention.qkv.bias",
                                      "blocks.11.norm.gain"}) {
    EXPECT_EQ(runs(parameter), 1u) << parameter;
  }
  EXPECT_EQ(runs("blocks.12.norm.gain"), 0u);
}

// ---- prediction

class PredictionTables : public SpikeTables {
 protected:
  // 100 steps that count.
  // With a window of 64 they are the same with new data.
  PredictionTables() { SetOptions({{"warmup", "100"}, {"change-step", "36"}}); }
  static Arm ArmWith(const std::string& size = "2x32") {
    return {"clip", size, "32", "4e-3", "100", "steady", "0.999", "adamw"};
  }
  void AddShort(const Arm& arm, int seed, const Steps& spikes) {
    AddRun(arm, seed, {{"steps", 200}, {"valid_loss", 1}});
    if (!spikes.empty()) AddLossSpikes(arm, seed, spikes, Steps(spikes.size(), 1));
  }

  struct Expected {
    const char* predictor;
    double runs, events, spikes, predicted, recall, precision, expected, p, p_holm, lead;
  };
  void ExpectRows(const char* scope, const std::vector<Expected>& expected) {
    const Frame rows = results_.Of("prediction").Where("scope", scope);
    ASSERT_EQ(rows.Size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Expected& row = expected[i];
      SCOPED_TRACE(row.predictor);
      EXPECT_EQ(rows.Text(i, "predictor"), row.predictor);
      const std::map<std::string, double> cells = {{"runs", row.runs},
                                                   {"events", row.events},
                                                   {"spikes", row.spikes},
                                                   {"predicted", row.predicted},
                                                   {"recall", row.recall},
                                                   {"precision", row.precision},
                                                   {"expected", row.expected},
                                                   {"p", row.p},
                                                   {"p_holm", row.p_holm},
                                                   {"lead", row.lead}};
      for (const auto& [column, value] : cells) {
        if (std::isnan(value)) {
          EXPECT_EQ(rows.Text(i, column), "nan") << column;
        } else {
          EXPECT_NEAR(rows.Number(i, column), value, 1e-9) << column;
        }
      }
    }
  }
  const double kNone = std::nan("");
};

// Steps 100 to 199. Spikes at 120 and 160: an event precedes one of them by 1 to 8 steps at 8 places
// each. Of the events at 116 and 190, which stay 74 steps apart on the circle, each does so at 16
// shifts of 100, and never both: 32 shifts predict one spike, the others none.
TEST_F(PredictionTables, OfOneRunIsCountedOverAllShifts) {
  const Arm arm = ArmWith();
  AddShort(arm, 0, {120, 160});
  AddRmsSpikes(arm, 0, kPatches, {116, 190});
  ExpectRows(kSteadyScope,
             {{"image.patches.weight", 1, 2, 2, 1, 0.5, 0.5, 0.32, 0.32, 0.64, 4},
              {"any", 1, 2, 2, 1, 0.5, 0.5, 0.32, 0.32, 0.64, 4}});
  ExpectRows(kNewScope, {});
  ExpectRows(kStudentScope, {});
}

// Besides that run: one with a spike at 150, and a deeper one with a spike at 110, for each of which
// one event has 8 places of 100.
//
//   patches   1 spike of 4 predicted, by 4 steps; p = 0.32
//   up        1 of 4, by 1 step; p = 0.08
//   block 3   in the deeper run alone: none of 1; p = 1
//   any       2 of 4. None is predicted with 0.68 * 0.92 * 0.92 = 0.575552, one with
//             0.32 * 0.92^2 + 2 * 0.68 * 0.08 * 0.92 = 0.370944: p = 0.053504
//
// Holm: 4 * 0.053504, then 3 * 0.08, then 2 * 0.32, then 1.
TEST_F(PredictionTables, OfSeveralRunsIsCorrectedForThePredictors) {
  const Arm arm = ArmWith(), deep = ArmWith("4x48");
  AddShort(arm, 0, {120, 160});
  AddRmsSpikes(arm, 0, kPatches, {116, 190});
  AddShort(arm, 1, {150});
  AddRmsSpikes(arm, 1, "image.blocks.0.mlp.up.weight", {149});
  AddShort(deep, 0, {110});
  AddRmsSpikes(deep, 0, "image.blocks.3.mlp.up.weight", {111});
  ExpectRows(kSteadyScope,
             {{"image.blocks.0.mlp.up.weight", 3, 1, 4, 1, 0.25, 1, 0.08, 0.08, 0.24, 1},
              {"image.blocks.3.mlp.up.weight", 1, 1, 1, 0, 0, 0, 0.08, 1, 1, kNone},
              {"image.patches.weight", 3, 2, 4, 1, 0.25, 0.5, 0.32, 0.32, 0.64, 4},
              {"any", 3, 4, 4, 2, 0.5, 0.5, 0.48, 0.053504, 0.214016, 2.5}});
}

// At step 103 a lead has 3 places only, since it does not cross the end of the warm-up.
TEST_F(PredictionTables, LeadsDoNotCrossTheWarmUp) {
  AddShort(ArmWith(), 0, {103});
  AddRmsSpikes(ArmWith(), 0, kPatches, {199});
  ExpectRows(kSteadyScope,
             {{"image.patches.weight", 1, 1, 1, 0, 0, 0, 0.03, 1, 1, kNone},
              {"any", 1, 1, 1, 0, 0, 0, 0.03, 1, 1, kNone}});
}

// 1 to 8 steps, no fewer and no more.
TEST_F(PredictionTables, LeadsAreOfOneToEightSteps) {
  const std::map<uint64_t, double> predicted = {{141, 0}, {142, 1}, {149, 1}, {150, 0}, {151, 0}};
  for (const auto& [event, count] : predicted) {
    SetOptions({{"warmup", "100"}});
    AddShort(ArmWith(), 0, {150});
    AddRmsSpikes(ArmWith(), 0, kPatches, {event});
    const Frame rows = results_.Of("prediction");
    EXPECT_EQ(rows.Number("predicted"), count) << event;
    EXPECT_NEAR(rows.Number("p"), count == 1 ? 0.08 : 1, 1e-12) << event;
  }
}

TEST_F(PredictionTables, WithoutSpikesHasNoRecallAndWithoutEventsNoRow) {
  AddShort(ArmWith(), 0, {});
  AddRmsSpikes(ArmWith(), 0, kPatches, {150});
  ExpectRows(kSteadyScope,
             {{"image.patches.weight", 1, 1, 0, 0, kNone, 0, 0, 1, 1, kNone},
              {"any", 1, 1, 0, 0, kNone, 0, 0, 1, 1, kNone}});
  SetOptions({{"warmup", "100"}});
  AddShort(ArmWith(), 0, {150});
  ExpectRows(kSteadyScope, {});
}

// Predictors of the student: its RMS spikes and, if all runs have it, the curvature. The curvature at
// 142 and 155: for the spike at 150 each has 8 places.
TEST_F(PredictionTables, OfTheStudentHasTheCurvature) {
  Arm student = With(ArmWith(), kModel, "mlp");
  AddShort(student, 0, {150});
  AddRmsSpikes(student, 0, "input.weight", {147});
  AddCurvature(student, 0, {142, 155});
  AddShort(ArmWith(), 0, {150});
  ExpectRows(kSteadyScope, {});
  ExpectRows(kStudentScope,
             {{"input.weight", 1, 1, 1, 1, 1, 1, 0.08, 0.08, 0.24, 3},
              {"any", 1, 1, 1, 1, 1, 1, 0.08, 0.08, 0.24, 3},
              {"curvature", 1, 2, 1, 1, 1, 0.5, 0.16, 0.16, 0.24, 8}});
}

// Predictors are compared on the same runs.
TEST_F(PredictionTables, OfTheStudentIsOfTheRunsWithCurvature) {
  const Arm student = With(ArmWith(), kModel, "mlp");
  for (const char* const curvature : {"yes", "no"}) {
    const bool measured = std::string(curvature) == "yes";
    SetOptions({{"warmup", "100"}, {"curvature", curvature}});
    for (int seed = 0; seed < 2; ++seed) {
      AddShort(student, seed, {150});
      AddRmsSpikes(student, seed, "input.weight", {147});
    }
    if (measured) AddCurvature(student, 1, {});
    const Frame rows = results_.Of("prediction").Where("scope", "student");
    EXPECT_EQ(rows.Where("predictor", "input.weight").Number("runs"), measured ? 1 : 2);
    EXPECT_EQ(rows.Where("predictor", "curvature").Size(), measured ? 1u : 0u);
  }
}

TEST_F(PredictionTables, OfNewDataIsSeparate) {
  const Arm data = With(ArmWith(), kData, "new");
  AddShort(data, 0, {150});
  AddRmsSpikes(data, 0, kPatches, {148});
  AddShort(With(data, kOptimizer, "stable-adamw"), 0, {110});
  AddShort(ArmWith(), 0, {120, 160});
  ExpectRows(kNewScope,
             {{"image.patches.weight", 1, 1, 1, 1, 1, 1, 0.08, 0.08, 0.16, 2},
              {"any", 1, 1, 1, 1, 1, 1, 0.08, 0.08, 0.16, 2}});
  ExpectRows(kSteadyScope, {});
}

// ---- figures

class SpikeFigures : public SpikeTables {
 protected:
  Figure FigureOf(const std::string& name) {
    for (const Figure& figure :
         results_.experiment().figures(results_.settings(), results_.Finish())) {
      if (figure.name == name) return figure;
    }
    ADD_FAILURE() << "no figure " << name;
    return {};
  }
};

// The rate of the centre, 4e-3, is among the others and has one place.
TEST_F(SpikeFigures, AxesHaveEachValueOnceInItsOrder) {
  SetOptions({{"lrs", "8e-3,1e-3,4e-3"}});
  for (const char* const lr : {"8e-3", "1e-3", "4e-3"}) {
    for (const char* const beta2 : {"0.999", "0.95"}) {
      for (int seed = 0; seed < 2; ++seed) {
        AddRun(With(CentreArm(beta2), kLr, lr),
               seed,
               {{"max_rms", 1000 * std::stod(lr) + 2 * seed}, {"loss_spikes", seed}});
      }
    }
  }
  const Figure figure = FigureOf("spikes-axes");
  ASSERT_EQ(figure.panels.size(), 2u);  // RMS and spikes of one axis
  for (const Panel& panel : figure.panels) {
    EXPECT_EQ(panel.x.label, "peak learning rate");
    ASSERT_EQ(panel.series.size(), 2u);
    for (const Series& series : panel.series) EXPECT_THAT(series.x, ElementsAre(1e-3, 4e-3, 8e-3));
  }
  EXPECT_EQ(figure.panels[0].series[0].label, "AdamW, β2 = 0.999");
  EXPECT_THAT(figure.panels[0].series[0].y, ElementsAre(2, 5, 9));
  EXPECT_THAT(figure.panels[1].series[1].y, ElementsAre(0.5, 0.5, 0.5));
}

// From the highest beta2 on, with the bound 1 / sqrt(1 - beta2) of the RMS; one seed has no interval.
TEST_F(SpikeFigures, Beta2HasTheArmsAndTheBoundOfTheRms) {
  SetOptions({{"beta2", "0.99,0.75"}, {"optimizers", ""}});
  AddRun(CentreArm("0.99"), 0, {{"max_rms", 3}, {"accuracy", 0.25}});
  AddRun(CentreArm("0.75"), 0, {{"max_rms", 2}, {"accuracy", 0.5}});
  const Figure figure = FigureOf("spikes-beta2");
  ASSERT_EQ(figure.panels.size(), 4u);
  const std::vector<Series>& rms = figure.panels[1].series;
  ASSERT_EQ(rms.size(), 2u);  // StableAdamW was not trained
  EXPECT_EQ(rms[0].label, "AdamW");
  EXPECT_THAT(rms[0].y, ElementsAre(3, 2));
  EXPECT_THAT(rms[0].low, IsEmpty());
  EXPECT_THAT(rms[1].x, ElementsAre(1 - 0.99, 0.25));
  EXPECT_NEAR(rms[1].y.at(0), 10, 1e-12);
  EXPECT_EQ(rms[1].y.at(1), 2);
  EXPECT_THAT(figure.panels[3].series.at(0).y, ElementsAre(25, 50));  // percent
}

}  // namespace
}  // namespace numsim::experiments::loss_spikes
