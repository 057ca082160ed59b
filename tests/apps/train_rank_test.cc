// `numsim train --rank`: what it writes and says, beside a run and without one; bad input.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "numsim/io/csv.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kQuantised = R"(
[model]
layers = 1
width = 16
heads = 2
context = 16
[linear]
kind = "switchback"
high_precision = "fp32"
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
constexpr const char* kFiles[] = {
    "ranking.csv", "ranking.gp", "ranking.pdf", "ranking.svg", "ranking.txt"};

class TrainRank : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    Put("a.toml", kQuantised);
  }

  // stdout of `train WORDS`, which must succeed. One thread: these models are too small for two.
  std::string Trained(const std::string& words) const {
    return Output("train --threads 1 " + words);
  }

  std::string Text(const std::string& out) const { return Bytes(Path(out) / "ranking.txt"); }
  Table Ranking(const std::string& out) const { return ReadCsv(Path(out) / "ranking.csv"); }

  // Name -> bytes of the files of `out`; without those of a ranking.
  std::map<std::string, std::string> FilesOfTheRun(const std::string& out) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(Path(out))) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("ranking.")) files[name] = Bytes(entry.path());
    }
    return files;
  }
};

TEST_F(TrainRank, WithoutARunItLooksAtTheFirstStep) {
  const std::string out = Trained("a.toml --out result --rank tensor");
  EXPECT_THAT(Text("result"), HasSubstr("step 0"));
  EXPECT_THAT(out, HasSubstr(Text("result")));
  EXPECT_THAT(out, HasSubstr("no checkpoint"));
  EXPECT_THAT(out, HasSubstr("written to result:\n"));
  const Table table = Ranking("result");
  EXPECT_EQ(table.rows.size(), 15u);  // x, w, g of five layers
  EXPECT_THAT(Text("result"), HasSubstr(table.Text(0, "layer") + " " + table.Text(0, "tensor")));
  const std::set<std::string> known(std::begin(kFiles), std::end(kFiles));
  for (const auto& entry : std::filesystem::directory_iterator(Path("result"))) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(known.count(name)) << name;
    EXPECT_THAT(out, HasSubstr("\n  " + name + "\n"));
  }
  for (const char* const name : {"ranking.csv", "ranking.gp", "ranking.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(Path("result") / name)) << name;
  }
}

TEST_F(TrainRank, RanksByWhatIsAskedFor) {
  Trained("a.toml --out layer --rank layer");
  Trained("a.toml --out operand --rank operand");
  EXPECT_EQ(Ranking("layer").rows.size(), 5u);
  EXPECT_EQ(Ranking("operand").rows.size(), 20u);
  EXPECT_EQ(Ranking("layer").Text(0, "tensor"), "all");
  EXPECT_THAT(Ranking("operand").Text(0, "tensor"), HasSubstr("."));
}

TEST_F(TrainRank, CountIsThatOfTheTextAndTheFigureNotOfTheTable) {
  Trained("a.toml --out result --rank operand --rank-count 3");
  const Table table = Ranking("result");
  ASSERT_EQ(table.rows.size(), 20u);
  const std::string figure = Bytes(Path("result") / "ranking.gp");
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string name = table.Text(row, "layer") + " " + table.Text(row, "tensor");
    EXPECT_EQ(Text("result").find(name) != std::string::npos, row < 3) << name;
    EXPECT_EQ(figure.find(name) != std::string::npos, row < 3) << name << '\n' << figure;
  }
  EXPECT_THAT(Text("result"), HasSubstr("17 more"));
}

TEST_F(TrainRank, FilesOfTheRunStayAsTheyAre) {
  Trained("a.toml --out result");
  const std::map<std::string, std::string> before = FilesOfTheRun("result");
  EXPECT_GT(before.size(), 8u);
  const std::string out = Trained("a.toml --out result --rank layer");
  EXPECT_THAT(Text("result"), HasSubstr("step 6"));
  EXPECT_THAT(out, Not(HasSubstr("no checkpoint")));
  EXPECT_EQ(FilesOfTheRun("result"), before);
  // Another ranking takes the place of the first.
  const Table first = Ranking("result");
  Trained("a.toml --out result --rank tensor");
  EXPECT_EQ(FilesOfTheRun("result"), before);
  EXPECT_NE(ToCsv(Ranking("result")), ToCsv(first));
  Trained("a.toml --out result --rank layer");
  EXPECT_EQ(ToCsv(Ranking("result")), ToCsv(first));
}

TEST_F(TrainRank, BetweenARunAndItsResumptionItChangesNothing) {
  for (const std::string out : {"plain", "ranked"}) {
    Trained("a.toml --set train.steps=3 --out " + out);
    if (out == "ranked") Trained("a.toml --set train.steps=3 --rank layer --out ranked");
    Trained("a.toml --resume --out " + out);
  }
  EXPECT_THAT(Text("ranked"), HasSubstr("step 3"));
  EXPECT_EQ(ReadCsv(Path("ranked") / "train.csv").rows.size(), 6u);
  for (const char* const name :
       {"train.csv", "tensors.csv", "quantised.csv", "checkpoint.safetensors", "summary.txt"}) {
    EXPECT_TRUE(Bytes(Path("ranked") / name) == Bytes(Path("plain") / name)) << name;
  }
}

