#include "experiments/runner/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "experiments/runner/option_names.h"
#include "numsim/base/error.h"
#include "numsim/io/input_file.h"
#include "tests/experiments/made_up_experiment.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

Settings With(const std::string& value) {
  Settings settings;
  settings.options["k"] = value;
  return settings;
}

TEST(Settings, IntegersOfAListAreWithinTheRange) {
  EXPECT_EQ(With("3,1,20").GetIntegers("k", 1, 20), (std::vector<int64_t>{3, 1, 20}));
  EXPECT_EQ(ErrorOf([] { With("3,21").GetIntegers("k", 1, 20); }),
            "--k \"21\": expected integers from 1 to 20, separated by commas");
  for (const char* text : {"", "1,,2", "0", "1.5", "x", "1 "}) {
    EXPECT_THAT(ErrorOf([&] { With(text).GetIntegers("k", 1, 20); }), HasSubstr("--k")) << text;
  }
}

TEST(CheckDistinct, NamesTheValueThatIsListedTwice) {
  EXPECT_EQ(ErrorOf([] { CheckDistinct("k", {"a", "b", "ab"}); }), "no error");
  EXPECT_EQ(ErrorOf([] { CheckDistinct("k", {"a", "b", "a"}); }), "--k: a is listed twice");
}

TEST(MakeSettings, TakesThePresetsValuesAndOverrides) {
  const Experiment experiment = MadeUpExperiment();
  const Settings quick = MakeSettings(experiment, "quick", 7, 3, {});
  EXPECT_EQ(quick.preset, "quick");
  EXPECT_EQ(quick.seed, 7u);
  EXPECT_EQ(quick.seeds, 3);
  EXPECT_EQ(quick.Get("shapes"), "ab,cde,f");
  EXPECT_EQ(quick.Get("rows"), "2");
  const Settings paper = MakeSettings(experiment, "paper", 7, 3, {{"shapes", "x"}});
  EXPECT_EQ(paper.Get("shapes"), "x");
  EXPECT_EQ(paper.Get("rows"), "5");
}

// MadeUpExperiment with a third preset, of which one option has a value of its own.
Experiment WithSmallPreset() {
  Experiment experiment = MadeUpExperiment();
  experiment.presets = {{"quick", 2}, {"small", 3}, {"paper", 5}};
  experiment.options[1].small = "4";
  return experiment;
}

TEST(MakeSettings, OptionsWithoutAValueForSmallTakeThatOfQuick) {
  const Settings small = MakeSettings(WithSmallPreset(), "small", 0, 1, {});
  EXPECT_EQ(small.preset, "small");
  EXPECT_EQ(small.Get("shapes"), "ab,cde,f");
  EXPECT_EQ(small.Get("rows"), "4");
  EXPECT_EQ(MakeSettings(WithSmallPreset(), "quick", 0, 1, {}).Get("rows"), "2");
  EXPECT_EQ(MakeSettings(WithSmallPreset(), "paper", 0, 1, {}).Get("rows"), "5");
  EXPECT_EQ(MakeSettings(WithSmallPreset(), "small", 0, 1, {{"rows", "9"}}).Get("rows"), "9");
}

// Options of which two follow `steps`, whose default is 300.
Experiment WithSteps() {
  Experiment experiment;
  experiment.options = {
      {.name = "steps", .quick = "300", .paper = "20000", .help = ""},
      {.name = "warmup", .quick = "30", .paper = "5000", .help = "", .part_of = "steps"},
      {.name = "ignored", .quick = "warm-up", .paper = "1000", .help = "", .part_of = "steps"},
      {.name = "records", .quick = "30", .paper = "100", .help = "", .at_most = "steps"},
  };
  return experiment;
}

