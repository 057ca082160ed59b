// Studies of users: a TOML file in NUMSIM_STUDIES is an experiment like any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class OwnStudies : public ProgramTest {
 protected:
  using Changes = std::vector<std::pair<std::string, std::string>>;
  // Copies the example into the test's directory, with texts replaced.
  void Write(const Changes& changes = {}) {
    const std::filesystem::path root = std::getenv("NUMSIM_SOURCE_DIR");
    std::string file = Text(root / "docs/examples/study/warm-up.toml");
    ASSERT_FALSE(file.empty());
    for (const auto& [text, by] : changes) {
      const size_t at = file.find(text);
      ASSERT_NE(at, file.npos) << text;
      file.replace(at, text.size(), by);
    }
    std::filesystem::create_directories(Path("studies"));
    std::ofstream(Path("studies/warm-up.toml")) << file;
  }
  static std::string Text(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Outcome Run(const std::string& words) { return Numsim(words, {{"NUMSIM_STUDIES", "studies"}}); }
  std::string Error() {
    const Outcome outcome = Run("describe warm-up");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

constexpr const char* kTiny =
    "run warm-up --out out --seeds 2 --warmups 0,2 --steps 10 --width 8 --batch 2 --context 8 "
    "--text-size 16384 --valid-batches 1 --records 2";

TEST_F(OwnStudies, AreDescribedRunAndDrawn) {
  Write();
  EXPECT_THAT(Run("list --names").out, HasSubstr("\nwarm-up\n"));
  EXPECT_THAT(Numsim("list --names").out, Not(HasSubstr("warm-up")));
  EXPECT_THAT(Run("describe warm-up").out, HasSubstr("warm-up/helps"));
  const Outcome run = Run(kTiny);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("warm-up/helps"));
  EXPECT_TRUE(std::filesystem::exists(Path("out/final.csv")));
  EXPECT_THAT(Text(Path("out/warm-up-final.gp")), HasSubstr("set ytics ('0' 0, '2' 1)"));
  EXPECT_EQ(Run("plot out").exit_code, 0);
  EXPECT_EQ(Numsim("plot out").exit_code, 2);
}

TEST_F(OwnStudies, AreRunByTheTasksOfASweep) {
  Write();
  const std::string sweep = "sweep" + std::string(kTiny).substr(3) + " --local 1 --tasks 2";
  ASSERT_EQ(Run(sweep).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(Path("out/final.csv")));
  EXPECT_THAT(Text(Path("out/sweep/task.sh")), HasSubstr("env NUMSIM_STUDIES=studies "));
}

TEST_F(OwnStudies, GiveTheFileOfATrialThatTrainRepeats) {
  Write();
  const Outcome trial = Run("describe warm-up --trial 1 --set steps=10 --set warmups=0,2");
  ASSERT_EQ(trial.exit_code, 0) << trial.err;
  EXPECT_THAT(trial.out, HasSubstr("warmup = 0"));
}

// A corrected figure, table or claim costs no training.
TEST_F(OwnStudies, KeepTheirRowsWhereTheFileIsCorrected) {
  Write();
  ASSERT_EQ(Run(kTiny).exit_code, 0);
  const std::string journal = Text(Path("out/journal/0-of-1.jsonl"));
  ASSERT_FALSE(journal.empty());
  Write({{"name = \"warm-up-loss\"", "name = \"losses\""},
         {"meaning = \"valid_loss minus", "meaning = \"the mean valid_loss minus"}});
  const Outcome drawn = Run("plot out");
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_TRUE(std::filesystem::exists(Path("out/losses.gp")));
  EXPECT_FALSE(std::filesystem::exists(Path("out/warm-up-loss.gp")));
  EXPECT_THAT(Text(Path("out/summary.txt")), Not(HasSubstr("Changed:")));

  const Changes corrected = {
      {"name = \"gap\"", "name = \"distance\""},
      {"side = -1", "side = 1\nmargin = { value = 9, unit = \"\", reason = \"\" }"}};
  Write(corrected);
  ASSERT_EQ(Run("plot out").exit_code, 0);
  EXPECT_THAT(Text(Path("out/outcomes.csv")), HasSubstr(",distance,"));
  EXPECT_THAT(Text(Path("out/verdicts.csv")), HasSubstr(",9,"));
  EXPECT_THAT(Text(Path("out/summary.txt")), HasSubstr("Changed:    the claims"));
  EXPECT_THAT(Text(Path("out/manifest.json")), HasSubstr("margin 9"));
  ASSERT_EQ(Run("plot out").exit_code, 0);

  std::filesystem::remove(Path("out/manifest.json"));
  const Outcome resumed = Run(std::string(kTiny) + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(Text(Path("out/summary.txt")), HasSubstr("Changed:    the claims"));
  EXPECT_EQ(Text(Path("out/journal/0-of-1.jsonl")), journal);
}

TEST_F(OwnStudies, AreNotContinuedWhereOtherRowsFollow) {
  Write();
  ASSERT_EQ(Run(kTiny).exit_code, 0);
  Write({{"key = \"schedule.warmup\"", "key = \"optimizer.weight_decay\""}});
  const Outcome drawn = Run("plot out");
  EXPECT_EQ(drawn.exit_code, 2);
  EXPECT_THAT(drawn.err, HasSubstr("the rows of studies/warm-up.toml are others"));
  std::filesystem::remove(Path("out/manifest.json"));
  const Outcome resumed = Run(std::string(kTiny) + " --resume");
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("study-rows"));
  const Outcome given = Run(std::string(kTiny) + " --study-rows 0");
  EXPECT_EQ(given.exit_code, 2);
  EXPECT_THAT(given.err, HasSubstr("--study-rows 0: the rows of studies/warm-up.toml are others"));
}

TEST_F(OwnStudies, ThatAreWrongAreErrorsWithFileAndLine) {
  Write({{"side = -1", "sidee = -1"}});
  EXPECT_THAT(Error(), HasSubstr("studies/warm-up.toml:"));
  EXPECT_THAT(Error(), HasSubstr("sidee: is no key here; did you mean side?"));
  Write({{"name = \"warm-up\"", "name = \"Warm up\""}});
  EXPECT_THAT(Error(), HasSubstr("expected small letters"));
  Write({{"name = \"warm-up\"", "name = \"loss-spikes\""}});
  EXPECT_THAT(Error(), HasSubstr("there already is an experiment loss-spikes"));
  Write({{"key = \"schedule.warmup\"", "key = \"schedule.warmap\""}});
  EXPECT_THAT(Error(), HasSubstr("is no key of numsim train; did you mean schedule.warmup?"));
  Write({{"keys = [\"data.size=$\"]", "keys = [\"data.sise=$\"]"}});
  EXPECT_THAT(Error(),
              HasSubstr("studies/warm-up.toml: warm-up: text-size: 'data.sise=$' sets no key"));
  const Outcome none = Numsim("list", {{"NUMSIM_STUDIES", "no-such.toml"}});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no-such.toml"));
}

}  // namespace
}  // namespace numsim::apps
