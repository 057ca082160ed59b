// The experiment `loss-spikes`: arms, options, configurations and data.
#include "experiments/loss_spikes/loss_spikes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/config/config.h"
#include "numsim/train/trainer.h"
#include "tests/experiments/loss_spikes_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::loss_spikes {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Every optimiser of the documentation but AdamW.
constexpr const char* kOthers =
    "stable-adamw,stable-adamw:decay,stable-adamw:added,stable-adamw:previous,stable-adamw:update,"
    "stable-adamw:moment,stable-adamw:global,clip-1,clip-2,stable-clip-1,lion:3,lion:10,"
    "adafactor-style";

std::vector<Arm> ArmsFor(const Settings& settings) { return ArmsOf(LossSpikesStudy(), settings); }

std::vector<std::string> TextsOf(const std::vector<Arm>& arms) {
  std::vector<std::string> texts;
  for (const Arm& arm : arms) texts.push_back(TextOf(arm));
  return texts;
}

std::vector<std::string> TextsWith(const Overrides& changes) {
  return TextsOf(ArmsFor(TinySettings(changes)));
}

std::vector<study::Choice> Optimizers() { return LossSpikesStudy().axes[kOptimizer].choices; }

// ---- arms

TEST(SpikeArms, DepartFromTheCentreInOneRespect) {
  const Settings settings = TinySettings();
  EXPECT_EQ(Centre(settings, "0.99"), TinyArm());
  EXPECT_THAT(TextsOf(ArmsFor(settings)),
              ElementsAre("clip 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.99 adamw",
                          "clip 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.9 adamw",
                          "clip 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.99 stable-adamw"));
  const std::string centre = "clip 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 ";
  struct Case {
    const char *option, *value;
    std::vector<std::string> arms;  // besides those above
  };
  const Case cases[] = {
      {"beta2", "0.99,0.9,0.5", {centre + "0.5 adamw"}},
      {"lambdas", "0.5,0.65", {centre + "1-t^-0.5 adamw", centre + "1-t^-0.65 adamw"}},
      {"axis-beta2", "0.99,0.8", {centre + "0.8 adamw"}},
      {"sizes",
       "1x32,2x16",
       {"clip 2x16 batch 4 lr 1e-2 warmup 3 steady beta2 0.99 adamw",
        "clip 2x16 batch 4 lr 1e-2 warmup 3 steady beta2 0.9 adamw"}},
      {"batches",
       "8",
       {"clip 1x32 batch 8 lr 1e-2 warmup 3 steady beta2 0.99 adamw",
        "clip 1x32 batch 8 lr 1e-2 warmup 3 steady beta2 0.9 adamw"}},
      {"lrs",
       "1e-3,1e-2",
       {"clip 1x32 batch 4 lr 1e-3 warmup 3 steady beta2 0.99 adamw",
        "clip 1x32 batch 4 lr 1e-3 warmup 3 steady beta2 0.9 adamw"}},
      {"warmups",
       "0",
       {"clip 1x32 batch 4 lr 1e-2 warmup 0 steady beta2 0.99 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 0 steady beta2 0.9 adamw"}},
      {"changes",
       "jump:5,contrast:2",
       {"clip 1x32 batch 4 lr 1e-2 warmup 3 jump:5 beta2 0.99 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 contrast:2 beta2 0.99 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 jump:5 beta2 0.9 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 contrast:2 beta2 0.9 adamw"}},
      {"changes",
       "new",
       {"clip 1x32 batch 4 lr 1e-2 warmup 3 new beta2 0.99 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 new beta2 0.99 stable-adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 new beta2 0.9 adamw",
        "clip 1x32 batch 4 lr 1e-2 warmup 3 new beta2 0.9 stable-adamw"}},
      {"models",
       "clip,llama",
       {"llama 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.99 adamw",
        "llama 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.99 stable-adamw",
        "llama 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.9 adamw",
        "llama 1x32 batch 4 lr 1e-2 warmup 3 steady beta2 0.9 stable-adamw"}},
      {"student-lrs",
       "3e-2",
       {"mlp 1x32 batch 8 lr 3e-2 warmup 3 steady beta2 0.99 adamw",
        "mlp 1x32 batch 8 lr 3e-2 warmup 3 steady beta2 0.99 stable-adamw",
        "mlp 1x32 batch 8 lr 3e-2 warmup 3 steady beta2 0.9 adamw",
        "mlp 1x32 batch 8 lr 3e-2 warmup 3 steady beta2 0.9 stable-adamw"}},
      {"optimizers",
       "stable-adamw,clip-1,lion:3,clip-1",
       {centre + "0.99 clip-1", centre + "0.99 lion:3"}},
      {"optimizer-beta2", "0.99,0.5", {centre + "0.5 stable-adamw", centre + "0.5 adamw"}}};
  for (const Case& c : cases) {
    std::set<std::string> expected(c.arms.begin(), c.arms.end());
    const bool replaces_low = std::string_view(c.option) == "axis-beta2";
    for (const char* const arm : {"0.99 adamw", "0.9 adamw", "0.99 stable-adamw"}) {
      expected.insert(centre + arm);
    }
    const std::vector<std::string> texts = TextsWith({{c.option, c.value}});
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), expected) << c.option;
    EXPECT_EQ(texts.size(), expected.size()) << c.option << " has an arm twice";
    EXPECT_TRUE(!replaces_low || texts.size() == 4u);
  }
}

