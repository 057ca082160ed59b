// The engine of studies: options from presets, arms from axes, trials as files, and what is refused.
#include "experiments/study/study.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/runner/trial_toml.h"
#include "experiments/study/assemble.h"
#include "experiments/study/lines.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_digest.h"
#include "experiments/study/study_file.h"
#include "numsim/train/run.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kMadeUp = R"(
name = "made-up"
title = "a study for tests"
reproduces = "nothing"
paper = "SwitchBack"
description = "Trains."
label = "{clip} {optimizer}"
arm = "{optimizer} / {clip}"
scale = "{layers} layers"
runs = "final"

[fixed]
telemetry.tensors_every = 5

[presets.quick]
seeds = 2
seconds = 1
model = { layers = 1, width = 16, heads = 1, patch = 8, patch_dropout = "0.5" }
train = { batch = 4, steps = 10, valid_batches = 2 }
schedule = { peak = "1e-2", warmup = 2 }
study.optimizers = "adamw,sgd"
study.clips = "none"
study.norm = "0.5"
study.model = "vit"
study.captions = ""
study.shapes = 128
study.image = 16
study.text-size = 16384
study.records = 10
[presets.small]
seeds = 3
train.steps = 20
study.clips = "none,clip+decay"
[presets.other]
schedule.peak = "2e-2"

[[settings]]
models = ["clip", "vit", "llama"]
[[settings]]
name = "norm"
help = "largest norm"
limits = [0.25, 4.0]

[[axes]]
name = "optimizer"
meaning = "kind"
options = ["optimizers"]
help = "optimisers"
baseline = "adamw"
choices = [
  { name = "adamw", keys = ["optimizer.kind=adamw"] },
  { name = "sgd", keys = ["optimizer.kind=sgd"] }]
[[axes]]
name = "clip"
meaning = "parts"
options = ["clips"]
help = "clips"
baseline = "none"
joined = true
choices = [
  { name = "none", alone = true },
  { name = "clip", keys = ["optimizer.clip_norm=$norm"] },
  { name = "decay", keys = ["optimizer.weight_decay=0.25"] },
  { name = "control", alone = true, hidden = true }]

[[probes]]
measure = "curves"
[[probes]]
measure = "end-of-training"
table = "final"
columns = ["status", "chance_loss", "start_loss", "valid_loss", "zero_shot"]

[[derived]]
rows = "outcomes"
gaps = [{ name = "gap", meaning = "to adamw", baseline_of = ["optimizer"] }]

[outcomes.loss]
column = "valid_loss"
[every_claim]
items = ["nowhere"]
scale = "any"
margin.loss = "nats"
outcome = "loss"
[[claims]]
name = "better"
statement = "SGD is better."
contrast = "sgd minus adamw"
side = -1
arms = ["optimizer=sgd", "optimizer=adamw"]

[[figures]]
draw = "losses"
name = "losses"
title = "Losses"
panel = "optimizer"
line = "clip"
[[figures]]
draw = "gaps"
name = "gaps"
title = "Gaps"
along = "optimizer"
line = "clip"
)";

Study MadeUp() { return ReadStudy(kMadeUp, "made-up.toml", {}); }

// Returns the file with one text replaced by another.
std::string Changed(std::string file, const std::string& text, const std::string& by) {
  const size_t at = file.find(text);
  EXPECT_NE(at, file.npos) << text;
  return file.replace(at, text.size(), by);
}

// The study with an axis of rates, whose option is a setting in other studies.
Study WithRates() {
  const std::string file = Changed(kMadeUp, "peak = \"1e-2\", ", "");
  return ReadStudy(Changed(Changed(file, "peak = \"2e-2\"", "warmup = 1"),
                           "study.norm = \"0.5\"",
                           "study.norm = \"0.5\"\nstudy.lr = \"1e-2,3e-2\"") +
                       R"(
[[axes]]
name = "rate"
meaning = "peak"
options = ["lr"]
help = "rates"
key = "schedule.peak"
limits = [1e-3, 1.0]
)",
                   "made-up.toml",
                   {});
}

Settings With(const Overrides& overrides, const std::string& preset = "quick") {
  const Experiment experiment = MakeExperiment(MadeUp());
  return MakeSettings(experiment, preset, 5, 2, overrides);
}

const Option& OptionNamed(const Experiment& experiment, const std::string& name) {
  return *std::ranges::find(experiment.options, name, &Option::name);
}

TEST(StudyOptions, HaveTheValuesOfThePresets) {
  const Experiment experiment = MakeExperiment(MadeUp());
  EXPECT_EQ(experiment.options.front().name, "optimizers");  // axes are first
  EXPECT_EQ(experiment.options.back().name, "keys");
  const Option& steps = OptionNamed(experiment, "steps");
  EXPECT_EQ(steps.quick, "10");
  EXPECT_EQ(steps.small, "20");
  const Option& lr = OptionNamed(experiment, "lr");  // the text of the preset, not a number
  EXPECT_EQ(DefaultOf(lr, "quick", false), "1e-2");
  EXPECT_EQ(DefaultOf(lr, "small", false), "1e-2");
  EXPECT_EQ(DefaultOf(lr, "other", false), "2e-2");
  EXPECT_EQ(OptionNamed(experiment, "warmup").part_of, "steps");
}

TEST(StudyOptions, OfAPresetOnAnotherAreThatOnesButForItsOwn) {
  Study study = MadeUp();
  study.presets.insert(study.presets.begin() + 1,
                       {.name = "far", .values = {{"schedule.warmup", "1"}}, .on = "other"});
  const Experiment experiment = MakeExperiment(study);
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "lr"), "far", false), "2e-2");
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "warmup"), "far", false), "1");
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "warmup"), "other", false), "2");
}

TEST(StudyOptions, OfAnAxisMayHaveTheNameOfACommonSetting) {
  const Study study = WithRates();
  const Experiment experiment = MakeExperiment(study);
  EXPECT_EQ(OptionNamed(experiment, "lr").help, "rates");
  const auto peaks = [&](const std::string& lrs) {
    std::vector<double> all;
    const Settings settings = MakeSettings(experiment, "quick", 0, 1, {{"lr", lrs}});
    for (const Arm& arm : AllArms(study, settings)) {
      all.push_back(ConfigOf(study, settings, arm, 0).schedule.peak);
    }
    experiment.trials(settings);
    return all;
  };
  EXPECT_THAT(peaks("1e-2,1"), ElementsAre(0.01, 0.01, 1, 1));
  for (const char* const bad : {"1e-2,1e-4", "x", ""}) {
    EXPECT_THAT(ErrorOf([&] { peaks(bad); }), HasSubstr("--lr")) << bad;
  }
}

