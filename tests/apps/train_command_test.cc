// `numsim train`: what it writes and says, interruption and resumption, bad input.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "numsim/io/csv.h"
#include "tests/apps/background.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

// The smallest training that has all files.
constexpr const char* kSmallest = R"(
[model]
layers = 1
width = 16
heads = 2
context = 16
[linear]
kind = "switchback"
[data]
size = 20000
[train]
steps = 6
batch = 2
valid_every = 3
valid_batches = 1
[telemetry]
tensors_every = 3
)";
constexpr const char* kTables[] = {"train", "valid", "tensors", "quantised", "optimizer"};

class Train : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    Put("a.toml", kSmallest);
  }

  // stdout of `train WORDS`, which must succeed. One thread: these models are too small for two.
  std::string Trained(const std::string& words) const {
    return Output("train --threads 1 " + words);
  }

  std::string Csv(const std::string& out, const std::string& table) const {
    return Bytes(Path(out) / (table + ".csv"));
  }
  void ExpectSameResults(const std::string& x, const std::string& y) const {
    for (const char* const table : kTables) EXPECT_EQ(Csv(x, table), Csv(y, table)) << table;
    EXPECT_EQ(Bytes(Path(x) / "summary.txt"), Bytes(Path(y) / "summary.txt"));
    EXPECT_TRUE(Bytes(Path(x) / "checkpoint.safetensors") ==
                Bytes(Path(y) / "checkpoint.safetensors"));
  }
};

TEST_F(Train, WritesItsFilesAndSaysSo) {
  const std::string out = Trained("a.toml --out result");
  for (const char* const table : kTables) {
    EXPECT_FALSE(ReadCsv(Path("result") / fmt::format("{}.csv", table)).rows.empty()) << table;
    EXPECT_THAT(out, HasSubstr(fmt::format("\n  {}.csv\n", table)));
  }
  EXPECT_EQ(ReadCsv(Path("result") / "train.csv").rows.size(), 6u);
  for (const char* const name :
       {"config.toml", "checkpoint.safetensors", "summary.txt", "manifest.json"}) {
    EXPECT_TRUE(std::filesystem::exists(Path("result") / name)) << name;
  }
  EXPECT_THAT(out, HasSubstr(Bytes(Path("result") / "summary.txt")));
  EXPECT_THAT(out, HasSubstr(" tokens/s"));
  EXPECT_THAT(out, HasSubstr("written to result:\n"));
}

TEST_F(Train, DirectoryIsThatOfTheFilesNameWithoutOut) {
  Trained("a.toml --set train.steps=1");
  EXPECT_TRUE(std::filesystem::exists(Path("results/train/a/train.csv")));
}

TEST_F(Train, SetWinsAndMayBeGivenSeveralTimes) {
  Trained("a.toml --out result --set train.steps=2 --set train.seed=7 --set train.steps=3");
  EXPECT_EQ(ReadCsv(Path("result") / "train.csv").rows.size(), 3u);
  EXPECT_THAT(Bytes(Path("result") / "config.toml"), HasSubstr("seed = 7\n"));
}

TEST_F(Train, ItsConfigurationTrainsTheSame) {
  Output("train --threads 2 a.toml --out first");
  std::filesystem::copy(Path("first") / "config.toml", Path("again.toml"));
  Trained("again.toml --out second --backend scalar");
  ExpectSameResults("first", "second");
}

TEST_F(Train, RecipesAreMeasuredAndChangeNothing) {
  Trained("a.toml --out plain");
  Put("b.toml",
      std::string(kSmallest) +
          "[what_if]\nrecipes = ['e4m3fn delayed', 'e2m1fn block:16']\nlayers = ['head']\n");
  const std::string out = Trained("b.toml --out measured --set what_if.every=4");
  EXPECT_EQ(ReadCsv(Path("measured") / "what_if.csv").rows.size(), 2u * 3 * 2);
  EXPECT_THAT(out, HasSubstr("\n  what_if.csv\n"));
  EXPECT_THAT(out, HasSubstr("what if                     e2m1fn block:16\n"));
  for (const char* const table : kTables) EXPECT_EQ(Csv("plain", table), Csv("measured", table));
  EXPECT_FALSE(std::filesystem::exists(Path("plain") / "what_if.csv"));
}