TEST(MakeSettings, DefaultsFollowTheOptionThatTheyCountAPartOf) {
  const auto of = [](const std::map<std::string, std::string>& given, const char* option) {
    return MakeSettings(WithSteps(), "quick", 0, 1, given).Get(option);
  };
  EXPECT_EQ(of({}, "warmup"), "30");
  EXPECT_EQ(of({{"steps", "20"}}, "warmup"), "2");
  EXPECT_EQ(of({{"steps", "37"}}, "warmup"), "3") << "30 would be most of it";
  EXPECT_EQ(of({{"steps", "38"}}, "warmup"), "30") << "not most of it: as before";
  EXPECT_EQ(of({{"steps", "1000"}}, "warmup"), "30");
  EXPECT_EQ(of({{"steps", "20"}, {"warmup", "19"}}, "warmup"), "19");
  EXPECT_EQ(of({{"steps", "20"}}, "ignored"), "warm-up");
  EXPECT_EQ(of({{"steps", "x"}}, "warmup"), "30") << "the trials have the message";
  EXPECT_EQ(of({{"steps", "-4"}}, "records"), "30");
  EXPECT_EQ(of({{"steps", "20"}}, "records"), "20");
  EXPECT_EQ(of({{"steps", "31"}}, "records"), "30");
  const Settings paper = MakeSettings(WithSteps(), "paper", 0, 1, {{"steps", "1200"}});
  EXPECT_EQ(paper.Get("warmup"), "300");
  EXPECT_EQ(paper.Get("ignored"), "60");
}

// Every training can be made short by --steps alone.
TEST(MakeSettings, FewStepsAloneAreValidForEveryExperimentThatTrains) {
  size_t experiments = 0;
  for (const Experiment& experiment : AllExperiments()) {
    const Settings quick = MakeSettings(experiment, "quick", 0, 1, {});
    if (!quick.options.contains("steps")) continue;
    ++experiments;
    for (const char* const steps : {"10", "20", "45", "170", "203"}) {
      const Settings settings = MakeSettings(experiment, "quick", 0, 1, {{"steps", steps}});
      EXPECT_EQ(ErrorOf([&] { experiment.trials(settings); }), "no error")
          << experiment.name << " --steps " << steps;
    }
  }
  EXPECT_EQ(experiments, 12u);
}

TEST(MakeSettings, SeedsAreThoseThatAreAskedForWhateverThePreset) {
  EXPECT_EQ(MakeSettings(WithSmallPreset(), "small", 0, 1, {}).seeds, 1);
  EXPECT_EQ(MakeSettings(WithSmallPreset(), "small", 0, 7, {}).seeds, 7);
}

TEST(DefaultOf, IsOfThePresetUnlessTheDeviceHasOne) {
  Option option{.name = "k", .quick = "1", .paper = "2", .help = "", .small = "3"};
  for (const bool device : {false, true}) {
    EXPECT_EQ(DefaultOf(option, "quick", device), "1");
    EXPECT_EQ(DefaultOf(option, "paper", device), "2");
    EXPECT_EQ(DefaultOf(option, "small", device), "3");
  }
  option.small = "";
  EXPECT_EQ(DefaultOf(option, "small", false), "1");
  option.cuda = "4";
  for (const char* const preset : {"quick", "small", "paper"}) {
    EXPECT_EQ(DefaultOf(option, preset, true), "4");
    EXPECT_NE(DefaultOf(option, preset, false), "4");
  }
}

TEST(DefaultOf, OfDemoIsItsOwnOrThatOfQuick) {
  Option option{.name = "k", .quick = "1", .paper = "2", .help = "", .small = "3"};
  EXPECT_EQ(DefaultOf(option, "demo", false), "1");
  option.demo = "4";
  EXPECT_EQ(DefaultOf(option, "demo", false), "4");
  for (const char* const preset : {"quick", "small", "paper"}) {
    EXPECT_NE(DefaultOf(option, preset, false), "4");
  }
}

TEST(FindPreset, HasTheSeedsOfThePreset) {
  const Experiment three = WithSmallPreset();
  EXPECT_EQ(FindPreset(three, "quick").seeds, 2);
  EXPECT_EQ(FindPreset(three, "small").seeds, 3);
  EXPECT_EQ(FindPreset(three, "paper").seeds, 5);
  EXPECT_EQ(FindPreset(MadeUpExperiment(), "quick").seeds, 1);
  EXPECT_EQ(FindPreset(MadeUpExperiment(), "paper").seeds, 1);
}

