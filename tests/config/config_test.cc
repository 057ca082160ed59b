// Reading configurations: files, overrides, presets, every kind of error.
#include "numsim/config/config.h"

#include <filesystem>

#include "numsim/base/error.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

TrainConfig Parse(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  return ParseTrainConfig(toml, "f.toml", "/folder", overrides);
}

std::string ErrorIn(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  return ErrorOf([&] { Parse(toml, overrides); });
}

TEST(ParseTrainConfig, DottedKeysAndTablesAreTheSame) {
  for (const char* const toml : {"optimizer.stable.global = true",
                                 "[optimizer]\nstable.global = true",
                                 "[optimizer.stable]\nglobal = true",
                                 "[optimizer]\nstable = { global = true }"}) {
    EXPECT_TRUE(Parse(toml).optimizer.stable.global) << toml;
  }
}

TEST(ParseTrainConfig, WholeNumbersStandForReals) {
  EXPECT_EQ(Parse("model.rope_base = 500").model.rope_base, 500);
  EXPECT_EQ(Parse("model.layer_scale = 0").model.layer_scale, 0.0f);
}

TEST(ParseTrainConfig, ScheduleEndsWithTheTraining) {
  EXPECT_EQ(Parse("train.steps = 77").schedule.steps, 77u);
  EXPECT_EQ(Parse("preset = \"tiny\"", {"train.steps=5"}).schedule.steps, 5u);
}

TEST(ParseTrainConfig, PathsAreRelativeToTheFolderOfTheFile) {
  EXPECT_EQ(Parse("data.path = \"../text.txt\"").data.path, "/text.txt");
  EXPECT_EQ(Parse("data.path = \"/a/./b\"").data.path, "/a/b");
  EXPECT_EQ(Parse("data.path = \"\"").data.path, "");
}

TEST(ParseTrainConfig, PathsOfTheCommandLineAreRelativeToTheCurrentDirectory) {
  EXPECT_EQ(Parse("", {"data.path=x/y"}).data.path, std::filesystem::current_path() / "x/y");
}

TEST(ParseTrainConfig, OverridesWin) {
  const TrainConfig config =
      Parse("[train]\nsteps = 5\nbatch = 6", {"train.steps=7", "train.steps=8"});
  EXPECT_EQ(config.train.steps, 8u);
  EXPECT_EQ(config.train.batch, 6u);
}

TEST(ParseTrainConfig, OverridesNeedNoQuotes) {
  const TrainConfig config = Parse("",
                                   {" optimizer.weights = bf16 ",
                                    "optimizer.update=\"stochastic:16\"",
                                    "data.path=/1984",
                                    "data.valid_path=1984",
                                    "model.qk_norm=true"});
  EXPECT_EQ(config.optimizer.weights.name, "bf16");
  EXPECT_EQ(ToString(config.optimizer.update), "stochastic:16");
  EXPECT_EQ(config.data.path, "/1984");
  EXPECT_EQ(config.data.valid_path, std::filesystem::current_path() / "1984");
  EXPECT_TRUE(config.model.qk_norm);
}

TEST(ParseTrainConfig, OverridesReachAndAddTablesOfLayers) {
  const char* const toml = "[[linear.override]]\nlayers = \"head\"\nkind = \"switchback\"";
  const TrainConfig config =
      Parse(toml, {"linear.override.0.kind=mx", "linear.override.1.layers=*.qkv"});
  ASSERT_EQ(config.linear.overrides.size(), 2u);
  EXPECT_EQ(config.linear.overrides[0].layers, "head");
  EXPECT_EQ(config.linear.overrides[0].precision.kind, "mx");
  EXPECT_EQ(config.linear.overrides[1].layers, "*.qkv");
  const TrainConfig table = Parse("", {"linear.override=[{layers='a'}, {layers='b'}]"});
  ASSERT_EQ(table.linear.overrides.size(), 2u);
  EXPECT_EQ(table.linear.overrides[1].layers, "b");
}

TEST(ParseTrainConfig, PresetComesBeforeOtherKeysWhereverItStands) {
  const TrainConfig preset = MakeTrainPreset("tiny");
  const TrainConfig config = Parse("[train]\nbatch = 3\n", {"preset=tiny"});
  EXPECT_EQ(config.model.width, preset.model.width);
  EXPECT_EQ(config.train.steps, preset.train.steps);
  EXPECT_EQ(config.train.batch, 3u);
  EXPECT_NE(preset.train.batch, 3u);
}