TEST(StudyChoices, OfARecipeSetItsKeysAndThenTheirOwn) {
  const auto with = [](const std::string& recipe) {
    return ReadStudy(Changed(kMadeUp,
                             "name = \"sgd\", keys = [\"optimizer.kind=sgd\"]",
                             "name = \"sgd\", recipe = \"" + recipe +
                                 "\", keys = [\"linear.gradient_rounding=rne\"]"),
                     "made-up.toml",
                     {});
  };
  const Study study = with("nvidia-nvfp4");
  const TrainConfig config = ConfigOf(study, With({}), {"sgd", "none"}, 0);
  EXPECT_EQ(config.linear.all.format, "nvfp4");
  EXPECT_EQ(config.linear.all.hadamard, "weight-gradient");
  EXPECT_EQ(config.linear.all.gradient_rounding, Rounding());
  EXPECT_TRUE(config.linear.first_last_high);
  EXPECT_EQ(ConfigOf(study, With({}), {"adamw", "none"}, 0).linear.all.format, "");
  EXPECT_THAT(ErrorOf([&] { with("nvidia-nvfp"); }),
              AllOf(HasSubstr("made-up.toml:"), HasSubstr("recipe"), HasSubstr("nvidia-nvfp4")));
}

TEST(StudyOptions, HaveTheHelpOfTheFile) {
  const std::string file = kMadeUp + std::string("[help]\nsteps = \"how long\"\n");
  const Experiment experiment = MakeExperiment(ReadStudy(file, "made-up.toml", {}));
  EXPECT_EQ(OptionNamed(experiment, "steps").help, "how long");
  EXPECT_EQ(OptionNamed(experiment, "norm").help, "largest norm");
}

TEST(StudyOptions, HaveTheValuesOfOlderResultsOfTheFile) {
  const std::string file = kMadeUp + std::string("[before]\nsteps = 8\nlr = \"1\"\n");
  const Experiment experiment = MakeExperiment(ReadStudy(file, "made-up.toml", {}));
  EXPECT_EQ(OptionNamed(experiment, "steps").before, "8");
  EXPECT_EQ(OptionNamed(experiment, "lr").before, "1");
  EXPECT_EQ(OptionNamed(experiment, "norm").before, "");
  for (const char* const table : {"help", "before"}) {
    EXPECT_THAT(ErrorOf([&] {
                  MakeExperiment(ReadStudy(
                      kMadeUp + fmt::format("[{}]\nstesp = \"8\"\n", table), "made-up.toml", {}));
                }),
                AllOf(HasSubstr(table), HasSubstr("did you mean steps?")));
  }
}

TEST(StudyOptions, ThatNoRowHasAreRefused) {
  for (const char* const key : {"study.no-such", "model.layerz"}) {
    Study study = MadeUp();
    study.presets[1].values = {{key, "2"}};
    EXPECT_THAT(ErrorOf([&] { MakeExperiment(study); }), HasSubstr("no option"));
  }
  Study study = MadeUp();
  study.presets[1].values = {{"study.context", "16"}};  // not in the first preset
  EXPECT_THAT(ErrorOf([&] { MakeExperiment(study); }), HasSubstr("other options than quick"));
}

TEST(StudyChoices, OfNoKeyAndNoOptionAreRefused) {
  const auto message = [](const char* assignment) {
    Study study = MadeUp();
    study.axes[1].choices[1].keys = {assignment};
    return ErrorOf([&] { MakeExperiment(study); });
  };
  EXPECT_EQ(message("optimizer.clip_norm=2"), "no error");
  EXPECT_EQ(message("optimizer.clip_norm=$"), "no error");
  EXPECT_EQ(message("optimizer.clipnorm=2"),
            "made-up: clip clip: 'optimizer.clipnorm=2' sets no key of numsim train");
  EXPECT_EQ(message("optimizer.clip_norm=$nrm"),
            "made-up: clip clip: 'optimizer.clip_norm=$nrm' names no option");
}

TEST(StudyArms, AreAllCombinationsOnceInOneOrder) {
  const Settings settings = With({{"optimizers", "sgd"}, {"clips", "decay+clip,clip,clip+decay"}});
  std::vector<std::string> labels;
  for (const Trial& trial : MakeExperiment(MadeUp()).trials(settings)) {
    if (trial.seed == 6) labels.push_back(trial.label);
  }
  EXPECT_THAT(labels,
              ElementsAre("none adamw seed=6",
                          "none sgd seed=6",
                          "clip+decay adamw seed=6",
                          "clip+decay sgd seed=6",
                          "clip adamw seed=6",
                          "clip sgd seed=6"));
}

// A third axis, with an option for each optimiser.
Study WithBatches(const std::string& of_sgd) {
  Study study = MadeUp();
  study.axes.push_back({.name = "batch",
                        .meaning = "examples",
                        .other =
                            [](const std::string& text) {
                              return Choice{text, {"train.batch=$"}};
                            },
                        .options = {"batches-adamw", "batches-sgd"},
                        .option_by = "optimizer"});
  auto& values = study.presets[0].values;
  values.insert(values.end(), {{"study.batches-adamw", "2,4,2"}, {"study.batches-sgd", of_sgd}});
  study.arms = [](const Study& of, const Settings& settings) {
    std::vector<Arm> arms;
    for (const char* const optimizer : {"adamw", "sgd"}) {
      const std::string option = std::string("batches-") + optimizer;
      for (const std::string& batch : ValuesOf(of.axes[2], settings, option)) {
        arms.push_back({optimizer, "none", batch});
      }
    }
    return arms;
  };
  return study;
}

TEST(StudyAxes, MayHaveAnOptionForEachChoiceOfAnother) {
  const Experiment experiment = MakeExperiment(WithBatches("8"));
  const Settings settings = MakeSettings(experiment, "quick", 0, 1, {});
  EXPECT_EQ(experiment.trials(settings).size(), 3u);
  const auto message = [&](const std::string& option) {
    return ErrorOf([&] {
      experiment.trials(MakeSettings(experiment, "quick", 0, 1, {{option, "4,1000"}}));
    });
  };
  EXPECT_THAT(message("batches-adamw"), HasSubstr("--batches-adamw: "));
  EXPECT_THAT(message("batches-sgd"), HasSubstr("--batches-sgd: "));
  for (const char* const axis : {"optimiser", "clip"}) {  // unknown; has four choices
    Study study = WithBatches("8");
    study.axes[2].option_by = axis;
    EXPECT_THAT(ErrorOf([&] { MakeExperiment(study); }),
                HasSubstr("made-up: axis batch: option_by"));
  }
}