TEST(FindPreset, UnknownOneListsThoseThatThereAre) {
  EXPECT_EQ(ErrorOf([] { FindPreset(MadeUpExperiment(), "small"); }),
            "--preset \"small\": expected quick or paper");
  const std::string message = ErrorOf([] { FindPreset(WithSmallPreset(), "large"); });
  for (const char* const text : {"--preset \"large\"", "quick", "small", "paper"}) {
    EXPECT_THAT(message, HasSubstr(text));
  }
}

TEST(AllExperiments, HaveOneOfEachPreset) {
  for (const Experiment& experiment : AllExperiments()) {
    std::set<std::string> names;
    for (const Preset& preset : experiment.presets) {
      EXPECT_TRUE(names.insert(preset.name).second) << experiment.name;
      EXPECT_GE(preset.seeds, 1) << experiment.name;
    }
    EXPECT_TRUE(names.contains("quick") && names.contains("paper")) << experiment.name;
    // A value that no preset takes is a mistake.
    for (const Option& option : experiment.options) {
      EXPECT_TRUE(option.small.empty() || names.contains("small")) << option.name;
      EXPECT_TRUE(option.demo.empty() || names.contains("demo")) << option.name;
    }
  }
}

TEST(MakeSettings, UnknownOptionListsTheValidOnes) {
  const Experiment experiment = MadeUpExperiment();
  EXPECT_EQ(ErrorOf([&] {
              MakeSettings(experiment, "quick", 0, 1, {{"row", "3"}});
            }),
            "--row: made_up has no such option; its options are --shapes, --rows");
  Experiment bare;
  bare.name = "bare";
  EXPECT_EQ(ErrorOf([&] {
              MakeSettings(bare, "quick", 0, 1, {{"row", "3"}});
            }),
            "--row: bare has no such option; it has no options of its own");
}

TEST(MakeSettings, RejectsUnknownPresetAndImpossibleSeeds) {
  const Experiment experiment = MadeUpExperiment();
  EXPECT_EQ(ErrorOf([&] { MakeSettings(experiment, "fast", 0, 1, {}); }),
            "--preset \"fast\": expected quick or paper");
  EXPECT_EQ(ErrorOf([&] { MakeSettings(experiment, "quick", 0, 0, {}); }),
            "--seeds 0: expected at least 1");
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(MakeSettings(experiment, "quick", kLast, 1, {}).seed, kLast);
  EXPECT_THROW(MakeSettings(experiment, "quick", kLast, 2, {}), Error);
}

TEST(Settings, ReadsIntegersWithinTheRange) {
  EXPECT_EQ(With("1").GetInteger("k", 1, 10), 1);
  EXPECT_EQ(With("10").GetInteger("k", 1, 10), 10);
  EXPECT_EQ(With("-5").GetInteger("k", -5, 10), -5);
  for (const char* bad : {"0", "11", "", "3x", " 3", "3.5", "1e1", "99999999999999999999"}) {
    EXPECT_EQ(ErrorOf([&] { With(bad).GetInteger("k", 1, 10); }),
              fmt::format("--k \"{}\": expected an integer from 1 to 10", bad));
  }
}

