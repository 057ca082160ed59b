// Every study that trains says how its training differs from the paper's.
#include "experiments/shared/paper_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "experiments/runner/claim_report.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Names = std::set<std::string>;

Names NamesOf(const std::vector<Deviation>& deviations) {
  Names names;
  for (const Deviation& deviation : deviations) names.insert(deviation.setting);
  return names;
}

// ---- the list, on configurations that are made by hand

// A training that is Fishman's in all that a configuration can say.
std::vector<std::string> AsFishman() {
  return {"model.kind=llama",
          "model.layers=32",
          "model.width=4096",
          "model.heads=32",
          "model.hidden=11008",
          "model.context=4096",
          "data.kind=zipf",
          "data.vocabulary=32000",
          "train.batch=1024",
          "train.steps=476837",
          "schedule.kind=cosine",
          "schedule.peak=3e-4",
          "schedule.warmup=2000",
          "schedule.final=0.1",
          "optimizer.kind=adamw",
          "optimizer.epsilon=1e-5",
          "optimizer.beta1=0.9",
          "optimizer.beta2=0.95",
          "optimizer.clip_norm=1",
          "optimizer.weight_decay=0.1",
          "optimizer.m=fp32",
          "optimizer.v=fp32",
          "linear.first_last_high=true",
          "storage.activations=bf16",
          "storage.gradients=bf16"};
}

// The trainings of Figure 6: with FP8 and with bf16.
std::vector<TrainConfig> FishmanWith(const std::vector<std::string>& changes) {
  std::vector<TrainConfig> trainings(2);
  for (TrainConfig& config : trainings) SetConfigKeys(AsFishman(), config);
  SetConfigKeys({"linear.kind=e5m2-backward",
                 "linear.format=e4m3",
                 "linear.delayed_history=1",
                 "linear.delayed_algorithm=window",
                 "optimizer.m=e4m3fn",
                 "optimizer.v=e5m2"},
                trainings[0]);
  for (TrainConfig& config : trainings) SetConfigKeys(changes, config);
  return trainings;
}

// No configuration can have these in common with the paper: data, device, sums of the device, shards.
const Names kNever = {"data", "hardware", "sums of such products", "scales of moments"};

TEST(PaperTraining, OfThePapersOwnSettingsNothingIsPrintedButDataAndDevice) {
  EXPECT_EQ(NamesOf(DeviationsOf({Paper::kFishman, ""}, FishmanWith({}))), kNever);
}

TEST(PaperTraining, ASettingThatDiffersIsPrintedAndNoOther) {
  const std::map<std::string, Names> changes = {
      {"schedule.peak=4e-3", {"peak learning rate"}},
      {"schedule.warmup=47684", {"warm-up, share of the steps"}},
      {"schedule.final=0", {"schedule"}},
      {"schedule.kind=constant", {"schedule"}},
      {"optimizer.kind=stable-adamw", {"optimiser"}},
      {"optimizer.epsilon=1e-6", {"epsilon"}},
      {"optimizer.beta1=0.8", {"betas"}},
      {"optimizer.beta2=0.99", {"betas"}},
      {"optimizer.clip_norm=0", {"clipping of gradients"}},
      {"optimizer.weight_decay=0", {"weight decay"}},
      {"optimizer.v=fp32", {"moments m / v"}},
      {"data.vocabulary=32768", {"vocabulary"}},
      {"linear.high_precision=fp32", {"products of 16 or 32 bits"}},
      {"linear.first_last_high=false", {"quantised layers"}},
      {"storage.activations=fp32", {"storage between operations"}},
      {"train.batch=512", {"batch", "tokens per step (of images: patches)", "tokens in all"}},
      {"model.context=2048", {"context", "tokens per step (of images: patches)", "tokens in all"}},
      {"model.layers=16", {"depth (image + text)", "parameters", "parameters without embeddings"}},
      {"model.width=2048", {"width (image + text)", "parameters", "parameters without embeddings"}},
      {"train.steps=100000", {"steps", "tokens in all", "warm-up, share of the steps"}}};
  for (const auto& [change, settings] : changes) {
    Names expected = kNever;
    expected.insert(settings.begin(), settings.end());
    EXPECT_EQ(NamesOf(DeviationsOf({Paper::kFishman, ""}, FishmanWith({change}))), expected)
        << change;
  }
}