TEST(SpikeArms, OfEveryPresetAreThereOnceAndCanBeConfigured) {
  const Experiment experiment = LossSpikes();
  std::vector<std::string> names;
  for (const Preset& preset : experiment.presets) {
    SCOPED_TRACE(preset.name);
    names.push_back(preset.name);
    const Settings settings = MakeSettings(experiment, preset.name, 0, preset.seeds, {});
    const std::vector<Arm> arms = ArmsFor(settings);
    std::set<std::string> texts;
    for (const Arm& arm : arms) {
      EXPECT_TRUE(texts.insert(TextOf(arm)).second) << TextOf(arm);
      EXPECT_EQ(ErrorOf([&] { CheckTrainConfig(ConfigOf(settings, arm, 3)); }), kNoError)
          << TextOf(arm);
      EXPECT_EQ(ErrorOf([&] { RuleOf(settings, arm); }), kNoError);
    }
    EXPECT_THAT(texts, Contains(TextOf(Centre(settings, settings.GetList("axis-beta2").at(0)))));
    EXPECT_THAT(texts, Contains(TextOf(Centre(settings, settings.GetList("axis-beta2").at(1)))));
  }
  EXPECT_THAT(names, ElementsAre("quick", "small", "constant-rate", "vit-s", "vit-b", "paper"));
}

// ---- configurations

struct Variant {
  const char* name;
  std::function<void(TrainConfig&)> change;
};