// Of a configuration, in place of the axis.
TEST(StudyAxes, MayHaveColumnsOfTheirOwn) {
  std::string file = kMadeUp;
  const std::string meaning = "meaning = \"parts\"\n";
  file.replace(file.find(meaning),
               meaning.size(),
               "cells = \"parts\"\n"
               "columns = [{ name = \"norm\", meaning = \"n\" }, { name = \"decay\", meaning = "
               "\"d\" }]\n");
  EXPECT_THAT(ErrorOf([&] { ReadStudy(file, "made-up.toml", {}); }), HasSubstr("'parts'"));
  Functions functions;
  functions.cells["parts"] = [](const TrainConfig& config) {
    return Row{config.optimizer.clip_norm, config.optimizer.weight_decay};
  };
  Study study = ReadStudy(file, "made-up.toml", functions);
  study.derived = {
      {.name = "of-arms", .columns = {{"x", "x"}}, .of_arms = true, .rows = [](const Results&) {
         return std::vector<Row>();
       }}};
  const Experiment experiment = MakeExperiment(study);
  const Settings settings = MakeSettings(experiment, "quick", 0, 1, {{"clips", "clip+decay"}});
  const Trial trial = experiment.trials(settings).back();
  EXPECT_EQ(trial.parameters.at("clip"), "clip+decay");
  EXPECT_THAT(experiment.rows.key, ElementsAre("optimizer", "norm", "decay", "seed"));
  const auto texts = [](const Row& row) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < 4; ++i) cells.push_back(row.at(i).Text());
    return cells;
  };
  EXPECT_THAT(texts(experiment.rows.trainings(settings, trial).at(0).key),
              ElementsAre("sgd", "0.5", "0.25", "0"));
  EXPECT_THAT(texts(experiment.run(settings, trial).at("final").at(0)),
              ElementsAre("sgd", "0.5", "0.25", "0"));
  std::vector<std::string> columns;
  for (const Column& column : experiment.tables.back().columns) columns.push_back(column.name);
  EXPECT_THAT(columns, ElementsAre("optimizer", "norm", "decay", "x"));
}

// A preset may have the model first, which overrules the share of patches all the same.
TEST(StudyConfig, ChoicesOverruleKeysInAnyOrderOfOptions) {
  Study study = MadeUp();
  Texts& values = study.presets.front().values;
  const auto model = std::ranges::find(values, "study.model", &Texts::value_type::first);
  std::rotate(values.begin(), model, model + 1);
  ASSERT_EQ(values.front().first, "study.model");
  EXPECT_EQ(ConfigOf(study, With({}), {"adamw", "none"}, 7).model.patch_dropout, 0);
}

TEST(StudyRows, AreNotTakenIfTheStudySaysSo) {
  std::string file = kMadeUp;
  EXPECT_EQ(MakeExperiment(ReadStudy(file, "made-up.toml", {})).rows.table, "final");
  file.replace(file.find("runs = \"final\""), 14, "runs = \"final\"\ntakes_rows = false");
  const Experiment experiment = MakeExperiment(ReadStudy(file, "made-up.toml", {}));
  EXPECT_EQ(experiment.rows.table, "");
  EXPECT_TRUE(experiment.rows.whole);
}

// Keys of choices and of options, and nothing else.
TEST(StudyConfig, HasTheKeysOfItsOptionsAndChoices) {
  const Study study = MadeUp();
  const Settings settings = With({{"lr", "0.25"}, {"layers", "3"}});
  TrainConfig plain = ConfigOf(study, settings, {"adamw", "none"}, 7);
  EXPECT_EQ(plain.schedule.peak, 0.25);
  EXPECT_EQ(plain.model.layers, 3u);
  EXPECT_EQ(plain.model.kind, ModelKind::kVit);
  EXPECT_EQ(plain.model.patch_dropout, 0);  // of the choice of the model, after the option
  EXPECT_EQ(plain.data.size, 128u);
  EXPECT_EQ(plain.train.seed, 7u);
  EXPECT_EQ(plain.telemetry.tensors_every, 5u);
  plain.optimizer.kind = OptimizerKind::kSgd;
  plain.optimizer.clip_norm = 0.5;
  plain.optimizer.weight_decay = 0.25;
  plain.train.seed = 8;
  EXPECT_EQ(WriteTrainConfig(ConfigOf(study, settings, {"sgd", "clip+decay"}, 8)),
            WriteTrainConfig(plain));
}

TEST(StudyConfig, TakesFurtherKeysUnlessTheStudySetsThem) {
  const Study study = MadeUp();
  EXPECT_EQ(ConfigOf(study, With({{"keys", "optimizer.beta1=0.5"}}), {"adamw", "none"}, 0)
                .optimizer.beta1,
            0.5);
  for (const char* const key :
       {"data.kind=text", "optimizer.kind=lion", "telemetry.tensors_every=1"}) {
    EXPECT_THAT(ErrorOf([&] {
                  ConfigOf(study, With({{"keys", key}}), {"adamw", "none"}, 0);
                }),
                HasSubstr("--set " + std::string(key) + ": the experiment sets this key itself"));
  }
}

TEST(StudyConfig, HasDefaultsThatFurtherKeysReplace) {
  Study study = MadeUp();
  study.defaults = {{"optimizer.beta1", "0.25"}};
  const auto beta1 = [&](const std::string& keys) {
    return ConfigOf(study, With({{"keys", keys}}), {"adamw", "none"}, 0).optimizer.beta1;
  };
  EXPECT_EQ(beta1(""), 0.25);
  EXPECT_EQ(beta1("optimizer.beta1=0.5"), 0.5);
}

TEST(StudyErrors, NameTheOption) {
  const std::vector<std::pair<std::string, std::string>> bad = {{"optimizers", "adamx"},
                                                                {"optimizers", ""},
                                                                {"clips", "none+clip"},
                                                                {"clips", "clip+"},
                                                                {"clips", "control"},
                                                                {"norm", "0.1"},
                                                                {"norm", "nan"},
                                                                {"layers", "0"},
                                                                {"width", "x"},
                                                                {"heads", "3"},
                                                                {"patch", "5"},
                                                                {"batch", "1000"},
                                                                {"steps", "9"},
                                                                {"warmup", "11"},
                                                                {"records", "11"},
                                                                {"records", "1"},
                                                                {"lr", "0"},
                                                                {"model", "gpt"},
                                                                {"captions", "no/such"},
                                                                {"patch-dropout", "1"},
                                                                {"image", "15"}};
  for (const auto& [option, value] : bad) {
    const Overrides given = {{option, value}};
    const std::string message = ErrorOf([&] { MakeExperiment(MadeUp()).trials(With(given)); });
    EXPECT_THAT(message, HasSubstr(option == "captions" ? "no/such" : "--" + option)) << value;
  }
}