TEST_F(TrainRank, WithoutARunATrainingMayFollow) {
  Trained("a.toml --out result --rank layer");
  Trained("a.toml --out result");
  Trained("a.toml --out other");
  EXPECT_EQ(Bytes(Path("result") / "train.csv"), Bytes(Path("other") / "train.csv"));
}

TEST_F(TrainRank, LossOfTheRankedStepIsThatOfTheTraining) {
  Trained("a.toml --out result");
  const double loss = ReadCsv(Path("result") / "train.csv").Number(0, "loss");
  Trained("a.toml --out ranked --rank layer");
  EXPECT_THAT(Text("ranked"), HasSubstr(fmt::format("{:.6g}", loss)));
}

TEST_F(TrainRank, ThreadsAndBackendDoNotMatter) {
  Output("train --threads 1 a.toml --out first --rank tensor");
  Output("train --threads 2 a.toml --out second --rank tensor");
  Output("train --threads 1 a.toml --out third --rank tensor --backend scalar");
  for (const char* const out : {"second", "third"}) {
    EXPECT_EQ(ToCsv(Ranking(out)), ToCsv(Ranking("first")));
    EXPECT_EQ(Text(out), Text("first"));
  }
}

TEST_F(TrainRank, NothingQuantisedIsSaid) {
  const std::string out = Trained("a.toml --out result --rank layer --set linear.kind=standard");
  EXPECT_THAT(out, HasSubstr("othing is quantised"));
  EXPECT_TRUE(Ranking("result").rows.empty());
}

TEST_F(TrainRank, PresetNeedsNoFile) {
  Trained("--preset tiny --rank layer --set linear.kind=switchback --out result");
  EXPECT_EQ(Ranking("result").rows.size(), 9u);
  Trained("a.toml --rank layer");
  EXPECT_EQ(Ranking("results/train/a").rows.size(), 5u);
}

TEST_F(TrainRank, ItsAdviceIsAConfiguration) {
  Trained("a.toml --out first --rank tensor");
  const std::string text = Text("first");
  const size_t at = text.find("[[linear.override]]");
  ASSERT_NE(at, std::string::npos) << text;
  Put("b.toml", std::string(kQuantised) + text.substr(at));
  Trained("b.toml --out second --rank tensor");
  EXPECT_EQ(Ranking("second").rows.size(), 14u);
  const std::string first =
      Ranking("first").Text(0, "layer") + " " + Ranking("first").Text(0, "tensor");
  EXPECT_THAT(Text("second"), Not(HasSubstr(first + " ")));
}

TEST_F(TrainRank, BadInvocationsAreOneLine) {
  Put("diverges.toml", std::string(kQuantised) + "[schedule]\npeak = 1e30\n");
  Trained("diverges.toml --out diverged");
  Trained("a.toml --out result");
  Expect(std::vector<BadCase>{
      {{"train", "a.toml", "--rank"}, {"--rank"}},
      {{"train", "a.toml", "--rank", ""}, {"--rank"}},
      {{"train", "a.toml", "--rank", "layers"}, {"'layers'", "layer, tensor, operand"}},
      {{"train", "a.toml", "--rank", "layer", "--resume"}, {"--rank", "--resume"}},
      {{"train", "a.toml", "--rank", "layer", "--describe-config"}, {"--describe-config"}},
      {{"train", "a.toml", "--rank-count", "3"}, {"--rank"}},
      {{"train", "a.toml", "--rank", "layer", "--rank-count", "0"}, {"--rank-count"}},
      {{"train", "a.toml", "--rank", "layer", "--rank-count", "-1"}, {"--rank-count"}},
      {{"train", "a.toml", "--rank", "layer", "--rank-count", "many"}, {"--rank-count"}},
      {{"train", "--rank", "layer"}, {"CONFIG"}},
      {{"train", "none.toml", "--rank", "layer"}, {"none.toml"}},
      {{"train", "a.toml", "--rank", "layer", "--set", "linear.kind=nope"}, {"linear.kind"}},
      {{"train", "a.toml", "--rank", "layer", "--set", "train.batch=100000"}, {"train.batch"}},
      {{"train", "a.toml", "--rank", "layer", "--out", "a.toml"}, {"a.toml"}},
      {{"train", "a.toml", "--rank", "layer", "--out", "result", "--set", "train.seed=9"},
       {"train.seed"}},
      {{"train", "a.toml", "--rank", "layer", "--out", "result", "--set", "linear.kind=mx"},
       {"linear.kind"}},
      // There is no gradient in float32 either.
      {{"train", "diverges.toml", "--rank", "layer", "--out", "diverged"}, {"not finite"}},
  });
}

}  // namespace
}  // namespace numsim::apps
