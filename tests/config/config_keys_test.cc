// Every key: which field it sets, that it sets no other, and that it survives being written.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "numsim/config/config.h"

namespace numsim {
namespace {

using C = TrainConfig;

struct KeyCase {
  std::string key, value;
  bool (*holds)(const C&);          // of a configuration with that value, and of no other
  std::vector<std::string> beside;  // other keys that the value needs
};

bool Delayed(const C& c) { return c.linear.all.delayed.has_value(); }

const KeyCase kModel[] = {
    {"model.kind", "gpt", [](const C& c) { return c.model.kind == ModelKind::kGpt; }, {}},
    {"model.layers", "3", [](const C& c) { return c.model.layers == 3; }, {}},
    {"model.width", "64", [](const C& c) { return c.model.width == 64; }, {}},
    {"model.heads", "2", [](const C& c) { return c.model.heads == 2; }, {}},
    {"model.mlp",
     "smooth-swiglu-token",
     [](const C& c) { return c.model.mlp == MlpKind::kSmoothSwigluToken; },
     {}},
    {"model.hidden", "96", [](const C& c) { return c.model.hidden == 96; }, {}},
    {"model.context", "33", [](const C& c) { return c.model.context == 33; }, {}},
    {"model.patch", "7", [](const C& c) { return c.model.patch == 7; }, {}},
    {"model.text_layers", "5", [](const C& c) { return c.model.text_layers == 5; }, {}},
    {"model.text_width", "48", [](const C& c) { return c.model.text_width == 48; }, {}},
    {"model.text_heads", "6", [](const C& c) { return c.model.text_heads == 6; }, {}},
    {"model.embedding", "24", [](const C& c) { return c.model.embedding == 24; }, {}},
    {"model.qk_norm", "true", [](const C& c) { return c.model.qk_norm; }, {}},
    {"model.layer_scale", "0.1", [](const C& c) { return c.model.layer_scale == 0.1f; }, {}},
    {"model.norm_epsilon", "1e-6", [](const C& c) { return c.model.norm_epsilon == 1e-6; }, {}},
    {"model.rope_base", "500.5", [](const C& c) { return c.model.rope_base == 500.5; }, {}},
    {"model.initial_deviation",
     "0.01",
     [](const C& c) { return c.model.initial_deviation == 0.01; },
     {}},
    {"model.scaled_branches", "false", [](const C& c) { return !c.model.scaled_branches; }, {}},
};

const KeyCase kLinear[] = {
    {"linear.kind", "switchback", [](const C& c) { return c.linear.all.kind == "switchback"; }, {}},
    {"linear.format",
     "e4m3fn",
     [](const C& c) { return c.linear.all.format == "e4m3fn"; },
     {"linear.kind=switchback"}},
    {"linear.gradient_format",
     "e5m2",
     [](const C& c) { return c.linear.all.gradient_format == "e5m2"; },
     {"linear.kind=tensor-wise"}},
    {"linear.high_precision",
     "fp16",
     [](const C& c) { return c.linear.all.high_precision == "fp16"; },
     {}},
    {"linear.gradient_rounding",
     "sr:16:b",
     [](const C& c) {
       return c.linear.all.gradient_rounding ==
              Rounding{RoundingMode::kStochastic, StochasticVariant::kB, 16};
     },
     {"linear.kind=switchback"}},
    {"attention.format", "bf16", [](const C& c) { return c.model.attention.format == "bf16"; }, {}},
    {"attention.gradient_format",
     "e5m2",
     [](const C& c) { return c.model.attention.gradient_format == "e5m2"; },
     {"attention.format=e4m3fn"}},
    {"attention.accumulate",
     "trunc:25,16,128",
     [](const C& c) { return c.model.attention.accumulate == "trunc:25,16,128"; },
     {}},
    {"attention.scaling",
     "row",
     [](const C& c) { return c.model.attention.scaling == "row"; },
     {"attention.format=e4m3fn"}},
    {"attention.scale_rule",
     "pow2-ceil",
     [](const C& c) { return c.model.attention.scale_rule == "pow2-ceil"; },
     {"attention.format=e4m3fn"}},
    {"attention.p_scale",
     "0.25",
     [](const C& c) { return c.model.attention.p_scale == 0.25; },
     {"attention.format=e4m3fn"}},
    {"linear.accumulate",
     "fp32",
     [](const C& c) { return c.linear.all.accumulate == "fp32"; },
     {"linear.kind=switchback"}},
    {"linear.high_precision_accumulate",
     "fp64",
     [](const C& c) { return c.linear.all.high_precision_accumulate == "fp64"; },
     {}},
    {"linear.scale_rule",
     "pow2-ceil",
     [](const C& c) { return c.linear.all.scale_rule == "pow2-ceil"; },
     {"linear.kind=switchback"}},
    {"linear.block",
     "16",
     [](const C& c) { return c.linear.all.block == 16; },
     {"linear.kind=block"}},
    {"linear.high_operands",
     "w,forward.x",
     [](const C& c) { return Text(c.linear.all.high_operands) == "w,forward.x"; },
     {"linear.kind=switchback"}},
    {"linear.delayed_history",
     "12",
     [](const C& c) { return Delayed(c) && c.linear.all.delayed->history == 12; },
     {"linear.kind=te-hybrid"}},
    {"linear.container",
     "bf16",
     [](const C& c) { return c.linear.all.container == "bf16"; },
     {"linear.kind=switchback"}},
    {"linear.delayed_algorithm",
     "most-recent",
     [](const C& c) {
       return Delayed(c) && c.linear.all.delayed->algorithm == AmaxAlgorithm::kMostRecent;
     },
     {"linear.kind=te-hybrid", "linear.delayed_history=12"}},
    {"linear.delayed_margin",
     "-2",
     [](const C& c) { return Delayed(c) && c.linear.all.delayed->margin == -2; },
     {"linear.kind=te-hybrid", "linear.delayed_history=12"}},
    {"linear.first_last_high", "true", [](const C& c) { return c.linear.first_last_high; }, {}},
    {"linear.high_last", "0.15", [](const C& c) { return c.linear.high_last == 0.15; }, {}},
    {"linear.backward_from_codes",
     "x,w",
     [](const C& c) { return Text(c.linear.all.backward_from_codes) == "x,w"; },
     {"linear.kind=mx"}},
    {"linear.hadamard",
     "forward,weight-gradient",
     [](const C& c) { return c.linear.all.hadamard == "forward,weight-gradient"; },
     {"linear.kind=mx"}},
    {"linear.hadamard_size",
     "64",
     [](const C& c) { return c.linear.all.hadamard_size == 64; },
     {"linear.kind=mx", "linear.hadamard=forward"}},
    {"linear.hadamard_signs",
     "0xD7E8",
     [](const C& c) { return c.linear.all.hadamard_signs == "0xD7E8"; },
     {"linear.kind=mx", "linear.hadamard=forward"}},
    {"storage.activations",
     "bf16",
     [](const C& c) { return c.storage.activations.name == "bf16"; },
     {}},
    {"storage.gradients",
     "e5m2",
     [](const C& c) { return c.storage.gradients.name == "e5m2"; },
     {}},
    {"stress.point", "*.down", [](const C& c) { return c.stress.point == "*.down"; }, {}},
    {"stress.channel", "3", [](const C& c) { return c.stress.channel == 3; }, {}},
    {"stress.value",
     "-1e4",
     [](const C& c) { return c.stress.value == -1e4; },
     {"stress.point=blocks.0"}},
    {"stress.input_tail", "1.5", [](const C& c) { return c.stress.input_tail == 1.5; }, {}},
    {"stress.jump_step",
     "40",
     [](const C& c) { return c.stress.jump_step == 40; },
     {"stress.jump_loss=2"}},
    {"stress.jump_loss", "1e-3", [](const C& c) { return c.stress.jump_loss == 1e-3; }, {}},
    {"stress.jump_contrast", "2.5", [](const C& c) { return c.stress.jump_contrast == 2.5; }, {}},
    {"stress.old_steps", "30", [](const C& c) { return c.stress.old_steps == 30; }, {}},
    {"stress.old_batches",
     "7",
     [](const C& c) { return c.stress.old_batches == 7; },
     {"stress.old_steps=30"}},
    {"stress.burst_tensor",
     "head.weight",
     [](const C& c) { return c.stress.burst_tensor == "head.weight"; },
     {}},
    {"stress.burst_step",
     "60",
     [](const C& c) { return c.stress.burst_step == 60; },
     {"stress.burst_tensor=head.gain"}},
    {"stress.burst_steps",
     "7",
     [](const C& c) { return c.stress.burst_steps == 7; },
     {"stress.burst_tensor=head.gain"}},
    {"stress.nudge_draw", "4", [](const C& c) { return c.stress.nudge_draw == 4; }, {}},
    {"stress.nudge_step",
     "30",
     [](const C& c) { return c.stress.nudge_step == 30; },
     {"stress.nudge_draw=1"}},
};

const KeyCase kOptimizer[] = {
    {"optimizer.kind",
     "stable-adamw",
     [](const C& c) { return c.optimizer.kind == OptimizerKind::kStableAdamW; },
     {}},
    {"optimizer.beta1", "0.8", [](const C& c) { return c.optimizer.beta1 == 0.8; }, {}},
    {"optimizer.beta2", "0.999", [](const C& c) { return c.optimizer.beta2 == 0.999; }, {}},
    {"optimizer.beta2_decay", "0.5", [](const C& c) { return c.optimizer.beta2_decay == 0.5; }, {}},
    {"optimizer.epsilon", "1e-6", [](const C& c) { return c.optimizer.epsilon == 1e-6; }, {}},
    {"optimizer.weight_decay", "0", [](const C& c) { return c.optimizer.weight_decay == 0; }, {}},
    {"optimizer.decay_filter",
     "all",
     [](const C& c) { return c.optimizer.decay_filter == DecayFilter::kAll; },
     {}},
    {"optimizer.clip_norm", "1", [](const C& c) { return c.optimizer.clip_norm == 1; }, {}},
    {"optimizer.stable.clipped_decay",
     "false",
     [](const C& c) { return !c.optimizer.stable.clipped_decay; },
     {}},
    {"optimizer.stable.epsilon_added",
     "true",
     [](const C& c) { return c.optimizer.stable.epsilon_added; },
     {}},
    {"optimizer.stable.previous_u",
     "true",
     [](const C& c) { return c.optimizer.stable.previous_u; },
     {}},
    {"optimizer.stable.of_update",
     "true",
     [](const C& c) { return c.optimizer.stable.of_update; },
     {}},
    {"optimizer.stable.of_moment",
     "true",
     [](const C& c) { return c.optimizer.stable.of_moment; },
     {}},
    {"optimizer.stable.global", "true", [](const C& c) { return c.optimizer.stable.global; }, {}},
    {"optimizer.stable.threshold",
     "2.5",
     [](const C& c) { return c.optimizer.stable.threshold == 2.5; },
     {}},
    {"optimizer.m",
     "e4m3fn@block:64+sr:8",
     [](const C& c) { return ToString(c.optimizer.m) == "e4m3fn@block:64+sr:8"; },
     {}},
    {"optimizer.v",
     "e5m2@coat",
     [](const C& c) { return ToString(c.optimizer.v) == "e5m2@coat"; },
     {}},
    {"optimizer.moment_filter",
     "all",
     [](const C& c) { return c.optimizer.moment_filter == MomentFilter::kAll; },
     {}},
    {"optimizer.moment_minimum",
     "4096",
     [](const C& c) { return c.optimizer.moment_minimum == 4096; },
     {}},
    {"optimizer.moment_tensors",
     "blocks.*",
     [](const C& c) { return c.optimizer.moment_tensors == "blocks.*"; },
     {}},
    {"optimizer.update_from_stored",
     "true",
     [](const C& c) { return c.optimizer.update_from_stored; },
     {}},
    {"optimizer.weights",
     "bf16",
     [](const C& c) { return c.optimizer.weights.name == "bf16"; },
     {}},
    {"optimizer.update",
     "kahan:bf16",
     [](const C& c) { return ToString(c.optimizer.update) == "kahan:bf16"; },
     {}},
};

const KeyCase kTraining[] = {
    {"schedule.kind",
     "linear",
     [](const C& c) { return c.schedule.kind == ScheduleKind::kLinear; },
     {}},
    {"schedule.peak", "0.02", [](const C& c) { return c.schedule.peak == 0.02; }, {}},
    {"schedule.warmup", "11", [](const C& c) { return c.schedule.warmup == 11; }, {}},
    {"schedule.final", "0.25", [](const C& c) { return c.schedule.final == 0.25; }, {}},
    {"loss_scaler.kind",
     "dynamic",
     [](const C& c) { return c.loss_scaler.kind == LossScaling::kDynamic; },
     {}},
    {"loss_scaler.initial", "128", [](const C& c) { return c.loss_scaler.initial == 128; }, {}},
    {"loss_scaler.growth", "4", [](const C& c) { return c.loss_scaler.growth == 4; }, {}},
    {"loss_scaler.backoff", "0.25", [](const C& c) { return c.loss_scaler.backoff == 0.25; }, {}},
    {"loss_scaler.growth_interval",
     "77",
     [](const C& c) { return c.loss_scaler.growth_interval == 77; },
     {}},
    {"data.kind", "images", [](const C& c) { return c.data.kind == DataKind::kImages; }, {}},
    {"data.path", "/a/b", [](const C& c) { return c.data.path == "/a/b"; }, {}},
    {"data.valid_path", "/a/c", [](const C& c) { return c.data.valid_path == "/a/c"; }, {}},
    {"data.valid_share", "0.2", [](const C& c) { return c.data.valid_share == 0.2; }, {}},
    {"data.size", "5000", [](const C& c) { return c.data.size == 5000; }, {}},
    {"data.seed", "21", [](const C& c) { return c.data.seed == 21; }, {}},
    {"data.classes", "12", [](const C& c) { return c.data.classes == 12; }, {}},
    {"data.image", "36", [](const C& c) { return c.data.image == 36; }, {}},
    {"data.features", "65", [](const C& c) { return c.data.features == 65; }, {}},
    {"train.accumulate", "4", [](const C& c) { return c.train.accumulate == 4; }, {}},
    {"model.patch_dropout", "0.5", [](const C& c) { return c.model.patch_dropout == 0.5; }, {}},
    {"data.vocabulary", "1000", [](const C& c) { return c.data.vocabulary == 1000; }, {}},
    {"data.tokenizer",
     "bpe",
     [](const C& c) { return c.data.tokenizer == TokenizerKind::kBpe; },
     {}},
    {"data.tokenizer_path", "/a/d", [](const C& c) { return c.data.tokenizer_path == "/a/d"; }, {}},
    {"data.distinct_concepts", "false", [](const C& c) { return !c.data.distinct_concepts; }, {}},
    {"train.seed",
     "18446744073709551615",
     [](const C& c) { return c.train.seed == 18446744073709551615u; },
     {}},
    {"train.steps", "123", [](const C& c) { return c.train.steps == 123; }, {}},
    {"train.batch", "9", [](const C& c) { return c.train.batch == 9; }, {}},
    {"train.valid_every", "0", [](const C& c) { return c.train.valid_every == 0; }, {}},
    {"train.valid_batches", "0", [](const C& c) { return c.train.valid_batches == 0; }, {}},
    {"train.diverged_above", "1.5", [](const C& c) { return c.train.diverged_above == 1.5; }, {}},
    {"fork.steps", "7", [](const C& c) { return c.fork.steps == 7; }, {}},
    {"fork.before",
     "[\"optimizer.v=e5m2\"]",
     [](const C& c) { return c.fork.before == std::vector<std::string>{"optimizer.v=e5m2"}; },
     {"fork.steps=7"}},
    {"telemetry.every", "4", [](const C& c) { return c.telemetry.every == 4; }, {}},
    {"telemetry.tensors_every", "0", [](const C& c) { return c.telemetry.tensors_every == 0; }, {}},
    {"what_if.every", "3", [](const C& c) { return c.what_if.every == 3; }, {}},
    {"what_if.recipes",
     "[\"e4m3fn tensor\", \"e2m1fn block:16 sr\"]",
     [](const C& c) {
       return c.what_if.recipes.size() == 2 &&
              ToString(c.what_if.recipes[1]) == "e2m1fn block:16 sr";
     },
     {}},
    {"what_if.layers",
     "[\"head\", \"*.\\\"down\\\"\"]",
     [](const C& c) {
       return c.what_if.layers == std::vector<std::string>{"head", "*.\"down\""};
     },
     {}},
    {"checkpoint.every", "0", [](const C& c) { return c.checkpoint.every == 0; }, {}},
};

std::vector<KeyCase> AllCases() {
  std::vector<KeyCase> cases(std::begin(kModel), std::end(kModel));
  cases.insert(cases.end(), std::begin(kLinear), std::end(kLinear));
  cases.insert(cases.end(), std::begin(kOptimizer), std::end(kOptimizer));
  cases.insert(cases.end(), std::begin(kTraining), std::end(kTraining));
  return cases;
}

TrainConfig With(const std::vector<std::string>& overrides) {
  return ParseTrainConfig("", "test", {}, overrides);
}

// Names of the keys whose values differ.
std::vector<std::string> Differing(const TrainConfig& x, const TrainConfig& y) {
  const std::vector<ConfigKey> before = ConfigKeys(x), after = ConfigKeys(y);
  EXPECT_EQ(before.size(), after.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    EXPECT_EQ(before[i].name, after[i].name);
    if (before[i].value != after[i].value) names.push_back(after[i].name);
  }
  return names;
}

TEST(ConfigKeys, EveryOneIsACaseOfThisTest) {
  std::set<std::string> tested;
  for (const KeyCase& one : AllCases()) tested.insert(one.key);
  std::set<std::string> known;
  for (const ConfigKey& key : ConfigKeys(TrainConfig())) known.insert(key.name);
  EXPECT_EQ(tested, known);
}

TEST(ConfigKeys, EveryOneSetsItsFieldAndNoOther) {
  for (const KeyCase& one : AllCases()) {
    const TrainConfig before = With(one.beside);
    EXPECT_FALSE(one.holds(before)) << one.key;
    std::vector<std::string> overrides = one.beside;
    overrides.push_back(one.key + "=" + one.value);
    const TrainConfig after = With(overrides);
    EXPECT_TRUE(one.holds(after)) << one.key;
    EXPECT_EQ(Differing(before, after), std::vector<std::string>{one.key}) << one.key;
  }
}

TEST(ConfigKeys, EveryOneSurvivesBeingWritten) {
  for (const KeyCase& one : AllCases()) {
    std::vector<std::string> overrides = one.beside;
    overrides.push_back(one.key + "=" + one.value);
    const TrainConfig config = With(overrides);
    const std::string toml = WriteTrainConfig(config);
    const TrainConfig again = ParseTrainConfig(toml, "written", "/elsewhere", {});
    EXPECT_TRUE(one.holds(again)) << one.key << "\n" << toml;
    EXPECT_EQ(Differing(config, again), std::vector<std::string>()) << one.key;
  }
}

TEST(ConfigKeys, DefaultsAreThoseOfTheStructs) {
  EXPECT_EQ(Differing(TrainConfig(), With({})), std::vector<std::string>());
}

TEST(ConfigKeys, EachIsTomlThatSetsItselfAndHasAMeaningOfOneLine) {
  for (const ConfigKey& key : ConfigKeys(TrainConfig())) {
    EXPECT_EQ(Differing(TrainConfig(), With({key.name + "=" + key.value})),
              std::vector<std::string>())
        << key.name;
    EXPECT_NE(key.meaning, "") << key.name;
    EXPECT_EQ(key.meaning.find_first_of("\n|"), std::string::npos) << key.name;
    EXPECT_TRUE(key.meaning.ends_with(')')) << key.name << ": no valid values";
  }
}

TEST(ConfigKeys, OverridesHaveTheKeysOfLinearLayers) {
  const char* const toml = R"(
[linear]
kind = "switchback"
[[linear.override]]
layers = "*.mlp.down"
kind = "te-hybrid"
delayed_history = 5
[[linear.override]]
layers = "head"
high_precision = "fp16"
)";
  const TrainConfig config = ParseTrainConfig(toml, "test", {}, {});
  ASSERT_EQ(config.linear.overrides.size(), 2u);
  EXPECT_EQ(config.linear.overrides[0].layers, "*.mlp.down");
  EXPECT_EQ(config.linear.overrides[0].precision.kind, "te-hybrid");
  EXPECT_EQ(config.linear.overrides[0].precision.delayed->history, 5u);
  EXPECT_EQ(config.linear.overrides[1].precision.kind, "standard");  // nothing from [linear]
  EXPECT_EQ(config.linear.overrides[1].precision.high_precision, "fp16");
  const TrainConfig again = ParseTrainConfig(WriteTrainConfig(config), "written", {}, {});
  EXPECT_EQ(Differing(config, again), std::vector<std::string>());
  const std::vector<ConfigKey> keys = ConfigKeys(config);
  const size_t plain = ConfigKeys(TrainConfig()).size();
  EXPECT_EQ(keys[plain].name, "linear.override.0.layers");
  EXPECT_EQ(keys[plain].value, "\"*.mlp.down\"");
  // All of [linear] but first_last_high and high_last, and `layers`.
  const auto linear = std::count_if(keys.begin(), keys.begin() + plain, [](const ConfigKey& key) {
    return key.name.starts_with("linear.");
  });
  EXPECT_EQ(keys.size() - plain, 2 * (static_cast<size_t>(linear) - 1));
}

// Floats are written as the shortest text that reads back, whatever they are.
TEST(ConfigKeys, NumbersReadBackToTheSameBits) {
  TrainConfig config;
  config.model.layer_scale = 0.3f;
  config.schedule.peak = 1.0 / 3;
  config.train.diverged_above = 1e22;
  const TrainConfig again = ParseTrainConfig(WriteTrainConfig(config) + "\n", "x", {}, {});
  EXPECT_EQ(again.model.layer_scale, 0.3f);
  EXPECT_EQ(again.schedule.peak, 1.0 / 3);
  EXPECT_EQ(again.train.diverged_above, 1e22);
}

TEST(ConfigKeys, TextIsQuotedWhateverItHolds) {
  TrainConfig config;
  config.data.path = "/a \"quoted\" \\ path\nof two lines\x7f \xC3\xA9";
  config.linear.overrides.push_back({"*\t'x'", {}});
  const TrainConfig again = ParseTrainConfig(WriteTrainConfig(config), "written", {}, {});
  EXPECT_EQ(again.data.path, config.data.path);
  EXPECT_EQ(again.linear.overrides[0].layers, "*\t'x'");
}

TEST(ConfigKeys, RelativePathIsWrittenAsAbsolute) {
  TrainConfig config;
  config.data.path = "some/../file";
  EXPECT_EQ(ParseTrainConfig(WriteTrainConfig(config), "written", "/elsewhere", {}).data.path,
            std::filesystem::current_path() / "file");
}

}  // namespace
}  // namespace numsim