TEST(StudyClaims, WithAnArmThatNoAxisMakesAreRefused) {
  const auto message = [](Picks picks) {
    Study study = MadeUp();
    study.claims[0].arms[0].first = std::move(picks);
    return ErrorOf([&] { MakeExperiment(study); });
  };
  EXPECT_EQ(message({{"optimizer", "sgd"}}), "no error");
  EXPECT_EQ(message({{"optimizer", "sgd"}, {"clip", "decay+clip"}}), "no error");
  EXPECT_THAT(
      message({{"optimizer", "adamv"}}),
      HasSubstr("made-up: claim better: arm 'adamv': optimizer 'adamv' is not one of adamw, sgd; "
                "did you mean adamw?"));
  EXPECT_THAT(message({{"optimizer", "sgd"}, {"clip", "clip+dekay"}}),
              HasSubstr("claim better: arm 'sgd / clip+dekay'"));
  EXPECT_THAT(message({{"optimiser", "sgd"}}), HasSubstr("'optimiser' is not one of"));
  Study study = MadeUp();
  study.claims[0].arms.pop_back();
  EXPECT_THAT(ErrorOf([&] { MakeExperiment(study); }), HasSubstr("add up to 1, expected 0"));
}

TEST(StudyClaims, CompareTheRowsOfTheirArms) {
  ResultTables results(MakeExperiment(MadeUp()), {}, 4);
  for (int seed = 0; seed < 4; ++seed) {
    const double noise = 0.001 * (seed % 2);
    for (const auto& [optimizer, loss] : std::map<std::string, double>{{"adamw", 2}, {"sgd", 1}}) {
      results.Add("final",
                  {{"optimizer", optimizer},
                   {"clip", "none"},
                   {"seed", seed},
                   {"status", "finished"},
                   {"chance_loss", 2.05},
                   {"valid_loss", loss + noise}});
    }
  }
  const JudgedClaim claim = results.ClaimOf("better");
  EXPECT_EQ(ToString(claim.result.verdict), "supported");
  EXPECT_NEAR(claim.result.contrasts.at(0).value, -1, 1e-12);
  EXPECT_THAT(claim.evidence.outcomes.arms, ElementsAre("adamw / none", "sgd / none"));
  EXPECT_EQ(claim.spec->items, (std::vector<std::string>{"nowhere"}));
  // 2 is above 95 % of 2.05, the loss of a guess.
  const Frame outcomes = results.Of("outcomes");
  EXPECT_EQ(outcomes.Where("optimizer", "adamw").Text("collapsed"), "4");
  EXPECT_EQ(outcomes.Where("optimizer", "sgd").Text("collapsed"), "0");
  EXPECT_NEAR(outcomes.Where("optimizer", "sgd").Number("gap"), -1, 1e-12);
  EXPECT_EQ(outcomes.Where("optimizer", "adamw").Number("gap"), 0);
}

// Four arms without weights are two differences, and both have to hold.
TEST(StudyClaims, HaveAContrastForEachTwoArms) {
  const std::string file = Changed(
      kMadeUp, "\"optimizer=adamw\"]", "\"optimizer=adamw\", \"clip=clip\", \"clip=decay\"]");
  ResultTables results(MakeExperiment(ReadStudy(file, "made-up.toml", {})), {}, 4);
  const std::map<std::pair<std::string, std::string>, double> losses = {{{"adamw", "none"}, 2},
                                                                        {{"sgd", "none"}, 1},
                                                                        {{"adamw", "clip"}, 5},
                                                                        {{"adamw", "decay"}, 4}};
  for (int seed = 0; seed < 4; ++seed) {
    for (const auto& [arm, loss] : losses) {
      results.Add("final",
                  {{"optimizer", arm.first},
                   {"clip", arm.second},
                   {"seed", seed},
                   {"status", "finished"},
                   {"valid_loss", loss + 0.001 * (seed % 2)}});
    }
  }
  const JudgedClaim claim = results.ClaimOf("better");
  EXPECT_EQ(ToString(claim.result.verdict), "contradicted");
  ASSERT_EQ(claim.result.contrasts.size(), 2u);
  EXPECT_NEAR(claim.result.contrasts[0].value, -1, 1e-12);
  EXPECT_NEAR(claim.result.contrasts[1].value, 1, 1e-12);
}

TEST(StudyTables, OfMeansCountTheRunsThatDiverged) {
  std::string file = kMadeUp;
  file += R"(
[[derived]]
rows = "means"
name = "arms"
columns = [
  { name = "diverged", meaning = "number", diverged = true },
  { name = "valid_loss", meaning = "mean", interval = true, finished = true },
  { name = "start_loss", meaning = "mean" }])";
  ResultTables results(MakeExperiment(ReadStudy(file, "made-up.toml", {})), {}, 3);
  for (int seed = 0; seed < 3; ++seed) {
    results.Add("final",
                {{"optimizer", "adamw"},
                 {"clip", "none"},
                 {"seed", seed},
                 {"status", seed == 2 ? "diverged" : "finished"},
                 {"start_loss", 3 * seed},
                 {"valid_loss", seed == 2 ? Cell("inf") : Cell(1 + 2 * seed)}});
  }
  const Frame arms = results.Of("arms");
  EXPECT_EQ(arms.Number("seeds"), 3);
  EXPECT_EQ(arms.Number("diverged"), 1);
  EXPECT_EQ(arms.Number("valid_loss"), 2);
  EXPECT_LT(arms.Number("valid_loss_low"), 2);
  EXPECT_EQ(arms.Number("start_loss"), 3);
}