TEST_F(Train, PresetNeedsNoFile) {
  const std::string out =
      Trained("--preset tiny --set train.steps=1 --set train.valid_every=0 --out result");
  EXPECT_EQ(ReadCsv(Path("result") / "train.csv").rows.size(), 1u) << out;
}

TEST_F(Train, DivergenceIsAResult) {
  const std::string out =
      Trained("a.toml --out result --set schedule.peak=1e30 --set train.steps=50");
  EXPECT_THAT(out, HasSubstr("diverged: step "));
  EXPECT_THAT(Bytes(Path("result") / "summary.txt"), HasSubstr("diverged"));
}

TEST_F(Train, DescribeConfigPrintsEveryKeyAndTrainsNothing) {
  const std::string out = Trained("a.toml --describe-config --set optimizer.v=e5m2");
  for (const char* const text : {"model.width ",
                                 "= 16 ",
                                 "optimizer.v ",
                                 "= \"e5m2\"",
                                 "checkpoint.every ",
                                 "\npresets\n",
                                 "  tiny "}) {
    EXPECT_THAT(out, HasSubstr(text));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("results")));
  EXPECT_THAT(Trained("--describe-config"), HasSubstr("model.width "));
}

TEST_F(Train, ResumeWithMoreStepsGoesOn) {
  Trained("a.toml --out result --set train.steps=3");
  Trained("a.toml --out result --set train.steps=5 --resume");
  EXPECT_EQ(ReadCsv(Path("result") / "train.csv").rows.size(), 5u);
}

TEST_F(Train, ResumeTakesTheConfigurationOfTheDirectory) {
  const std::string set = " --set train.seed=7 --set optimizer.m=e5m2 ";
  Trained("a.toml --out whole" + set + "--set train.steps=8");
  Trained("a.toml --out part" + set + "--set train.steps=3");
  Trained("--resume --out part --set train.steps=8");
  EXPECT_EQ(Bytes(Path("part") / "config.toml"), Bytes(Path("whole") / "config.toml"));
  EXPECT_EQ(Csv("part", "optimizer").substr(0, 200), Csv("whole", "optimizer").substr(0, 200));
  EXPECT_EQ(ReadCsv(Path("part") / "train.csv").rows.size(), 8u);
}

TEST_F(Train, ResumeWithoutACheckpointSaysSoAndTrains) {
  const Outcome outcome = Numsim("train --threads 1 a.toml --out typo --resume");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err,
            "numsim: no checkpoint in typo, which does not exist: starting at step 0\n");
  EXPECT_EQ(ReadCsv(Path("typo") / "train.csv").rows.size(), 6u);
}

TEST_F(Train, TellsE4M3FromTheE4M3OfPapers) {
  const std::string train = "train --threads 1 a.toml --set train.steps=1 ";
  const auto note = [&](const std::string& set) {
    const std::string out = set.substr(0, set.find('='));
    const Outcome outcome = Numsim(train + "--set " + set + " --out " + out);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  for (const char* const set :
       {"optimizer.m=e4m3@tensor", "linear.format=e4m3", "storage.activations=e4m3"}) {
    EXPECT_THAT(note(set), HasSubstr("e4m3 ends at 240; OCP E4M3 of papers is e4m3fn\n"));
  }
  EXPECT_EQ(note("optimizer.v=e4m3fn"), "");
}

TEST_F(Train, InterruptedTwiceAndResumedIsTheSameAsInOneGo) {
  const std::string steps = " --set train.steps=300 ";
  Trained("a.toml --out whole" + steps);
  std::string more;
  int interrupted = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    const long lines = more.empty() ? 3 : 60;
    Background run(Directory(), Words("train --threads 1 a.toml --out part" + steps + more));
    ASSERT_TRUE(WaitForLines(Path("part") / "train.csv", lines));
    run.Signal(signal);
    const int status = run.Wait();
    const bool stopped = run.Text().starts_with("interrupted after ");
    EXPECT_EQ(status, stopped ? 75 : 0) << run.Text();
    if (stopped) {
      ++interrupted;
      EXPECT_THAT(
          run.Text(),
          HasSubstr("saved in part\nto resume: numsim train --threads 1 a.toml --out part"));
      EXPECT_TRUE(run.Text().ends_with(" --resume\n")) << run.Text();
      EXPECT_FALSE(std::filesystem::exists(Path("part") / "summary.txt"));
    }
    more = " --resume";
  }
  EXPECT_GE(interrupted, 1);  // a fast machine may have finished before the second
  Trained("a.toml --out part --resume" + steps);
  ExpectSameResults("whole", "part");
}