TEST(PaperTraining, ListsTheValuesOfAllTrainingsAndNamesTheModelsWhereTheyDiffer) {
  std::vector<TrainConfig> trainings(3);
  SetConfigKeys({"model.kind=clip", "optimizer.epsilon=1e-6"}, trainings[0]);
  SetConfigKeys({"model.kind=clip", "optimizer.epsilon=1e-4"}, trainings[1]);
  SetConfigKeys({"model.kind=mlp", "optimizer.epsilon=1e-8"}, trainings[2]);
  const std::vector<Deviation> deviations = DeviationsOf({Paper::kSwitchBack, ""}, trainings);
  const auto epsilon = std::ranges::find(deviations, "epsilon", &Deviation::setting);
  ASSERT_NE(epsilon, deviations.end());
  EXPECT_EQ(epsilon->paper, "1e-06");
  EXPECT_EQ(epsilon->run, "clip: 1e-06; 0.0001; mlp: 1e-08");
}

TEST(PaperTraining, AFigureHasItsOwnSettings) {
  const auto value = [](const PaperTraining& training, const char* name) {
    const std::vector<SharedSetting> settings = SettingsOf(training);
    const auto setting = std::ranges::find(settings, name, &SharedSetting::name);
    return setting == settings.end() ? "" : setting->values;
  };
  EXPECT_EQ(value({Paper::kFishman, ""}, "parameters"), "6.7 B");
  EXPECT_EQ(value({Paper::kFishman, "Figure 5"}, "parameters"), "100 M");
  EXPECT_EQ(value({Paper::kFishman, "Figure 5"}, "epsilon"), "1e-05");
  EXPECT_EQ(value({Paper::kSwitchBack, "Figure 2"}, "depth (image + text)"), "24 + 12");
  EXPECT_EQ(value({Paper::kSwitchBack, "Figure 21"}, "storage between operations"), "fp16");
  for (const Paper paper : {Paper::kSwitchBack, Paper::kFishman, Paper::kNvfp4}) {
    for (const std::string& figure : FiguresOf(paper)) {
      // Each row of a figure replaces one of the list.
      EXPECT_GE(SettingsOf({paper, figure}).size(), SettingsOf({paper, ""}).size()) << figure;
    }
  }
}

TEST(PaperTraining, TheScaleIsThatOfTheLargestTraining) {
  std::vector<TrainConfig> trainings = FishmanWith({});
  SetConfigKeys({"model.layers=2"}, trainings[1]);
  const TrainedScale scale = TrainedScaleOf({Paper::kFishman, ""}, trainings);
  EXPECT_NEAR(scale.parameters, 6.738e9, 1e6);
  EXPECT_EQ(scale.tokens, 1024.0 * 4096 * 476837);
  EXPECT_EQ(ScaleWord(scale), "paper scale");
  EXPECT_EQ(scale.paper_parameters, 6.7e9);
  EXPECT_EQ(TrainedScaleOf({Paper::kFishman, "Figure 5"}, trainings).paper_parameters, 1e8);
  EXPECT_EQ(TrainedScaleOf(trainings).paper_parameters, 0);
}

// ---- the studies

std::vector<const Experiment*> Trainings() {
  std::vector<const Experiment*> result;
  for (const Experiment& experiment : AllExperiments()) {
    if (experiment.deviations) result.push_back(&experiment);
  }
  return result;
}

bool HasOption(const Experiment& experiment, std::string_view name) {
  return std::ranges::count(experiment.options, name, &Option::name) > 0;
}

// The papers' settings again, by the option that sets them.
struct OptionValue {
  const char* option;
  const char* setting;
  double switchback, fishman, nvfp4;
};
constexpr OptionValue kOptions[] = {
    {"batch", "batch", 16384, 1024, 736},
    {"lr", "peak learning rate", 2e-3, 3e-4, 4.5e-4},
    {"epsilon", "epsilon", 1e-6, 1e-5, -1},
    {"weight-decay", "weight decay", 0.2, 0.1, 0.1},
    {"clip", "clipping of gradients", 0, 1, -1},
    {"context", "context", -1, 4096, 8192},
    {"patch-dropout", "patch dropout", 0.5, -1, -1},
};