// A trial of each arm, trained by the file that `numsim describe --trial` prints.
TEST(StudyTrials, AreRepeatedByNumsimTrain) {
  const Experiment experiment = MakeExperiment(MadeUp());
  const std::vector<std::string> assignments = {"clips=clip+decay", "schedule.peak=3e-2"};
  const Settings settings =
      MakeSettings(experiment, "quick", 0, 2, {{"clips", "clip+decay"}, {"lr", "3e-2"}});
  const std::vector<Trial> trials = experiment.trials(settings);
  for (const size_t number : {size_t{0}, trials.size() - 1}) {
    const TemporaryDirectory directory;
    const std::string toml = TrialToml(experiment, "quick", assignments, number);
    EXPECT_TRUE(toml.starts_with("# made-up, preset quick, trial ")) << toml;
    TrainRunOptions options;
    options.out = directory.Path() / "run";
    RunTraining(ParseTrainConfig(toml, "trial.toml", {}, {}), options);
    const Table steps = ReadCsv(options.out / "train.csv");
    const Table valid = ReadCsv(options.out / "valid.csv");
    const Rows rows = experiment.run(settings, trials[number]);
    const std::vector<Row>& curve = rows.at("curves");
    ASSERT_EQ(curve.size(), steps.rows.size() + 1);
    for (size_t i = 0; i < steps.rows.size(); ++i) {
      EXPECT_EQ(curve[i + 1].back().Text(), steps.Text(i, "loss")) << i;
    }
    const Row& end = rows.at("final").at(0);
    EXPECT_EQ(end.at(5).Text(), valid.Text(0, "loss"));
    EXPECT_EQ(end.at(6).Text(), valid.Text(valid.rows.size() - 1, "loss"));
  }
  EXPECT_THAT(ErrorOf([&] { TrialToml(experiment, "quick", assignments, trials.size()); }),
              HasSubstr("--trial 8: expected 0 to 7"));
  EXPECT_THAT(ErrorOf([&] { TrialToml(*FindExperiment("linear-error"), "quick", {}, 0); }),
              HasSubstr("is no single file"));
}

// Of every experiment whose trials are files: the losses of the start and of the end.
TEST(StudyTrials, OfAllStudiesAreRepeatedByNumsimTrain) {
  int studies = 0;
  for (const Experiment& experiment : AllExperiments()) {
    if (!experiment.rows.whole) continue;
    SCOPED_TRACE(experiment.name);
    ++studies;
    Overrides tiny = TinyRun(experiment.name);
    if (experiment.name == "loss-spikes") {  // the last trial is of new data
      tiny["changes"] = "new";
      tiny["optimizers"] = "";
      tiny["optimizer-beta2"] = "";
    }
    std::vector<std::string> assignments;
    for (const auto& [option, value] : tiny)
      assignments.push_back(fmt::format("{}={}", option, value));
    const int seeds = FindPreset(experiment, "quick").seeds;
    const Settings settings = MakeSettings(experiment, "quick", 0, seeds, tiny);
    const std::vector<Trial> trials = experiment.trials(settings);
    const TemporaryDirectory directory;
    TrainRunOptions options;
    options.out = directory.Path() / "run";
    const std::string toml = TrialToml(experiment, "quick", assignments, trials.size() - 1);
    RunTraining(ParseTrainConfig(toml, "trial.toml", {}, {}), options);
    const Table valid = ReadCsv(options.out / "valid.csv");
    Table runs;
    for (const TableSpec& spec : experiment.tables) {
      if (spec.derived || std::ranges::count(spec.columns, "status", &Column::name) == 0) continue;
      for (const Column& column : spec.columns) runs.columns.push_back(column.name);
      runs.rows = experiment.run(settings, trials.back()).at(spec.name);
    }
    if (std::ranges::count(runs.columns, "start_loss") > 0) {
      EXPECT_EQ(runs.Text(0, "start_loss"), valid.Text(0, "loss"));
    }
    EXPECT_EQ(runs.Text(0, "valid_loss"), valid.Text(valid.rows.size() - 1, "loss"));
  }
  EXPECT_GE(studies, 6);
}

TEST(StudyTrials, HaveTheSameRowsForAnyNumberOfThreadsAndAfterStops) {
  const Experiment experiment = MakeExperiment(MadeUp());
  const Settings settings = With({});
  EXPECT_NE(RunOnThreads(experiment, settings, "curves").Csv(), "");
  ExpectStopsChangeNothing(experiment, settings, experiment.trials(settings).back());
}

TEST(StudyFigures, HaveAPanelPerValueAndALinePerValue) {
  ResultTables results(MakeExperiment(MadeUp()), {}, 1);
  for (const char* const optimizer : {"adamw", "sgd"}) {
    for (const char* const clip : {"none", "clip"}) {
      for (int step = 0; step <= 10; step += 5) {
        const double loss = (std::string(optimizer) == "sgd" ? 9.0 : 2.0) - 0.1 * step;
        results.Add("curves",
                    {{"optimizer", optimizer},
                     {"clip", clip},
                     {"seed", 0},
                     {"step", step},
                     {"loss", loss}});
      }
    }
  }
  const std::vector<Figure> figures =
      results.experiment().figures(results.settings(), results.Finish());
  ASSERT_EQ(figures.size(), 1u);  // there are no outcomes
  ASSERT_EQ(figures[0].panels.size(), 2u);
  const Panel& sgd = figures[0].panels[1];
  EXPECT_EQ(sgd.title, "sgd");
  EXPECT_NEAR(sgd.y.low, 1 - 0.05, 1e-12);  // from the least of all to the largest of the baseline
  EXPECT_NEAR(sgd.y.high, 2 + 0.1, 1e-12);
  ASSERT_EQ(sgd.series.size(), 3u);
  EXPECT_EQ(sgd.series[0].label, "none");
  EXPECT_EQ(sgd.series[2].label, "adamw, none");
  EXPECT_THAT(sgd.series[2].y, ElementsAre(2, 1.5, 1));
}

// ---- the file

// Returns the error about the study with one text of its file replaced.
std::string ErrorWith(const std::string& text, const std::string& by) {
  const std::string file = Changed(kMadeUp, text, by);
  return ErrorOf([&] { MakeExperiment(ReadStudy(file, "made-up.toml", {})); });
}