struct BadConfig {
  std::string toml;
  std::vector<std::string> texts;  // of the message
};
void ExpectErrors(const std::vector<BadConfig>& cases) {
  for (const BadConfig& bad : cases) ExpectMessage(ErrorIn(bad.toml), bad.texts);
}

TEST(ParseTrainConfigErrors, UnknownKeyNamesPlaceAndNearestKey) {
  ExpectErrors({
      {"[train]\nstep = 5", {"f.toml:2: train.step: ", "did you mean train.steps?"}},
      {"\nbeta2 = 0.9", {"f.toml:2: beta2: ", "did you mean optimizer.beta2?"}},
      {"[optimiser]\nbeta2 = 0.9", {"f.toml:1: optimiser: there is no such section"}},
      {"[optimizer.stabel]", {"f.toml:1: optimizer.stabel: there is no such section"}},
      {"presets = 'tiny'", {"f.toml:1: presets: ", "did you mean preset?"}},
      {"model.vocabulary = 256", {"f.toml:1: model.vocabulary: "}},
      {"schedule.steps = 5", {"f.toml:1: schedule.steps: ", "train.steps?"}},
      {"[[linear.override]]\nlayers = 'a'\nkin = 'mx'",
       {"f.toml:3: linear.override.0.kin: ", "linear.override.0.kind?"}},
      {"linear.override = [{layers = 'a', first_last_high = true}]",
       {"f.toml:1: linear.override.0.first_last_high: "}},
  });
}

TEST(ParseTrainConfigErrors, FirstOfSeveralIsNamed) {
  ExpectMessage(ErrorIn("[train]\nzzz = 1\n[model]\naaa = 2"), {"f.toml:2: train.zzz: "});
}

TEST(ParseTrainConfigErrors, WrongTypes) {
  ExpectErrors({
      {"train.steps = '5'", {"f.toml:1: train.steps: must be a whole number", "text \"5\""}},
      {"train.steps = 5.0", {"train.steps: must be a whole number"}},
      {"train.steps = true", {"train.steps: must be a whole number"}},
      {"train.steps = [5]", {"train.steps: must be a whole number, not an array"}},
      {"train.steps = 1979-05-27", {"train.steps: ", "a date"}},
      {"[train.steps]\nx = 1", {"f.toml:1: train.steps: is a key"}},
      {"optimizer.beta2 = 'big'", {"optimizer.beta2: must be a number"}},
      {"model.qk_norm = 1", {"model.qk_norm: must be true or false"}},
      {"data.path = 5", {"data.path: must be text"}},
      {"linear.kind = 8", {"linear.kind: must be text"}},
      {"model.layer_scale = 'no'", {"model.layer_scale: must be none or a number"}},
      {"linear.delayed_margin = 0.5", {"linear.delayed_margin: must be a whole number"}},
      {"preset = 5", {"f.toml:1: preset: must be text"}},
      {"model = 5", {"f.toml:1: model: is a section"}},
      {"optimizer.stable = 5", {"f.toml:1: optimizer.stable: is a section"}},
      {"linear.override = 5", {"f.toml:1: linear.override: must be tables"}},
      {"[linear.override]\nlayers = 'a'", {"f.toml:1: linear.override: must be tables"}},
      {"linear.override = [1]", {"f.toml:1: linear.override: must be tables"}},
  });
}