TEST(SpikeOptimizers, SetWhatTheirMeaningSaysAndNothingElse) {
  const auto stable = [](TrainConfig& c) { c.optimizer.kind = OptimizerKind::kStableAdamW; };
  const std::vector<Variant> variants = {
      {"adamw", [](TrainConfig&) {}},
      {"stable-adamw", stable},
      {"stable-adamw:decay",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.clipped_decay = false;
       }},
      {"stable-adamw:added",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.epsilon_added = true;
         c.optimizer.stable.clipped_decay = false;
       }},
      {"stable-adamw:previous",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.previous_u = true;
       }},
      {"stable-adamw:update",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.of_update = true;
       }},
      {"stable-adamw:moment",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.of_moment = true;
       }},
      {"stable-adamw:global",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.stable.global = true;
       }},
      {"clip-1", [](TrainConfig& c) { c.optimizer.clip_norm = 1; }},
      {"clip-2", [](TrainConfig& c) { c.optimizer.clip_norm = 2; }},
      {"stable-clip-1",
       [&](TrainConfig& c) {
         stable(c);
         c.optimizer.clip_norm = 1;
       }},
      {"lion:3",
       [](TrainConfig& c) {
         c.optimizer.kind = OptimizerKind::kLion;
         c.optimizer.beta2 = 0.99;
         c.schedule.peak = 1e-2 / 3;
         c.optimizer.weight_decay = 0.5 * 3;
       }},
      {"lion:10",
       [](TrainConfig& c) {
         c.optimizer.kind = OptimizerKind::kLion;
         c.optimizer.beta2 = 0.99;
         c.schedule.peak = 1e-2 / 10;
         c.optimizer.weight_decay = 0.5 * 10;
       }},
      {"adafactor-style", [&](TrainConfig& c) {
         stable(c);
         c.optimizer.beta1 = 0;
         c.optimizer.beta2_decay = 0.8;
       }}};
  const Settings settings = TinySettings({{"weight-decay", "0.5"}});
  ASSERT_EQ(Optimizers().size(), variants.size());
  for (size_t i = 0; i < variants.size(); ++i) {
    EXPECT_EQ(Optimizers()[i].name, variants[i].name);
    TrainConfig expected = ConfigOf(settings, TinyArm("0.9"), 4);
    variants[i].change(expected);
    EXPECT_EQ(WriteTrainConfig(ConfigOf(settings, TinyArm("0.9", variants[i].name), 4)),
              WriteTrainConfig(expected))
        << variants[i].name;
  }
}

TEST(SpikeOptimizers, AreAllAcceptedByTheOptionAndDescribed) {
  const Settings settings =
      TinySettings({{"optimizers", std::string("adamw,") + kOthers}, {"optimizer-beta2", "0.9"}});
  std::vector<std::string> names;
  EXPECT_EQ(ErrorOf([&] { LossSpikes().trials(settings); }), kNoError);
  for (const Arm& arm : ArmsFor(settings)) {
    if (arm[kBeta2] == "0.9") names.push_back(arm[kOptimizer]);
  }
  ASSERT_EQ(names.size(), Optimizers().size());
  for (const study::Choice& optimizer : Optimizers()) {
    EXPECT_THAT(names, Contains(optimizer.name));
    EXPECT_THAT(LossSpikes().description, HasSubstr("\n  " + optimizer.name + " "));
  }
}

TEST(SpikeConfig, OfEveryModelHasItsData) {
  const Settings settings = TinySettings();
  const TrainConfig vit = ConfigOf(settings, With(TinyArm(), kModel, "vit"), 0);
  EXPECT_EQ(vit.model.kind, ModelKind::kVit);
  EXPECT_EQ(vit.data.kind, DataKind::kGeneratedImages);
  EXPECT_EQ(vit.data.size, 256u);
  EXPECT_EQ(vit.model.patch_dropout, 0.5);
  const TrainConfig llama = ConfigOf(settings, With(TinyArm(), kModel, "llama"), 0);
  EXPECT_EQ(llama.model.kind, ModelKind::kLlama);
  EXPECT_EQ(llama.data.kind, DataKind::kGeneratedText);
  EXPECT_EQ(llama.data.size, 16384u);
  EXPECT_EQ(llama.model.context, 16u);
}

// The student differs from other models in its data, its schedule, its epsilon and its decay.
TEST(SpikeConfig, OfTheStudentIsThatOfTheRivalPredictor) {
  for (const char* const optimizer : {"adamw", "stable-adamw"}) {
    const TrainConfig config = ConfigOf(TinySettings(), TinyStudent(optimizer, "3e-2"), 1);
    EXPECT_EQ(config.model.kind, ModelKind::kMlp);
    EXPECT_EQ(config.model.layers, 1u);
    EXPECT_EQ(config.model.width, 32u);
    EXPECT_EQ(config.data.kind, DataKind::kGaussian);
    EXPECT_EQ(config.schedule.kind, ScheduleKind::kConstant);
    EXPECT_EQ(config.schedule.peak, 3e-2);
    EXPECT_EQ(config.optimizer.epsilon, 1e-8);
    EXPECT_EQ(config.optimizer.weight_decay, 0);
    EXPECT_EQ(config.optimizer.beta2, 0.99);
    EXPECT_EQ(ToString(config.optimizer.kind), optimizer);
  }
}