TEST(StudyFile, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ErrorWith("side = -1", "sidee = -1"),
            "made-up.toml:88: sidee: is no key here; did you mean side?");
  EXPECT_EQ(ErrorWith("measure = \"curves\"", "measure = \"curvs\""),
            "made-up.toml:67: measure: the name 'curvs' is not one of curves, end-of-training, "
            "quantized-operands, residual-stream, validations; did you mean curves?");
  EXPECT_THAT(ErrorWith("\"start_loss\"", "\"strat_loss\""), HasSubstr("did you mean start_loss?"));
  EXPECT_THAT(ErrorWith("peak = \"2e-2\"", "peak = 2e-2"),
              HasSubstr("made-up.toml:35: schedule.peak: expected a text"));
  EXPECT_THAT(ErrorWith("statement = \"SGD is better.\"\n", ""),
              HasSubstr("statement: is missing"));
  EXPECT_THAT(ErrorWith("[outcomes.loss]\ncolumn = \"valid_loss\"", "[outcomes.loss]"),
              HasSubstr("column: is missing"));
  EXPECT_THAT(ErrorWith("limits = [0.25, 4.0]", "limits = [0.25]"),
              HasSubstr("expected two numbers"));
  EXPECT_THAT(ErrorWith("paper = \"SwitchBack\"", "paper = \"SwitchBak\""),
              HasSubstr("did you mean SwitchBack?"));
  EXPECT_THAT(ErrorWith("optimizer=sgd\"", "optimizer\""),
              HasSubstr("'optimizer' is not AXIS=VALUE"));
  EXPECT_THAT(ErrorWith("optimizer=sgd\"", "optimizer=$sgd\""), HasSubstr("no function '$sgd'"));
  EXPECT_THAT(ErrorWith("optimizer=sgd\"", "optimizer=sgb\""), HasSubstr("did you mean sgd?"));
  EXPECT_THAT(ErrorWith("side = -1", "kind = \"diference\""), HasSubstr("difference"));
  EXPECT_THAT(ErrorWith("{layers} layers", "{$layers} layers"), HasSubstr("no function '$layers'"));
  EXPECT_THAT(ErrorWith("name = \"made-up\"", "name = made-up"), HasSubstr("made-up.toml:2: "));
}

// Otherwise these would be found after the trainings, or never.
TEST(StudyFile, RefusesWhatCannotBeMeasuredOrJudged) {
  EXPECT_THAT(ErrorWith("label = \"{clip} {optimizer}\"", "label = \"{clip} {optimiser}\""),
              HasSubstr("label: axis 'optimiser' is not one of optimizer, clip"));
  EXPECT_THAT(ErrorWith("label = \"{clip}", "label = \"{clip"), HasSubstr("label"));
  EXPECT_THAT(ErrorWith("scale = \"{layers}", "scale = \"{layer}"),
              HasSubstr("scale: the option 'layer' is not one of"));
  EXPECT_THAT(ErrorWith("options = [\"clips\"]", "options = [\"clips\", \"more\"]"),
              HasSubstr("axis clip: the first preset has no value for its option: study.more"));
  Study seeds = MadeUp();
  seeds.axes[1].name = "seed";
  EXPECT_THAT(ErrorOf([&] { MakeExperiment(seeds); }), HasSubstr("axes: 'seed' is there twice"));
  EXPECT_THAT(ErrorWith("{ name = \"sgd\"", "{ name = \"adamw\""),
              HasSubstr("axis optimizer: 'adamw' is there twice"));
  EXPECT_THAT(ErrorWith("seeds = 3", "seeds = 2.5"), HasSubstr("seeds: expected a whole number"));
  EXPECT_THAT(ErrorWith("baseline_of = [\"optimizer\"]", "baseline_of = [\"optimzer\"]"),
              HasSubstr("baseline_of: the axis 'optimzer' is not one of"));
  EXPECT_THAT(ErrorWith("panel = \"optimizer\"", "panel = \"seed\""),
              HasSubstr("panel: the axis 'seed' is not one of optimizer, clip"));
  EXPECT_THAT(ErrorWith("draw = \"losses\"", "draw = \"bars\""),
              HasSubstr("the name 'bars' is not one of dots, gaps, lines, losses"));
  EXPECT_THAT(ErrorWith("title = \"a study", "titel = \"a study"),
              HasSubstr("titel: is no key here; did you mean title?"));
}

TEST(StudyFile, RefusesLinesOfColumnsThatNoTableHas) {
  Functions functions;
  functions.probes["steps"] = {.tables = {{"steps", {{"step", "one"}, {"loss", "its"}}, false}},
                               .make = {}};
  const auto message = [&](const std::string& table, const std::string& y) {
    const std::string figure = fmt::format(
        "\n[[figures]]\ndraw = \"lines\"\nname = \"more\"\ntitle = \"t\"\npanel = \"clip\"\nline = "
        "\"optimizer\"\nx = \"step\"\nx_label = \"x\"\ny_label = \"y\"\ntable = \"{}\"\ny = \"{}\"\n",
        table,
        y);
    const std::string probe = "\n[[probes]]\nmeasure = \"steps\"\n";
    return ErrorOf(
        [&] { MakeExperiment(ReadStudy(kMadeUp + probe + figure, "made-up.toml", functions)); });
  };
  EXPECT_EQ(message("curves", "loss"), "no error");
  EXPECT_EQ(message("curves", "seed"), "no error");
  EXPECT_THAT(message("curvs", "loss"), HasSubstr("did you mean curves?"));
  EXPECT_THAT(message("curves", "los"), HasSubstr("did you mean loss?"));
  EXPECT_THAT(message("outcomes", "loss"), HasSubstr("x: the column 'step' is not one of"));
  // The table has no columns of arms.
  EXPECT_THAT(message("steps", "loss"),
              HasSubstr("panel: the column 'clip' is not one of loss, step"));
}

TEST(StudyFile, RefusesClaimsThatNoTestTakes) {
  EXPECT_THAT(ErrorWith("margin.loss = \"nats\"\noutcome = \"loss\"\n", "margin.loss = \"nats\"\n"),
              HasSubstr("claim better: outcome: is missing"));
  EXPECT_THAT(ErrorWith("side = -1", "side = 2"), HasSubstr("expected 1 or -1, found 2"));
  EXPECT_THAT(ErrorWith("margin.loss = \"nats\"\noutcome = \"loss\"\n", "outcome = \"loss\"\n"),
              "no error");
  EXPECT_THAT(ErrorWith("margin.loss = \"nats\"\noutcome = \"loss\"\n[[claims]]",
                        "outcome = \"loss\"\n[[claims]]\nkind = \"equivalence\""),
              HasSubstr("claim better: margin: an equivalence needs one above 0"));
  EXPECT_THAT(ErrorWith("\"optimizer=adamw\"]", "\"optimizer=sgd\"]"),
              HasSubstr("arms: both are the same"));
  EXPECT_THAT(ErrorWith(", \"optimizer=adamw\"]", "]"), HasSubstr("expected an even number"));
  EXPECT_THAT(ErrorWith("[[figures]]\ndraw = \"losses\"",
                        "[[claims]]\nname = \"better\"\nstatement = \"\"\ncontrast = \"\"\narms = "
                        "[\"optimizer=sgd\", \"optimizer=adamw\"]\n[[figures]]\ndraw = \"losses\""),
              HasSubstr("claims: 'better' is there twice"));
}