TEST(ParseTrainConfigErrors, OutOfRange) {
  ExpectErrors({
      {"train.steps = 0", {"f.toml:1: train.steps: 0 is below 1"}},
      {"train.steps = -3", {"train.steps: -3 is below 1"}},
      {"optimizer.beta2 = 1", {"optimizer.beta2: 1 is out of range: 0 <= x < 1"}},
      {"optimizer.beta1 = nan", {"optimizer.beta1: nan is out of range"}},
      {"schedule.peak = inf", {"schedule.peak: inf is out of range"}},
      {"data.classes = 1", {"data.classes: 1 is below 2"}},
      {"loss_scaler.growth_interval = 0", {"loss_scaler.growth_interval: 0 is below 1"}},
      {"schedule.final = 1.5", {"schedule.final: 1.5"}},
      {"loss_scaler.backoff = 0", {"loss_scaler.backoff: 0"}},
      {"loss_scaler.backoff = 1", {"f.toml:1: loss_scaler.backoff: 1 is out of range: 0 < x < 1"}},
      {"data.valid_share = 1", {"data.valid_share: 1"}},
      {"linear.delayed_margin = 33", {"linear.delayed_margin: 33"}},
      {"linear.delayed_history = 65537", {"linear.delayed_history: 65537 is above 65536"}},
      {"train.diverged_above = 0.5", {"f.toml:1: train.diverged_above: 0.5"}},
      {"train.seed = '18446744073709551616'", {"train.seed: "}},
      {"train.seed = 9223372036854775808", {"f.toml:1: "}},  // TOML has no such number
  });
}

TEST(ParseTrainConfigErrors, NamesAreListed) {
  ExpectErrors({
      {"model.kind = 'bert'", {"f.toml:1: model.kind: ", "'bert'", "llama, gpt, vit, clip, mlp"}},
      {"linear.kind = 'int4'", {"f.toml:1: linear.kind: 'int4' is not one of standard"}},
      {"optimizer.kind = 'adam'", {"optimizer.kind: ", "adamw"}},
      {"optimizer.weights = 'e9m9'", {"optimizer.weights: ", "e9m9"}},
      {"optimizer.update = 'magic'", {"optimizer.update: ", "magic"}},
      {"optimizer.m = 'nope@tensor'", {"optimizer.m: ", "nope"}},
      {"linear.gradient_rounding = 'up'", {"linear.gradient_rounding: ", "up"}},
      {"linear.gradient_rounding = 'rne:5'", {"linear.gradient_rounding: 'rne:5'"}},
      {"linear.gradient_rounding = 'sr:33'", {"linear.gradient_rounding: 'sr:33'"}},
      {"linear.gradient_rounding = 'sr:8:d'", {"linear.gradient_rounding: ", "'d'"}},
      {"preset = 'huge'", {"f.toml:1: preset: ", "'huge'", "tiny, small"}},
  });
}

// Checks of the parts, with the place of the key where the file has it.
TEST(ParseTrainConfigErrors, PartsThatDoNotFit) {
  ExpectErrors({
      {"\nmodel.heads = 3", {"f.toml:2: model.heads: "}},
      {"linear.format = 'int8'", {"f.toml:1: linear.format: kind 'standard'"}},
      {"linear.kind = 'switchback'\nlinear.format = 'zz'", {"f.toml:2: linear.format: ", "'zz'"}},
      {"linear.kind = 'block'\nlinear.delayed_history = 4", {"f.toml:2: linear.delayed_history: "}},
      {"linear.delayed_margin = 3", {"f.toml:1: linear.delayed_margin: ", "delayed_history"}},
      {"linear.high_precision = 'e5m2'", {"f.toml:1: linear.high_precision: "}},
      {"linear.high_precision_accumulate = 'guess'",
       {"f.toml:1: linear.high_precision_accumulate: "}},
      {"[[linear.override]]\nlayers = 'a'\nblock = 5", {"f.toml:3: linear.override.0.block: "}},
      {"[[linear.override]]\nkind = 'mx'", {"f.toml:1: linear.override.0.layers: is missing"}},
      {"storage.gradients = 'e8m0fnu'", {"f.toml:1: storage.gradients: "}},
      {"optimizer.update = 'split-master'", {"f.toml:1: optimizer.update: "}},
  });
}

TEST(ParseTrainConfigErrors, DuplicatesAndWhatIsNoToml) {
  ExpectErrors({
      {"[train]\nsteps = 1\nsteps = 2", {"f.toml:3: ", "steps"}},
      {"[train]\n[model]\n[train]", {"f.toml:3: "}},
      {"'train.steps' = 1\ntrain.steps = 2", {"f.toml:1: 'train.steps' in quotes is one part"}},
      {"train.steps 5", {"f.toml:1: "}},
      {"a = \"\xFF\"", {"f.toml:1: "}},
  });
}

