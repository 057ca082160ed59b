// Studies whose arms depart from a centre, with trials that train nothing, tables of their own probes
// and claims about one arm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "experiments/runner/given_rows.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/runner/trial_toml.h"
#include "experiments/study/dots.h"
#include "experiments/study/study_file.h"
#include "tests/experiments/result_tables.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCentred = R"(
name = "centred"
title = "a study for tests"
reproduces = "nothing"
paper = "SwitchBack"
description = "Trains."
arms = "around-centre"
label = "{size} lr {lr}"
arm = "{size} lr {lr}"
scale = "{size}"
runs = "ends"

[fixed]
model.kind = "llama"
data.kind = "generated-text"
data.size = 16384
telemetry.tensors_every = 0

[presets.quick]
study.size = "1x32"
study.sizes = "2x16,1x32"
study.lr = "1e-2"
study.lrs = "1e-3"
model.context = 16
train = { batch = 2, steps = 10, valid_batches = 1 }
schedule.warmup = 2

[[axes]]
name = "size"
meaning = "layers x width"
options = ["size", "sizes"]
other = "size"
[[axes]]
name = "lr"
meaning = "peak learning rate"
options = ["lr", "lrs"]
key = "schedule.peak"
limits = [1e-6, 1.0]

[help]
lrs = "other rates"

[[tables]]
name = "squares"
columns = [{ name = "n", meaning = "number" }, { name = "square", meaning = "its square" }]

[[probes]]
measure = "ends"
[[probes.tables]]
name = "ends"
columns = [{ name = "status", meaning = "status" }, { name = "loss", meaning = "loss" }]

[[derived]]
rows = "means"
name = "arms"
columns = [
  { name = "loss", meaning = "mean loss", finished = true },
  { name = "double", meaning = "mean of twice the loss", outcome = "double", interval = true }]

[words]
why = "a reason"
[every_claim]
items = ["nowhere"]
scale = "any"
outcome = "loss"
[outcomes.loss]
column = "loss"
[outcomes.double]
margin = { value = 0.5, unit = "nats", reason = "{why}" }
[[claims]]
name = "above-2"
statement = "Twice the loss is above 2."
contrast = "it, compared with 2"
outcome = "double"
reference = 2
[[claims]]
name = "rate-helps"
statement = "A lower rate helps."
contrast = "difference"
margin = { value = 0.1, unit = "nats", reason = "small" }
arms = ["", "lr=1e-3"]
)";

// Adds one row at the end.
class EndProbe final : public Probe {
  void End(Measurement& training) override {
    training.rows.Add("ends", {ToString(training.trainer.status()), training.FinalLoss()});
  }
};

Study Centred(const std::string& file = kCentred) {
  Functions functions;
  functions.outcomes["double"] = [](const Frame& run) { return 2 * run.Number("loss"); };
  functions.probes["ends"] = {
      .make = [](const Measurement&) { return std::make_unique<EndProbe>(); }};
  Study study = ReadStudy(file, "centred.toml", functions);
  study.others.list = [](const Settings& settings) {
    return std::vector<Trial>{
        {.label = "square", .seed = settings.seed, .parameters = {{"n", "3"}}}};
  };
  study.others.run = [](const Settings&, const Trial& trial) {
    const int n = std::stoi(trial.parameters.at("n"));
    return Rows{{"squares", {{n, n * n}}}};
  };
  return study;
}

std::string Changed(const std::string& text, const std::string& by) {
  std::string file = kCentred;
  const size_t at = file.find(text);
  EXPECT_NE(at, file.npos) << text;
  return file.replace(at, text.size(), by);
}

std::vector<std::string> LabelsOf(const Overrides& overrides) {
  const Experiment experiment = MakeExperiment(Centred());
  std::vector<std::string> labels;
  for (const Trial& trial : experiment.trials(MakeSettings(experiment, "quick", 7, 1, overrides))) {
    labels.push_back(trial.label);
  }
  return labels;
}

TEST(StudyAroundCentre, ArmsDifferFromItInOneRespect) {
  EXPECT_THAT(LabelsOf({{"lrs", "1e-3,1e-2,2e-2"}}),
              ElementsAre("square",
                          "1x32 lr 1e-2 seed=7",
                          "2x16 lr 1e-2 seed=7",
                          "1x32 lr 1e-3 seed=7",
                          "1x32 lr 2e-2 seed=7"));
  EXPECT_THAT(LabelsOf({{"lrs", ""}, {"sizes", ""}}), ElementsAre("square", "1x32 lr 1e-2 seed=7"));
}