TEST(StudyFile, ThePossibleEffectLiesBetweenTwoArmsOfADifference) {
  const auto message = [](const std::string& lines) {
    return ErrorWith("side = -1\n", "side = -1\n" + lines + "\n");
  };
  const std::string both = "possible = [\"optimizer=sgd\", \"optimizer=adamw\"]";
  EXPECT_EQ(message(both), "no error");
  EXPECT_THAT(message("possible = [\"optimizer=sgd\"]"), HasSubstr("expected two arms"));
  EXPECT_THAT(message("possible = [\"optimizer=sgb\", \"optimizer=sgd\"]"),
              HasSubstr("did you mean sgd?"));
  EXPECT_THAT(
      ErrorWith("side = -1\n",
                "kind = \"equivalence\"\ncontrol.none = \"Nothing fails.\"\n" + both + "\n"),
      HasSubstr("possible: only a difference of trainings has it"));
}

TEST(StudyFile, RefusesControlsAndRatiosThatJudgeNothing) {
  const auto message = [](const std::string& lines) {
    return ErrorWith("side = -1\n", lines + "\n");
  };
  const std::string same = "kind = \"equivalence\"\n";
  const std::string arms = "arms = [\"optimizer=sgd\", \"optimizer=adamw\"]";
  EXPECT_EQ(message(same + "control = { text = \"it\", " + arms + " }"), "no error");
  EXPECT_EQ(message(same + "control.none = \"Nothing fails.\""), "no error");
  EXPECT_THAT(message("control = { text = \"it\", " + arms + " }"),
              HasSubstr("claim better: control: only an equivalence has one"));
  EXPECT_THAT(message(same + "control.text = \"it\""), HasSubstr("control.arms: is missing"));
  EXPECT_THAT(message(same + "control = { text = \"it\", none = \"nothing\" }"),
              HasSubstr("expected either this"));
  EXPECT_THAT(message(same + "control = { text = \"it\", arms = [\"optimizer=sgd\"] }"),
              HasSubstr("expected two"));
  EXPECT_THAT(
      message(same + "control = { text = \"it\", arms = [\"optimizer=sgb\", \"optimizer=sgd\"] }"),
      HasSubstr("did you mean sgd?"));
  const std::string ratio =
      "kind = \"ratio\"\nmargin = { unit = \"ratio\", reason = \"r\", value = ";
  EXPECT_EQ(message(ratio + "0.5 }\nside = -1"), "no error");
  EXPECT_THAT(message(ratio + "0.4 }\nside = -1"), HasSubstr("needs one from 0.5 to 1"));
  EXPECT_THAT(message(ratio + "0.9 }\nside = 1"), HasSubstr("needs one of at least 1"));
  EXPECT_THAT(message(ratio + "1 }\nside = -1\nweights = [1, -1]"), HasSubstr("no weights"));
}

// The margin of an outcome is also that of claims whose outcome stands in [every_claim].
TEST(StudyFile, HasTheMarginOfTheOutcomeOfEveryClaim) {
  std::string file = kMadeUp;
  const std::string column = "column = \"valid_loss\"\n", margin = "margin.loss = \"nats\"\n";
  file.replace(file.find(margin), margin.size(), "");
  file.replace(file.find(column), column.size(), column + margin);
  const Experiment experiment = MakeExperiment(ReadStudy(file, "made-up.toml", {}));
  EXPECT_EQ(experiment.claims.at(0).margin.value, 0.02);
}

// A later axis must not undo what a choice says of itself.
TEST(StudyConfig, RefusesTwoAxesThatSetOneKey) {
  Study study = MadeUp();
  study.axes[0].choices[1].keys = {"optimizer.kind=sgd", "optimizer.clip_norm=3"};
  EXPECT_THAT(ErrorOf([&] {
                ConfigOf(study, With({}), {"sgd", "clip"}, 0);
              }),
              HasSubstr("the axes optimizer and clip both set optimizer.clip_norm"));
  EXPECT_EQ(ConfigOf(study, With({}), {"sgd", "none"}, 0).optimizer.clip_norm, 3);
}

TEST(StudyFile, MakesAClaimForEachRow) {
  std::string file = kMadeUp;
  file.replace(file.find("name = \"better\""),
               15,
               "name = \"{than}-better\"\neach = [{ than = \"adamw\" }, { than = \"sgd\" }]");
  file.replace(file.find("optimizer=adamw\"]"), 17, "optimizer={than}\"]\nweights = [3, -3]");
  file += "[words]\nadd = \"by much\"\n";
  file.replace(file.find("SGD is better."), 14, "Better than {than} {add}, {else}.");
  const Study study = ReadStudy(file, "made-up.toml", {});
  ASSERT_EQ(study.claims.size(), 2u);
  EXPECT_EQ(study.claims[1].name, "sgd-better");
  EXPECT_EQ(study.claims[0].statement, "Better than adamw by much, {else}.");
  EXPECT_EQ(study.claims[0].arms[1].first[0].name, "adamw");
  EXPECT_EQ(study.claims[1].arms[1].first[0].name, "sgd");
  EXPECT_EQ(study.claims[1].arms[1].second, -3);
}

// The functions that a file names, and values that settings decide.
TEST(StudyFile, CallsTheFunctionsThatItNames) {
  std::string file = kMadeUp;
  file.replace(file.find("optimizer=sgd\""), 14, "optimizer=$last\"");
  file +=
      "[[derived]]\nrows = \"two\"\nname = \"more\"\ncolumns = [{ name = \"x\", meaning = \"x\" }]\n";
  Functions functions;
  functions.values["last"] = [](const Settings& settings) {
    return settings.GetList("optimizers").back();
  };
  functions.tables["two"] = [](const Results&) { return std::vector<Row>{{1}, {2}}; };
  functions.columns = {{{"seven", "a number"}, [](Measurement&) { return Cell(7); }}};
  file = Changed(file, "{layers} layers", "{layers} layers, {$last}");
  file = Changed(file, "\"zero_shot\"]", "\"seven\"]");
  file = Changed(file, "measure = \"curves\"", "measure = \"curves\"\nunit = \"bits\"");
  const Study study = ReadStudy(file, "made-up.toml", functions);
  const Settings settings = With({});
  EXPECT_EQ(study.probes[1].tables[0].columns.back().name, "seven");
  EXPECT_THAT(study.probes[0].tables[0].columns[1].meaning, HasSubstr("last record, bits;"));
  const Tables tables;
  const Results results{study, settings, tables};
  EXPECT_EQ(study.scale(results), "1 layers, sgd");
  EXPECT_EQ(results.ArmOf(study.claims[0].arms[0].first), (Arm{"sgd", "none"}));
  EXPECT_EQ(study.derived.back().rows(results).size(), 2u);
}

// ---- dots