TEST(Settings, ReadsNumbersWithinTheRange) {
  EXPECT_EQ(With("1e-3").GetDouble("k", 0, 1), 1e-3);
  EXPECT_EQ(With("1").GetDouble("k", 0, 1), 1);
  EXPECT_EQ(With("inf").GetDouble("k", 0, std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
  for (const char* bad : {"-0.5", "1.5", "nan", "inf", "", "0.5s", "0,5"}) {
    EXPECT_EQ(ErrorOf([&] { With(bad).GetDouble("k", 0, 1); }),
              fmt::format("--k \"{}\": expected a number from 0 to 1", bad));
  }
}

TEST(Settings, YesIsReadAsYesAndNoOtherWordAsEither) {
  EXPECT_TRUE(With("yes").GetYes("k"));
  EXPECT_FALSE(With("no").GetYes("k"));
  for (const char* bad : {"", "Yes", "true", "1", "nope"}) {
    EXPECT_EQ(ErrorOf([&] { With(bad).GetYes("k"); }),
              fmt::format("--k '{}': expected yes or no", bad));
  }
}

TEST(Settings, SplitsListsAndRejectsEmptyPieces) {
  EXPECT_EQ(With("a").GetList("k"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(With("a,bc,d e").GetList("k"), (std::vector<std::string>{"a", "bc", "d e"}));
  for (const char* bad : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_THROW(With(bad).GetList("k"), Error) << bad;
  }
}

TEST(SettingsDeathTest, UndeclaredOptionIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(With("1").Get("other"), "declares no option other");
}

TEST(StoredSettings, ReadBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  StoredSettings stored = {"made_up", With("quote \" comma , \xC3\xA4 \n")};
  stored.settings.preset = "paper";
  stored.settings.seed = std::numeric_limits<uint64_t>::max();
  stored.settings.seeds = 12;
  WriteSettings(path, stored);
  const StoredSettings read = ReadSettings(path);
  EXPECT_EQ(FirstDifference(stored, "a", read, "b"), "");
  EXPECT_EQ(read.settings.options, stored.settings.options);
  EXPECT_EQ(read.settings.seed, stored.settings.seed);
}

TEST(StoredSettings, BadFileIsNamed) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  EXPECT_THAT(ErrorOf([&] { ReadSettings(path); }), HasSubstr(path.string()));
  for (const char* bad : {"", "{", "[]", "{\"experiment\": 3}", "{\"experiment\": \"a\"}"}) {
    std::ofstream(path) << bad;
    EXPECT_THAT(ErrorOf([&] { ReadSettings(path); }), HasSubstr(path.string())) << bad;
  }
  std::ofstream(path) << "{";
  EXPECT_THAT(ErrorOf([&] { ReadSettings(path); }),
              HasSubstr(path.string() +
                        ": expected the settings of a numsim run, found: parse error at line 1"));
}

TEST(StoredSettings, NumbersAndNamesAreNotBelieved) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  const auto error = [&](std::string_view seed, std::string_view seeds, std::string_view options) {
    std::ofstream(path) << fmt::format(
        R"({{"experiment": "a", "preset": "quick", "seed": {}, "seeds": {}, "options": {}}})",
        seed,
        seeds,
        options);
    return ErrorOf([&] { ReadSettings(path); });
  };
  EXPECT_EQ(error("18446744073709551615", "1048576", "{}"), "no error");
  for (const char* const seed : {"-1", "1.5", "1e30", "true", "\"1\""}) {
    EXPECT_THAT(error(seed, "1", "{}"), HasSubstr("expected a whole number as seed")) << seed;
  }
  for (const char* const seeds : {"0", "-1", "1.5", "1048577", "1e300", "\"3\""}) {
    EXPECT_THAT(error("0", seeds, "{}"),
                HasSubstr(fmt::format("from 1 to 1048576, found {}",
                                      seeds == std::string("1e300") ? "1e+300" : seeds)));
  }
  EXPECT_EQ(error("0", "1", R"({"preset": "x"})"),
            path.string() + ": preset is no option of an experiment");
}

// Flips a bit of every byte, removes each and repeats each.
TEST(StoredSettings, AnyChangedByteIsRefused) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  WriteSettings(path, {"made_up", With("64")});
  const std::string good = ReadText(path);
  const auto refuses = [&](const std::string& text) {
    std::ofstream(path) << text;
    return ErrorOf([&] { ReadSettings(path); }) != "no error";
  };
  EXPECT_FALSE(refuses(good));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good, shorter = good, longer = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 7)));
    shorter.erase(i, 1);
    longer.insert(i, 1, good[i]);
    EXPECT_TRUE(refuses(flipped) && refuses(shorter) && refuses(longer)) << i;
  }
}

TEST(StoredSettings, OfOlderVersionsHaveNoDigest) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  std::ofstream(path) << R"({"options": {"k": "v"}, "seeds": 2, "seed": 0, "preset": "quick",)"
                         R"( "experiment": "a"})";
  EXPECT_EQ(ReadSettings(path).settings.Get("k"), "v");
}

TEST(StoredSettings, UnknownFieldsAreRefused) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.Path() / "settings.json";
  std::ofstream(path)
      << R"({"options": {}, "sha257": "", "seeds": 2, "seed": 0, "preset": "quick",)"
         R"( "experiment": "a"})";
  EXPECT_THAT(ErrorOf([&] { ReadSettings(path); }),
              HasSubstr("field 'sha257' is not one of experiment, preset, seed, seeds, max_seeds"));
}