TEST(StudyAroundCentre, ASizeSetsLayersWidthAndHeads) {
  const Study study = Centred();
  const Settings settings = MakeSettings(MakeExperiment(study), "quick", 0, 1, {});
  const TrainConfig config = ConfigOf(study, settings, {"3x64", "0.5"}, 9);
  EXPECT_EQ(config.model.layers, 3u);
  EXPECT_EQ(config.model.width, 64u);
  EXPECT_EQ(config.model.heads, 2u);
  EXPECT_EQ(config.schedule.peak, 0.5);
}

TEST(StudyAroundCentre, ErrorsNameTheOption) {
  const auto message = [](const char* option, const char* value) {
    return ErrorOf([&] { LabelsOf({{option, value}}); });
  };
  EXPECT_EQ(message("size", "2"), "--size '2': is not LAYERSxWIDTH from 1x16 to 128x8192");
  EXPECT_THAT(message("sizes", "2x16,1x8"), HasSubstr("--sizes '1x8': is not LAYERSxWIDTH"));
  EXPECT_THAT(message("size", "1x32,2x32"), HasSubstr("--size '1x32,2x32': "));
  EXPECT_THAT(message("lr", "1e-2,1e-3"), HasSubstr("--lr"));
  EXPECT_THAT(message("lr", "2"), HasSubstr("--lr \"2\""));
  EXPECT_THAT(message("lrs", "1e-3,fast"), HasSubstr("--lrs \"fast\""));
  EXPECT_EQ(message("lrs", "1e-3,1e-3"), "--lrs: 1e-3 is listed twice");
}

TEST(StudyAroundCentre, AFileThatCannotHaveOneIsRefused) {
  EXPECT_THAT(ErrorOf([] { Centred(Changed("\"around-centre\"", "\"round-centre\"")); }),
              HasSubstr("did you mean around-centre?"));
  EXPECT_THAT(ErrorOf([] { Centred(Changed("options = [\"size\", \"sizes\"]\n", "")); }),
              HasSubstr("the axis size has no option"));
}

TEST(StudyOptions, OfAnAxisHaveTheirHelp) {
  for (const Option& option : MakeExperiment(Centred()).options) {
    EXPECT_EQ(option.help == "other rates", option.name == "lrs");
  }
}

TEST(StudyOtherTrials, ComeFirstWithTheirTables) {
  const Experiment experiment = MakeExperiment(Centred());
  const Settings settings = MakeSettings(experiment, "quick", 7, 2, {});
  EXPECT_EQ(experiment.tables.front().name, "squares");
  EXPECT_EQ(experiment.tables.front().columns.size(), 2u);
  EXPECT_EQ(experiment.tables.at(1).name, "ends");
  EXPECT_EQ(experiment.tables.at(1).columns.size(), 2u + 1 + 2);  // arm, seed
  const std::vector<Trial> trials = experiment.trials(settings);
  const Rows rows = experiment.run(settings, trials.front());
  EXPECT_EQ(rows.at("squares").at(0).at(1).Text(), "9");
  const Rows trained = experiment.run(settings, trials.back());
  EXPECT_EQ(trained.size(), 1u);
  EXPECT_EQ(trained.at("ends").at(0).at(3).Text(), "finished");
}

TEST(StudyOtherTrials, AreNoTrainings) {
  const Experiment experiment = MakeExperiment(Centred());
  EXPECT_EQ(ErrorOf([&] { TrialToml(experiment, "quick", {}, 0); }),
            "--trial 0: square trains nothing");
  EXPECT_THAT(TrialToml(experiment, "quick", {}, 1), HasSubstr("trial 1: 1x32 lr 1e-2 seed=0"));
  const Settings settings = MakeSettings(experiment, "quick", 0, 2, {});
  const std::vector<Trial> trials = experiment.trials(settings);
  EXPECT_TRUE(experiment.rows.trainings(settings, trials.front()).empty());
  EXPECT_EQ(experiment.rows.trainings(settings, trials.at(1)).size(), 1u);
  EXPECT_THAT(ErrorOf([&] { ListTrainings(experiment, settings); }),
              HasSubstr("centred does not take --rows: "));
}

TEST(StudyOtherTrials, TablesThatNobodyFillsAreRefused) {
  Study study = Centred();
  study.others.run = {};
  EXPECT_EQ(ErrorOf([&] { MakeExperiment(study); }),
            "centred: tables: no trial has rows of squares");
  EXPECT_THAT(ErrorOf([] { Centred(Changed("measure = \"ends\"", "measure = \"curves\"")); }),
              HasSubstr("tables: what is measured has its own tables"));
}