TEST(PaperTraining, EveryStudyAndPresetPrintsAnOptionThatDiffersAndNoneThatIsEqual) {
  ASSERT_EQ(Trainings().size(), 10u);
  size_t equal = 0, differ = 0;
  for (const Experiment* const experiment : Trainings()) {
    const auto reproduces = [&](const char* paper) {
      return experiment->reproduces.find(paper) != std::string::npos;
    };
    for (const Preset& preset : experiment->presets) {
      SCOPED_TRACE(experiment->name + " " + preset.name);
      const Settings settings = MakeSettings(*experiment, preset.name, 0, 1, {});
      const std::vector<Deviation> deviations = experiment->deviations(settings);
      for (const OptionValue& row : kOptions) {
        const double paper = reproduces("[SwitchBack]") ? row.switchback
                             : reproduces("[NVFP4]")    ? row.nvfp4
                                                        : row.fishman;
        if (paper < 0 || !HasOption(*experiment, row.option)) continue;
        std::vector<double> values;  // an option may list several
        for (const std::string& text : settings.GetList(row.option)) {
          values.push_back(std::stod(text));
        }
        const auto printed = std::ranges::find(deviations, row.setting, &Deviation::setting);
        if (values != std::vector<double>{paper}) {
          EXPECT_NE(printed, deviations.end()) << row.option;
          ++differ;
        } else if (printed != deviations.end()) {
          // Other arms have other values.
          EXPECT_THAT(printed->run, HasSubstr("; ")) << row.option;
        } else {
          ++equal;
        }
      }
    }
  }
  EXPECT_GT(equal, 20u);
  EXPECT_GT(differ, 40u);
}

TEST(PaperTraining, EveryStudyPrintsItsSizeLengthAndData) {
  for (const Experiment* const experiment : Trainings()) {
    const Settings settings = MakeSettings(*experiment, "quick", 0, 1, {});
    const Names names = NamesOf(experiment->deviations(settings));
    for (const char* const setting : {"parameters",
                                      "parameters without embeddings",
                                      "depth (image + text)",
                                      "width (image + text)",
                                      "batch",
                                      "tokens per step (of images: patches)",
                                      "tokens in all",
                                      "steps",
                                      "vocabulary",
                                      "data",
                                      "hardware"}) {
      EXPECT_TRUE(names.contains(setting)) << experiment->name << " " << setting;
    }
    EXPECT_EQ(ScaleWord(experiment->trained(settings)), "toy") << experiment->name;
  }
}

std::string TextOf(const char* name, const char* preset) {
  const Experiment* const experiment = FindExperiment(name);
  return DeviationsText(*experiment, MakeSettings(*experiment, preset, 0, 1, {}));
}

// An independent review of the summaries missed these settings in them.
TEST(PaperTraining, SummariesPrintWhatAReviewFoundMissing) {
  EXPECT_THAT(TextOf("moment-formats", "quick"), HasSubstr("| 4.2 M"));
  EXPECT_THAT(TextOf("moment-formats", "quick"), HasSubstr("shard of a tensor"));
  EXPECT_THAT(TextOf("moment-formats", "paper"), HasSubstr("| 32000                   | 256"));
  EXPECT_THAT(TextOf("switchback-accuracy", "quick"), HasSubstr("LAION-2B"));
  EXPECT_THAT(TextOf("switchback-accuracy", "quick"), HasSubstr("bnb-e4m3"));
  EXPECT_THAT(TextOf("switchback-accuracy", "quick"), HasSubstr("sums of such"));
  EXPECT_THAT(TextOf("fp8-interventions", "quick"), HasSubstr("24 + 12"));
  EXPECT_THAT(TextOf("loss-spikes", "quick"), HasSubstr("storage between"));
  EXPECT_THAT(TextOf("loss-scaling", "quick"), HasSubstr("stable-adamw"));
  EXPECT_THAT(TextOf("fp8-outliers", "quick"), HasSubstr("Gaudi2's"));
}

// A constant rate of 1000 steps has a warm-up of 100; "a quarter of the steps, as in the paper" was false.
TEST(PaperTraining, TheWarmUpIsAShareOfTheStepsOfTheRun) {
  const std::string text = TextOf("loss-spikes", "constant-rate");
  EXPECT_THAT(text, HasSubstr("| 25 %"));
  EXPECT_THAT(text, HasSubstr("10 %"));
  EXPECT_THAT(text, Not(HasSubstr("quarter")));
}

}  // namespace
}  // namespace numsim::experiments