TEST(SpikeConfig, TextsOfBeta2AreANumberOrASchedule) {
  const OptimizerConfig number = ConfigOf(TinySettings(), TinyArm("0.99"), 0).optimizer;
  EXPECT_EQ(number.beta2, 0.99);
  EXPECT_EQ(number.beta2_decay, 0);
  EXPECT_EQ(ConfigOf(TinySettings(), TinyArm("0"), 0).optimizer.beta2, 0);
  const OptimizerConfig schedule = ConfigOf(TinySettings(), TinyArm("1-t^-0.5"), 0).optimizer;
  EXPECT_EQ(schedule.beta2_decay, 0.5);
  EXPECT_EQ(ConfigOf(TinySettings(), TinyArm("1-t^-0.65"), 0).optimizer.beta2_decay, 0.65);
  EXPECT_THAT(SchedulesOf(TinySettings({{"lambdas", "0.5,0.65"}})),
              ElementsAre("1-t^-0.5", "1-t^-0.65"));
  EXPECT_TRUE(SchedulesOf(TinySettings()).empty());
}

TEST(SpikeConfig, ChangesOfTheDataAreStressFromAStepOn) {
  const Settings settings = TinySettings({{"change-step", "17"}});
  const auto stress = [&](const char* data) {
    return ConfigOf(settings, With(TinyArm(), kData, data), 0).stress;
  };
  for (const char* const data : {"steady", "new"}) {
    EXPECT_EQ(stress(data).jump_loss, 1) << data;
    EXPECT_EQ(stress(data).jump_contrast, 1) << data;
  }
  EXPECT_EQ(stress("jump:100").jump_step, 17u);
  EXPECT_EQ(stress("jump:100").jump_loss, 100);
  EXPECT_EQ(stress("jump:100").jump_contrast, 1);
  EXPECT_EQ(stress("constant:1e3").jump_step, 0u);
  EXPECT_EQ(stress("constant:1e3").jump_loss, 1000);
  EXPECT_EQ(stress("constant:1e3").jump_contrast, 1);
  EXPECT_EQ(stress("contrast:0.5").jump_step, 17u);
  EXPECT_EQ(stress("contrast:0.5").jump_loss, 1);
  EXPECT_EQ(stress("contrast:0.5").jump_contrast, 0.5);
}

TEST(SpikeRuleOfAnArm, IgnoresItsWarmUp) {
  const Settings settings = TinySettings({{"window", "9"}, {"spike-rms", "4"}});
  const SpikeRule rule = RuleOf(settings, With(TinyArm(), kWarmup, "13"));
  EXPECT_EQ(rule.ignored, 13u);
  EXPECT_EQ(rule.window, 9u);
  EXPECT_EQ(rule.rms, 4);
  EXPECT_EQ(rule.deviations, 0.5);
  const Settings quick = MakeSettings(LossSpikes(), "quick", 0, 1, {});
  EXPECT_EQ(RuleOf(quick, TinyArm()).rms, 2.3);
  EXPECT_EQ(RuleOf(quick, TinyArm()).deviations, 3.2);
}

// ---- bad options

std::string OptionError(const Overrides& changes) {
  return ErrorOf([&] { LossSpikes().trials(TinySettings(changes)); });
}

