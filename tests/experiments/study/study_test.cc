// The engine of studies: options from presets, arms from axes, trials as files, and what is refused.
#include "experiments/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/core/trial_toml.h"
#include "experiments/study/assemble.h"
#include "experiments/study/lines.h"
#include "experiments/study/outcomes.h"
#include "numsim/train/run.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kValues = R"(
[model]
layers = 1
width = 16
heads = 1
patch = 8
patch_dropout = 0.5
[train]
batch = 4
steps = 10
valid_batches = 2
[schedule]
peak = 1e-2
warmup = 2
[study]
optimizers = "adamw,sgd"
clips = "none"
norm = 0.5
model = "vit"
captions = ""
shapes = 128
image = 16
text-size = 16384
records = 10
)";

Study MadeUp() {
  return {
      .name = "made-up",
      .title = "a study for tests",
      .reproduces = "nothing",
      .description = "Trains.",
      .fixed = "[telemetry]\ntensors_every = 5",
      .presets = {{"quick", kValues, 2, 1},
                  {"small", "[train]\nsteps = 20\n[study]\nclips = \"none,clip+decay\"", 3},
                  {"other", "[schedule]\npeak = 2e-2"}},
      .settings = {ModelSetting({"clip", "vit", "llama"}),
                   {.name = "norm", .help = "largest norm", .limits = Limits{0.25, 4, false}}},
      .axes = {{.name = "optimizer",
                .meaning = "kind",
                .choices = {{"adamw", {"optimizer.kind=adamw"}}, {"sgd", {"optimizer.kind=sgd"}}},
                .options = {"optimizers"},
                .help = "optimisers",
                .baseline = "adamw"},
               {.name = "clip",
                .meaning = "parts",
                .choices = {{"none", {}, true},
                            {"clip", {"optimizer.clip_norm=$norm"}},
                            {"decay", {"optimizer.weight_decay=0.25"}},
                            {"control", {}, true, true}},
                .joined = true,
                .options = {"clips"},
                .help = "clips",
                .baseline = "none"}},
      .label = "{clip} {optimizer}",
      .arm_text = "{optimizer} / {clip}",
      .scale = "{layers} layers",
      .probes = {Curves(),
                 EndOfTraining("final",
                               {StatusColumn(),
                                ChanceLossColumn(),
                                StartLossColumn(),
                                ValidLossColumn(),
                                ZeroShotColumn()})},
      .derived = {Outcomes({{"gap", "to adamw", {"optimizer"}}})},
      .claims = {{.name = "better",
                  .statement = "SGD is better.",
                  .contrast = "sgd minus adamw",
                  .side = -1,
                  .arms = {{{{"optimizer", "sgd"}}, 1}, {{{"optimizer", "adamw"}}, -1}}}},
      .common = {.items = {"nowhere"},
                 .scale = "any",
                 .margin = LossMargin("nats"),
                 .outcome = [](const Frame& run) { return run.Number("valid_loss"); }},
      .figures = {LossFigure("losses", "Losses", "optimizer", "clip", {}),
                  GapFigure("gaps", "Gaps", "optimizer", "clip")}};
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
                       {.name = "far", .toml = "[schedule]\nwarmup = 1", .on = "other"});
  const Experiment experiment = MakeExperiment(study);
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "lr"), "far", false), "2e-2");
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "warmup"), "far", false), "1");
  EXPECT_EQ(DefaultOf(OptionNamed(experiment, "warmup"), "other", false), "2");
}

TEST(StudyOptions, ThatNoRowHasAreRefused) {
  for (const char* const line : {"[study]\nno-such = 1", "[model]\nlayerz = 2"}) {
    Study study = MadeUp();
    study.presets[1].toml = line;
    EXPECT_THAT(ErrorOf([&] { MakeExperiment(study); }), HasSubstr("no option"));
  }
  Study study = MadeUp();
  study.presets[1].toml = "[study]\ncontext = 16";  // not in the first preset
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
      HasSubstr("claim made-up/better: arm 'adamv': optimizer 'adamv' is not one of adamw, sgd; "
                "did you mean adamw?"));
  EXPECT_THAT(message({{"optimizer", "sgd"}, {"clip", "clip+dekay"}}),
              HasSubstr("claim made-up/better: arm 'sgd / clip+dekay'"));
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
    for (const auto& [option, value] : tiny) assignments.push_back(option + "=" + value);
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
      if (spec.name != experiment.rows.table) continue;
      for (const Column& column : spec.columns) runs.columns.push_back(column.name);
      runs.rows = experiment.run(settings, trials.back()).at(spec.name);
    }
    EXPECT_EQ(runs.Text(0, "start_loss"), valid.Text(0, "loss"));
    EXPECT_EQ(runs.Text(0, "valid_loss"), valid.Text(valid.rows.size() - 1, "loss"));
  }
  EXPECT_GE(studies, 2);
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

TEST(PresetText, IsOneAssignmentPerLine) {
  EXPECT_EQ(AssignmentsOf("# note\n[a.b]\n x = 1e-3 \ny = \"p,q\"\n\n[c]\nz=true"),
            (Texts{{"a.b.x", "1e-3"}, {"a.b.y", "p,q"}, {"c.z", "true"}}));
  EXPECT_THAT(ErrorOf([] { AssignmentsOf("[a]\nx"); }), HasSubstr("'x' is no assignment"));
}

}  // namespace
}  // namespace numsim::experiments::study