TEST_F(Train, BadConfigurationsAreOneLine) {
  Put("key.toml", "[train]\nstep = 5\n");
  Put("value.toml", "[optimizer]\nbeta2 = 2\n");
  Put("toml.toml", "[train\n");
  Put("data.toml", "data.kind = \"images\"\ndata.path = \"nowhere\"\n");
  Put("fit.toml", "model.kind = \"vit\"\n");
  Expect(std::vector<BadCase>{
      {{"train"}, {"CONFIG", "--preset", "tiny"}},
      {{"train", "none.toml"}, {"none.toml"}},
      {{"train", ""}, {"CONFIG"}},
      {{"train", "--resume"}, {"CONFIG", "--resume", "--out"}},
      {{"train", "--resume", "--out", "nowhere"}, {"nowhere/config.toml", "CONFIG"}},
      {{"train", "a.toml", "--set", "optimizer.lr=1"}, {"--set: optimizer.lr: ", "schedule.peak?"}},
      {{"train", "a.toml", "--set", "data.path=x.txt"}, {"data.path: ", "set data.kind=text"}},
      {{"train", "key.toml"}, {"key.toml:2: train.step: ", "did you mean train.steps?"}},
      {{"train", "value.toml"}, {"value.toml:2: optimizer.beta2: 2 "}},
      {{"train", "toml.toml"}, {"toml.toml:1: "}},
      {{"train", "data.toml"}, {"nowhere"}},
      {{"train", "fit.toml"}, {"data.kind: ", "'vit'"}},
      {{"train", "a.toml", "--set", "train.steps"}, {"--set train.steps: "}},
      {{"train", "a.toml", "--set", "train.step=1"}, {"--set: train.step: ", "train.steps?"}},
      {{"train", "a.toml", "--set", "train.steps=many"}, {"--set: train.steps: "}},
      {{"train", "a.toml", "--set", "train.batch=100000"}, {"train.batch"}},
      {{"train", "a.toml", "--set", "linear.override.0.layers=nope"}, {"'nope'"}},
      {{"train", "a.toml", "--set", "what_if.recipes=e4m3fn tensr"},
       {"--set: what_if.recipes: ", "'tensr'", "tensor, row", "did you mean tensor?"}},
      {{"train",
        "a.toml",
        "--set",
        "what_if.recipes=e4m3fn tensor",
        "--set",
        "what_if.layers=heads"},
       {"what_if.layers: ", "'heads'", "did you mean head?"}},
      {{"train", "a.toml", "--preset", "tiny"}, {"--preset"}},
      {{"train", "--preset", "huge"}, {"'huge'", "tiny"}},
      {{"train", "a.toml", "--out", ""}, {"--out"}},
      {{"train", "a.toml", "--nope"}, {"--nope"}},
      {{"train", "a.toml", "extra"}, {"extra"}},
      {{"train", "a.toml", "--describe-config", "--set", "x=1"}, {"--set: x: "}},
  });
}

TEST_F(Train, DirectoryOfAnotherTrainingIsRefused) {
  Trained("a.toml --out result");
  Expect(std::vector<BadCase>{
      {{"train", "a.toml", "--out", "result"}, {"result", "--resume"}},
      {{"train", "a.toml", "--out", "result", "--resume", "--set", "train.seed=1"}, {"train.seed"}},
      {{"train", "a.toml", "--out", "a.toml"}, {"a.toml"}},
  });
}

}  // namespace
}  // namespace numsim::apps