// Expects an error that begins with the option.
void ExpectNamed(const std::string& option, const std::string& value) {
  EXPECT_THAT(OptionError({{option, value}}),
              AnyOf(StartsWith("--" + option + " "), StartsWith("--" + option + ":")))
      << "--" << option << " '" << value << "'";
}

TEST(SpikeOptions, AreNamedInErrors) {
  EXPECT_EQ(OptionError({}), kNoError);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"models", "gpt"},
      {"models", "clip,clip"},
      {"models", ""},
      {"batch", "1000"},
      {"batches", "1000"},
      {"beta2", "1"},
      {"beta2", "-0.1"},
      {"beta2", "nan"},
      {"beta2", "0.99,0.99"},
      {"beta2", ""},
      {"axis-beta2", "0.9,0.9"},
      {"axis-beta2", "0.9,0.99"},
      {"axis-beta2", "0.99"},
      {"axis-beta2", ""},
      {"lambdas", "-1"},
      {"lambdas", "0.5,"},
      {"sizes", "1"},
      {"sizes", "1x15"},
      {"sizes", "x32"},
      {"changes", "news"},
      {"changes", "jump:"},
      {"changes", "jump:x"},
      {"changes", "jump:0"},
      {"changes", "jump:1e9"},
      {"changes", "constant:-1"},
      {"changes", "contrast:1e9"},
      {"change-step", "0"},
      {"old-batches", "0"},
      {"student-batch", "0"},
      {"curvature", "maybe"},
      {"spike-rms", "-2"},
      {"patch-dropout", "1"},
  };
  for (const auto& [option, value] : bad) {
    ExpectNamed(option, value);
    EXPECT_THAT(OptionError({{option, value}}), Not(HasSubstr("\n")));
  }
  EXPECT_THAT(OptionError({{"captions", "no-such-folder"}}), HasSubstr("no-such-folder"));
  EXPECT_THAT(OptionError({{"models", "clip,vit"}, {"images", "1"}}), StartsWith("--images "));
  EXPECT_THAT(OptionError({{"models", "clip,llama"}, {"context", "0"}}), StartsWith("--context "));
  EXPECT_THAT(OptionError({{"keys", "train.diverged_above=3"}}),
              HasSubstr("train.diverged_above=3: the experiment sets this key itself"));
}

// An axis and the centre share the values' meaning, not the option.
TEST(SpikeOptions, OfAnAxisAreNamedAndNotThoseOfTheCentre) {
  const std::vector<std::pair<std::string, std::string>> bad = {{"models", "vti"},
                                                                {"size", "1"},
                                                                {"batches", "0"},
                                                                {"lrs", "1e-3,x"},
                                                                {"warmups", "-1"},
                                                                {"axis-beta2", "0.99,2"},
                                                                {"optimizer-beta2", "x"},
                                                                {"lambdas", "x"},
                                                                {"student-lrs", "-1"}};
  for (const auto& [option, value] : bad) ExpectNamed(option, value);
}

// Optimisers take a decay of 0 as none: beta2 would be that of the configuration.
TEST(SpikeOptions, AScheduleOfNoDecayIsNone) { ExpectNamed("lambdas", "0"); }

TEST(SpikeOptions, OfAMistypedOptimizerNameTheNearestOne) {
  EXPECT_THAT(
      OptionError({{"optimizers", "stable-adamv"}}),
      AllOf(
          StartsWith("--optimizers 'stable-adamv': optimizer 'stable-adamv' is not one of adamw, "),
          HasSubstr("did you mean stable-adamw?")));
  EXPECT_THAT(OptionError({{"optimizers", "clip-1,stable-adamw:globl"}}),
              HasSubstr("did you mean stable-adamw:global?"));
  EXPECT_THAT(OptionError({{"optimizers", "zzz"}}), Not(HasSubstr("did you mean")));
}