std::string DotsFigure(const std::string& more) {
  return "\n[[figures]]\ndraw = \"dots\"\nname = \"ends\"\ntitle = \"Ends\"\ntable = \"outcomes\"\nalong = "
         "\"optimizer\"\nx = \"valid_loss\"\nx_label = \"loss\"\ny_label = \"of\"\n" +
         more;
}

TEST(StudyFigures, OfDotsHaveARowPerValueAndAColourPerLine) {
  const std::string file = kMadeUp + DotsFigure("line = \"clip\"\n");
  ResultTables results(
      MakeExperiment(ReadStudy(file, "made-up.toml", {})), {{"clips", "none,clip"}}, 2);
  const auto add = [&](const char* optimizer, const char* clip, int seed, double loss) {
    results.Add("final",
                {{"optimizer", optimizer},
                 {"clip", clip},
                 {"seed", seed},
                 {"status", "finished"},
                 {"chance_loss", 5},
                 {"valid_loss", loss}});
  };
  for (const char* const clip : {"none", "clip"}) {
    add("adamw", clip, 0, 2);
    add("adamw", clip, 1, 3);
    add("sgd", clip, 0, 4);
  }
  const std::vector<Figure> figures =
      results.experiment().figures(results.settings(), results.Finish());
  ASSERT_FALSE(figures.empty());
  const Figure& figure = figures.back();
  EXPECT_EQ(figure.name, "ends");
  EXPECT_EQ(figure.source_csv, "outcomes.csv");
  ASSERT_EQ(figure.panels.size(), 1u);
  const Panel& panel = figure.panels[0];
  EXPECT_TRUE(panel.dots);
  EXPECT_THAT(panel.rows, ElementsAre("adamw", "sgd"));
  ASSERT_EQ(panel.series.size(), 2u);
  EXPECT_EQ(panel.series[1].label, "clip");
  EXPECT_THAT(panel.series[1].x, ElementsAre(2.5, 4));
  EXPECT_THAT(panel.series[1].y, ElementsAre(0, 1));
  EXPECT_LT(panel.series[0].low[0], 2);
  EXPECT_GT(panel.series[0].high[0], 3);
  EXPECT_TRUE(std::isnan(panel.series[0].low[1]));  // one seed
}

// Dots of several arms in one row could not be told apart.
TEST(StudyFile, RefusesDotsOfArmsThatNoKeyTellsApart) {
  const auto message = [](const std::string& more) {
    const std::string file = kMadeUp + DotsFigure(more);
    return ErrorOf([&] { MakeExperiment(ReadStudy(file, "made-up.toml", {})); });
  };
  EXPECT_EQ(message("panel = \"clip\"\n"), "no error");
  EXPECT_THAT(message(""),
              HasSubstr("along: outcomes also has rows for each clip: name it as line"));
  EXPECT_THAT(message("line = \"clap\"\n"), HasSubstr("line: the column 'clap' is not one of"));
}

// ---- digests

// Returns which digests of the file another text in it changes: those of rows, claims or both.
std::string ChangedBy(const std::string& text, const std::string& by) {
  const Node before = Node::Read(kMadeUp, "a.toml");
  const Node after = Node::Read(Changed(kMadeUp, text, by), "b.toml");
  return std::string(DigestOfRows(before) == DigestOfRows(after) ? "" : "rows") +
         (DigestOfClaims(before) == DigestOfClaims(after) ? "" : "claims");
}

TEST(StudyDigest, OfRowsChangesWithWhatDeterminesThem) {
  EXPECT_EQ(ChangedBy("tensors_every = 5", "tensors_every = 6"), "rows");
  EXPECT_EQ(ChangedBy("optimizer.clip_norm=$norm", "optimizer.clip_norm=2"), "rows");
  EXPECT_EQ(ChangedBy("{ name = \"sgd\"", "{ name = \"sgdm\""), "rows");
  EXPECT_EQ(ChangedBy("baseline = \"none\"", "baseline = \"clip\""), "rows");
  EXPECT_EQ(ChangedBy("label = \"{clip}", "label = \"{clip},"), "rows");
  EXPECT_EQ(ChangedBy("\"start_loss\", ", ""), "rows");
  EXPECT_EQ(ChangedBy("models = [\"clip\", \"vit\"", "models = [\"vit\", \"clip\""), "rows");
  // An option of which the key is another, or which sets its keys earlier.
  EXPECT_EQ(ChangedBy("study.norm = \"0.5\"", "study.nrm = \"0.5\""), "rows");
  EXPECT_EQ(ChangedBy("study.norm = \"0.5\"\nstudy.model = \"vit\"",
                      "study.model = \"vit\"\nstudy.norm = \"0.5\""),
            "rows");
}

TEST(StudyDigest, OfClaimsChangesWithWhatJudges) {
  EXPECT_EQ(ChangedBy("side = -1", "side = 1"), "claims");
  EXPECT_EQ(ChangedBy("margin.loss = \"nats\"", "margin.loss = \"bits\""), "claims");
  EXPECT_EQ(ChangedBy("column = \"valid_loss\"", "column = \"start_loss\""), "claims");
  EXPECT_EQ(ChangedBy("runs = \"final\"", "runs = \"curves\""), "claims");
}

TEST(StudyDigest, IsTheSameForOtherTextsFiguresAndPresets) {
  EXPECT_EQ(ChangedBy("title = \"a study", "title = \"the study"), "");
  EXPECT_EQ(ChangedBy("title = \"Gaps\"", "title = \"Distances\""), "");
  EXPECT_EQ(ChangedBy("along = \"optimizer\"", "along = \"clip\""), "");
  EXPECT_EQ(ChangedBy("baseline_of = [\"optimizer\"]", "baseline_of = [\"clip\"]"), "");
  EXPECT_EQ(ChangedBy("help = \"largest norm\"", "help = \"the largest norm\""), "");
  EXPECT_EQ(ChangedBy("limits = [0.25, 4.0]", "limits = [0.25, 8.0]"), "");
  EXPECT_EQ(ChangedBy("meaning = \"kind\"", "meaning = \"its kind\""), "");
  EXPECT_EQ(ChangedBy("peak = \"2e-2\"", "peak = \"3e-2\""), "");
  EXPECT_EQ(ChangedBy("seeds = 3", "seeds = 4"), "");
  // The same file, written in another way.
  EXPECT_EQ(ChangedBy("[fixed]\ntelemetry.tensors_every = 5\n",
                      "# a comment\n[fixed.telemetry]\ntensors_every = 0x5\n"),
            "");
  EXPECT_EQ(ChangedBy("joined = true\nchoices", "joined  =  true\n\nchoices"), "");
}

}  // namespace
}  // namespace numsim::experiments::study