TEST(ParseTrainConfigErrors, OverridesNameTheOption) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"train.steps", {"--set train.steps: ", "KEY=VALUE"}},
      {"=5", {"--set =5: ", "KEY=VALUE"}},
      {"", {"--set ", "KEY=VALUE"}},
      {"train.step=5", {"--set: train.step: ", "did you mean train.steps?"}},
      {"train.steps=x", {"--set: train.steps: must be a whole number, not text \"x\""}},
      {"train.steps=", {"--set: train.steps: must be a whole number"}},
      {"train={step=5}", {"--set: train.step: ", "did you mean train.steps?"}},
      {"train.steps=5\ntrain.batch=3", {"--set: train.steps: must be a whole number"}},
      {"model.heads=3", {"--set: model.heads: "}},
      {"linear.override.1.layers=a", {"--set: linear.override.1.layers: ", "0"}},
      {"linear.override.00.layers=a", {"--set: linear.override.00.layers: "}},
      {"linear.override.0.kind=mx", {"--set: linear.override.0.layers: is missing"}},
      {"preset=huge", {"--set: preset: ", "tiny"}},
  };
  for (const auto& [text, named] : cases) ExpectMessage(ErrorIn("", {text}), named);
}

class TrainConfigFile : public IoTest {};

TEST_F(TrainConfigFile, IsReadWithPathsRelativeToItsFolder) {
  const std::filesystem::path path =
      Put("a.toml", "[train]\nsteps = 5\n[data]\npath = 'text.txt'\n");
  const TrainConfig config = ReadTrainConfig(path, {"train.batch=2"});
  EXPECT_EQ(config.train.steps, 5u);
  EXPECT_EQ(config.train.batch, 2u);
  EXPECT_EQ(config.data.path, Path("text.txt"));
}

TEST_F(TrainConfigFile, ErrorsNameThePathAsItWasGiven) {
  const std::filesystem::path path = Put("a.toml", "\n\ntrain.step = 5");
  ExpectMessage(ErrorOf([&] { ReadTrainConfig(path, {}); }), {path.string() + ":3: train.step"});
  ExpectMessage(ErrorOf([&] { ReadTrainConfig(Path("none.toml"), {}); }), {"none.toml"});
  ExpectMessage(ErrorOf([&] { ReadTrainConfig(Directory(), {}); }), {Directory().string()});
}

TEST_F(TrainConfigFile, ItsKeysAreOverridesWithAbsolutePaths) {
  const std::filesystem::path path = Put("a.toml",
                                         "[train]\nsteps = 5\n[data]\npath = 'text.txt'\n"
                                         "[[linear.override]]\nlayers = '*'\nkind = 'standard'\n");
  const std::vector<std::string> keys = ReadConfigKeys(path);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"data.path=" + Path("text.txt").string(),
                                      "train.steps=5",
                                      "linear.override.0.layers=*",
                                      "linear.override.0.kind=standard"}));
  TrainConfig config;
  SetConfigKeys(keys, config);
  EXPECT_EQ(WriteTrainConfig(config), WriteTrainConfig(ReadTrainConfig(path, {})));
}

TEST_F(TrainConfigFile, KeysOfAnExperimentHaveNoPreset) {
  const std::filesystem::path path = Put("a.toml", "preset = 'tiny'");
  ExpectMessage(ErrorOf([&] { ReadConfigKeys(path); }), {path.string() + ":1: preset: "});
  TrainConfig config;
  ExpectMessage(ErrorOf([&] { SetConfigKeys({"train.step=1"}, config); }), {"train.steps?"});
}

TEST(TrainPresets, AreConfigurationsWithNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const TrainPreset& preset : TrainPresets()) {
    const std::string toml = WriteTrainConfig(MakeTrainPreset(preset.name));
    EXPECT_EQ(WriteTrainConfig(Parse(toml)), toml) << preset.name;
    EXPECT_NE(preset.meaning, "");
    EXPECT_EQ(std::count(names.begin(), names.end(), preset.name), 0);
    names.emplace_back(preset.name);
  }
  for (const char* const name : {"tiny", "small", "shakespeare", "paper-100m"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  ExpectMessage(ErrorOf([] { MakeTrainPreset("huge"); }), {"preset 'huge'", "tiny", "clip-small"});
}

}  // namespace
}  // namespace numsim