TEST(SpikeOptions, AChangeIsWithinTheTraining) {
  for (const char* const change : {"jump:2", "contrast:2", "new"}) {
    EXPECT_EQ(OptionError({{"changes", change}, {"change-step", "29"}}), kNoError) << change;
    EXPECT_THAT(OptionError({{"changes", change}, {"change-step", "30"}}),
                StartsWith("--change-step 30"))
        << change;
  }
  EXPECT_EQ(OptionError({{"changes", "constant:2"}, {"change-step", "30"}}), kNoError);
  EXPECT_EQ(OptionError({{"change-step", "30"}}), kNoError);
}

// ---- data

// Which the run's test compares with a data source of its own.
TEST(SpikeConfig, OfNewDataSeesTheFirstBatchesUntilTheChange) {
  const Settings settings = TinySettings({{"change-step", "17"}, {"old-batches", "3"}});
  const StressConfig stress = ConfigOf(settings, With(TinyArm(), kData, "new"), 0).stress;
  EXPECT_EQ(stress.BatchOf(16, 16), 1u);
  EXPECT_EQ(stress.BatchOf(17, 17), 17u);
  EXPECT_EQ(ConfigOf(settings, TinyArm(), 0).stress.BatchOf(16, 16), 16u);
}

// The rows of a batch of features, sorted.
std::multiset<std::vector<float>> RowsOfBatch(const Batch& batch, size_t features) {
  std::multiset<std::vector<float>> rows;
  for (size_t i = 0; i < batch.examples; ++i) {
    const auto row = batch.values.begin() + static_cast<std::ptrdiff_t>(i * features);
    rows.insert(std::vector<float>(row, row + static_cast<std::ptrdiff_t>(features)));
  }
  return rows;
}

TEST(SpikeStudent, SeesAllItsDataInEveryStep) {
  for (const char* const size : {"8", "24"}) {
    const Settings settings = TinySettings({{"student-batch", size}});
    const Arm arm = With(TinyStudent(), kBatch, size);
    const TrainConfig config = ConfigOf(settings, arm, 3);
    const std::unique_ptr<const DataSource> data = OpenData(config.data);
    const DataShape& shape = data->shape();
    const size_t batch = config.train.batch;
    EXPECT_EQ(std::to_string(batch), size);
    EXPECT_EQ(shape.train_examples, batch);
    EXPECT_GE(shape.valid_examples, batch);
    Batch first, later;
    data->TrainBatch(3, 0, batch, 0, first);
    const auto rows = RowsOfBatch(first, shape.features);
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), batch) << "a row twice";
    for (uint64_t step = 1; step < 10; ++step) {
      data->TrainBatch(3, step, batch, 0, later);
      EXPECT_EQ(RowsOfBatch(later, shape.features), rows) << step;
    }
  }
}

// A student as wide as its features has no layer that reads the input.
TEST(SpikeStudent, MayNotBeAsWideAsItsFeatures) {
  for (const char* const option : {"size", "sizes"}) {
    EXPECT_EQ(OptionError({{option, "1x16"}}), kNoError);
  }
  EXPECT_THAT(OptionError({{"size", "1x16"}, {"student-lrs", "1e-2"}}), HasSubstr("width 16"));
  EXPECT_EQ(OptionError({{"sizes", "1x16"}, {"student-lrs", "1e-2"}}), kNoError);
}

TEST(SpikeModels, HaveTheParameterThatReadsTheInput) {
  for (const char* const model : {"clip", "vit", "llama", "mlp"}) {
    const Arm arm =
        std::string_view(model) == "mlp" ? TinyStudent() : With(TinyArm(), kModel, model);
    const TrainConfig config = ConfigOf(TinySettings(), arm, 0);
    const Trainer trainer(config, OpenData(config.data));
    std::vector<std::string> names;
    for (const Parameter<float>& parameter : trainer.model().parameters()) {
      names.push_back(parameter.name);
    }
    EXPECT_THAT(names, Contains(InputParameter(model))) << model;
  }
}

}  // namespace
}  // namespace numsim::experiments::loss_spikes