class CentredResults : public ::testing::Test {
 protected:
  void AddRuns(const std::string& lr, double loss, double noise = 0.01) {
    for (int seed = 0; seed < 4; ++seed) {
      results_.Add("ends",
                   {{"size", "1x32"},
                    {"lr", lr},
                    {"seed", seed},
                    {"status", "finished"},
                    {"loss", loss + (seed % 2 == 0 ? noise : -noise)}});
    }
  }

  ResultTables results_{MakeExperiment(Centred()), {}, 4};
};

TEST_F(CentredResults, AnArmIsComparedWithANumber) {
  AddRuns("1e-3", 0.5);  // no part of the comparison
  const JudgedClaim none = results_.ClaimOf("above-2");
  EXPECT_EQ(none.result.reason, "was not trained: 1x32 lr 1e-2");
  AddRuns("1e-2", 1.3);
  const JudgedClaim claim = results_.ClaimOf("above-2");
  EXPECT_EQ(ToString(claim.result.verdict), "supported");
  EXPECT_NEAR(claim.result.contrasts.at(0).value, 0.6, 1e-12);
  EXPECT_EQ(claim.spec->margin.justification, "a reason");
  results_.Clear("ends");
  AddRuns("1e-2", 1.2);
  EXPECT_EQ(results_.VerdictOf("above-2"), "contradicted");
}

TEST_F(CentredResults, OtherArmsDoNotMatter) {
  AddRuns("1e-2", 2);
  EXPECT_EQ(results_.ClaimOf("rate-helps").result.reason, "was not trained: 1x32 lr 1e-3");
  AddRuns("1e-3", 1, -0.01);
  AddRuns("5e-3", 3, 5);
  const JudgedClaim claim = results_.ClaimOf("rate-helps");
  EXPECT_EQ(ToString(claim.result.verdict), "supported");
  EXPECT_NEAR(claim.result.contrasts.at(0).value, 1, 0.05);
}

TEST_F(CentredResults, MeansAreOfColumnsOrOutcomes) {
  AddRuns("1e-2", 2, 0.25);
  const Frame arms = results_.Of("arms");
  EXPECT_EQ(arms.Number("loss"), 2);
  EXPECT_EQ(arms.Number("double"), 4);
  // 4 values at a distance of 0.5 from their mean; 3.18 is Student's t of 3 degrees of freedom.
  EXPECT_NEAR(arms.Number("double_high") - 4, 3.1824463 * 0.5 / std::sqrt(3.0), 1e-6);
}

// Arms that differ from the centre in another respect than the figure's are in no row of it.
TEST_F(CentredResults, DotsAreOfArmsThatDifferInOneRespect) {
  AddRuns("1e-2", 2);
  AddRuns("1e-3", 1);
  results_.Add(
      "ends", {{"size", "2x16"}, {"lr", "1e-2"}, {"seed", 0}, {"status", "finished"}, {"loss", 9}});
  const auto draw = Draw(Dots{.name = "rates",
                              .title = "Rates",
                              .table = "arms",
                              .along = "lr",
                              .x = "double",
                              .x_label = "twice the loss",
                              .y_label = "rate"});
  const Figure figure = draw({Centred(), results_.settings(), results_.Finish()});
  ASSERT_EQ(figure.panels.size(), 1u);
  EXPECT_THAT(figure.panels[0].rows, ElementsAre("1e-2", "1e-3"));
  EXPECT_THAT(figure.panels[0].series.at(0).x, ElementsAre(4, 2));
  EXPECT_GT(figure.panels[0].series[0].high[0], 4);
  EXPECT_EQ(figure.panels[0].y.label, "rate");
}

TEST(StudyClaims, OfOneArmNeedAReferenceAndAnOutcome) {
  const auto message = [](const std::string& text, const std::string& by) {
    return ErrorOf([&] { MakeExperiment(Centred(Changed(text, by))); });
  };
  EXPECT_THAT(message("reference = 2\n", "arms = [\"\"]\n"),
              HasSubstr("arms: expected an even number of them, or weights"));
  EXPECT_THAT(message("reference = 2\n", "reference = 2\narms = [\"\", \"lr=1e-3\"]\n"),
              HasSubstr("claim above-2: reference: expected one arm"));
  EXPECT_THAT(message("outcome = \"loss\"\n", ""),
              HasSubstr("claim rate-helps: outcome: is missing"));
}

}  // namespace
}  // namespace numsim::experiments::study