TEST(FirstDifference, NamesTheOptionAndBothValues) {
  const StoredSettings a = {"made_up", MakeSettings(MadeUpExperiment(), "quick", 0, 1, {})};
  StoredSettings b = a;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "");
  b.settings.options["shapes"] = "x";
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--shapes is \"ab,cde,f\" in A and \"x\" in B");
  b.settings.options["rows"] = "9";
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--rows is \"2\" in A and \"9\" in B");
  b.settings.seed = 4;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--seed is \"0\" in A and \"4\" in B");
  b.settings.seeds = 5;
  b.settings.seed = a.settings.seed;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--seeds is \"1\" in A and \"5\" in B");
  b.settings.preset = "paper";
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--preset is \"quick\" in A and \"paper\" in B");
  b.experiment = "other";
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "experiment is \"made_up\" in A and \"other\" in B");
}

// Looks and their level follow from it.
TEST(FirstDifference, SeesTheMostSeeds) {
  const StoredSettings a = {"made_up", MakeSettings(MadeUpExperiment(), "quick", 0, 2, {}, 12)};
  StoredSettings b = a;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "");
  b.settings.max_seeds = 13;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--max-seeds is \"12\" in A and \"13\" in B");
  b.settings.max_seeds = 0;
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--max-seeds is absent in B");
  EXPECT_EQ(FirstDifference(b, "B", a, "A"), "--max-seeds is absent in B");
}

TEST(FirstDifference, NamesAnOptionThatOnlyOneHas) {
  const StoredSettings a = {"made_up", MakeSettings(MadeUpExperiment(), "quick", 0, 1, {})};
  StoredSettings b = a;
  b.settings.options.erase("rows");
  EXPECT_EQ(FirstDifference(a, "A", b, "B"), "--rows is absent in B");
  EXPECT_EQ(FirstDifference(b, "B", a, "A"), "--rows is absent in B");
}

TEST(AddAssignment, SetsOptionsAndFurtherKeys) {
  const Experiment& moments = *FindExperiment("moment-formats");
  std::map<std::string, std::string> given;
  for (const char* const text :
       {"model.layers=3", "model.norm_epsilon=1e-6", "schedule.final=0.1"}) {
    AddAssignment(moments, text, given);
  }
  EXPECT_EQ(given,
            (std::map<std::string, std::string>{
                {"layers", "3"}, {"keys", "model.norm_epsilon=1e-6;schedule.final=0.1"}}));
  const auto error_of = [&](const Experiment& experiment, const char* text) {
    return ErrorOf([&] { AddAssignment(experiment, text, given); });
  };
  EXPECT_THAT(error_of(moments, "layers"), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(error_of(moments, "layers=4"), HasSubstr("--layers is given twice"));
  EXPECT_THAT(error_of(moments, "train.x=1;2"), HasSubstr("separates keys"));
  EXPECT_THAT(error_of(*FindExperiment("linear-error"), "schedule.final=1"),
              HasSubstr("has no such option"));
}

TEST(ResolveOption, TakesTheNameOrTheKeyThatTheOptionSets) {
  const Experiment& moments = *FindExperiment("moment-formats");
  EXPECT_EQ(ResolveOption(moments, "lr"), "lr");
  EXPECT_EQ(ResolveOption(moments, "schedule.peak"), "lr");
  EXPECT_EQ(ResolveOption(moments, "optimizer.weight_decay"), "weight-decay");
  EXPECT_EQ(ResolveOption(moments, "optimizer.clip_norm"), "clip");
  EXPECT_EQ(ResolveOption(moments, "data.path"), "text");
  EXPECT_THAT(ErrorOf([&] { ResolveOption(moments, "widht"); }), HasSubstr("did you mean width?"));
  EXPECT_THAT(ErrorOf([&] { ResolveOption(moments, "model.norm_epsilon"); }),
              HasSubstr("none that sets such a key"));
}

}  // namespace
}  // namespace numsim::experiments
