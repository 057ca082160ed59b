// Comparison of trainings whose files are written here by hand.
#include "numsim/train/comparison.h"

#include <cmath>

#include "numsim/config/config.h"
#include "numsim/io/csv.h"
#include "numsim/io/manifest.h"
#include "numsim/plot/figure.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Comparison : public IoTest {
 protected:
  // Writes the directory of a training: `losses` of steps 0, 1, ..., and of validations every 10
  // steps.
  fs::path PutTraining(const std::string& name,
                       const std::vector<std::string>& overrides,
                       const std::vector<double>& losses,
                       const std::vector<double>& valid) const {
    fs::create_directories(Path(name));
    Put(name + "/config.toml", WriteTrainConfig(ParseTrainConfig("", "test", {}, overrides)));
    std::string train = "step,tokens,loss\n", validations = "step,loss,accuracy\n";
    for (size_t i = 0; i < losses.size(); ++i) {
      train += fmt::format("{},{},{}\n", i, 64 * (i + 1), FormatCell(losses[i]));
    }
    for (size_t i = 0; i < valid.size(); ++i) {
      validations += fmt::format("{},{},0.5\n", 10 * i, FormatCell(valid[i]));
    }
    Put(name + "/train.csv", train);
    Put(name + "/valid.csv", validations);
    return Path(name);
  }
  // Steps 0 to 19 with losses first, first - 0.1, ...
  static std::vector<double> Falling(double first) {
    std::vector<double> losses;
    for (int i = 0; i < 20; ++i) losses.push_back(first - 0.1 * i);
    return losses;
  }
};

TEST_F(Comparison, LabelsAreTheKeysThatDiffer) {
  const TrainComparison comparison = CompareTrainings(
      {PutTraining("a", {"train.seed=4", "optimizer.m=e5m2"}, Falling(5), {5, 4}),
       PutTraining("b", {"train.seed=4", "optimizer.v=e4m3fn@block:64"}, Falling(5), {5, 4})});
  EXPECT_THAT(comparison.keys, ElementsAre("optimizer.m", "optimizer.v"));
  ASSERT_EQ(comparison.trainings.size(), 2u);
  EXPECT_EQ(comparison.trainings[0].label, "optimizer.m=e5m2, optimizer.v=fp32");
  EXPECT_EQ(comparison.trainings[1].label, "optimizer.m=fp32, optimizer.v=e4m3fn@block:64");
  EXPECT_THAT(comparison.trainings[1].values, ElementsAre("fp32", "e4m3fn@block:64"));
}

TEST_F(Comparison, EqualConfigurationsAreLabelledByDirectory) {
  const fs::path a = PutTraining("a", {}, Falling(5), {5}),
                 b = PutTraining("b", {}, Falling(5), {5});
  const TrainComparison same = CompareTrainings({a, b});
  EXPECT_TRUE(same.keys.empty());
  EXPECT_EQ(same.trainings[1].label, b.string());
  EXPECT_THAT(ComparisonText(same), HasSubstr("No key of the configurations differs."));

  const fs::path c = PutTraining("c", {"train.seed=1"}, Falling(5), {5});
  const TrainComparison two_alike = CompareTrainings({a, b, c});
  EXPECT_EQ(two_alike.trainings[0].label, "train.seed=0 (" + a.string() + ")");
  EXPECT_EQ(two_alike.trainings[1].label, "train.seed=0 (" + b.string() + ")");
  EXPECT_EQ(two_alike.trainings[2].label, "train.seed=1");
}

TEST_F(Comparison, LongLabelsBecomeDirectories) {
  const fs::path a = PutTraining("a", {}, Falling(5), {5});
  const fs::path b = PutTraining("b",
                                 {"optimizer.m=e5m2",
                                  "optimizer.v=e5m2",
                                  "schedule.peak=0.01",
                                  "optimizer.weight_decay=0.01",
                                  "model.qk_norm=true"},
                                 Falling(5),
                                 {5});
  const TrainComparison comparison = CompareTrainings({a, b});
  EXPECT_EQ(comparison.keys.size(), 5u);
  EXPECT_EQ(comparison.trainings[0].label, a.string());
  EXPECT_EQ(comparison.trainings[1].label, b.string());
}

TEST_F(Comparison, KeysOfLayersThatOneDoesNotHaveAreNotSet) {
  const TrainComparison comparison =
      CompareTrainings({PutTraining("a", {}, Falling(5), {5}),
                        PutTraining("b", {"linear.override.0.layers=head"}, Falling(5), {5})});
  ASSERT_EQ(comparison.keys.front(), "linear.override.0.layers");
  EXPECT_EQ(comparison.trainings[0].values[0], "-");
  EXPECT_EQ(comparison.trainings[1].values[0], "head");
}

// Losses 5, 4.9, ..., 3.1: the last ten are 4, 3.9, ..., 3.1, whose mean is 3.55.
TEST_F(Comparison, LossesAreThoseOfTheEnd) {
  const TrainComparison comparison =
      CompareTrainings({PutTraining("a", {"train.steps=20"}, Falling(5), {5, 4.5, 3.25}),
                        PutTraining("b", {"train.steps=40"}, Falling(6), {5, 4.5, 3.5}),
                        PutTraining("c", {"train.steps=60"}, {5, std::nan("")}, {})});
  const ComparedTraining& a = comparison.trainings[0];
  EXPECT_NEAR(a.train_loss, 3.55, 1e-12);
  EXPECT_EQ(a.valid_loss, 3.25);
  EXPECT_EQ(a.steps, 20u);
  EXPECT_EQ(comparison.trainings[1].planned, 40u);
  EXPECT_TRUE(std::isnan(comparison.trainings[2].train_loss));
  EXPECT_TRUE(std::isnan(comparison.trainings[2].valid_loss));
  const std::string text = ComparisonText(comparison);
  EXPECT_THAT(text, HasSubstr(a.directory.string() + "  20/20      3.55        3.25\n"));
  EXPECT_THAT(text, HasSubstr("  20/40      4.55         3.5       +0.25\n"));
  EXPECT_THAT(text, HasSubstr("  2/60       nan         nan        +nan\n"));
  EXPECT_THAT(text, HasSubstr("train.steps       20  40  60\n"));
  EXPECT_THAT(text, HasSubstr("training: loss, nats, mean of the last 10 steps"));
}

TEST_F(Comparison, CsvHasTheLossesAndTheirMeans) {
  const fs::path a = PutTraining("a", {}, Falling(5), {5, 4}),
                 b = PutTraining("b", {"train.seed=1"}, Falling(6), {6, 5});
  const TrainComparison comparison = CompareTrainings({a, b});
  EXPECT_EQ(comparison.mean_steps, 10u);
  const std::vector<fs::path> written = WriteComparison(comparison, Path("both.svg"));
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written[0], Path("both.csv"));
  const Table table = ReadCsv(Path("both.csv"));
  ASSERT_EQ(table.rows.size(), 2u * (20 + 2));
  EXPECT_EQ(table.Text(0, "directory"), a.string());
  EXPECT_EQ(table.Text(0, "label"), "train.seed=0");
  EXPECT_EQ(table.Text(19, "curve"), "training");
  EXPECT_EQ(table.Text(19, "step"), "19");
  EXPECT_NEAR(table.Number(19, "loss"), 3.1, 1e-12);
  EXPECT_NEAR(table.Number(19, "shown"), 3.55, 1e-12);
  EXPECT_NEAR(table.Number(4, "shown"), 4.8, 1e-12);  // of the first five
  EXPECT_EQ(table.Text(21, "curve"), "validation");
  EXPECT_EQ(table.Text(21, "step"), "10");
  EXPECT_EQ(table.Text(21, "shown"), "4");
  EXPECT_EQ(table.Text(22, "label"), "train.seed=1");
}

TEST_F(Comparison, FigureShowsLossesAndDifferences) {
  const TrainComparison comparison =
      CompareTrainings({PutTraining("a", {}, Falling(5), {5, 4}),
                        PutTraining("b", {"train.seed=1"}, Falling(5.5), {6, 4.75})});
  const std::vector<fs::path> written = WriteComparison(comparison, Path("both"));
  const std::string script = Bytes(Path("both.gp"));
  for (const char* const text : {"Training loss, mean of 10 steps",
                                 "'Validation loss'",
                                 "Training loss minus the first",
                                 "Validation loss minus the first",
                                 "'loss, nats'",
                                 "'difference in loss, nats'",
                                 "'step'",
                                 "title 'train.seed=1'",
                                 "$curve_4_2 << EOD\n0 1\n10 0.75\nEOD\n"}) {
    EXPECT_THAT(script, HasSubstr(text));
  }
  EXPECT_THAT(script, ::testing::Not(HasSubstr("cut at")));
  if (GnuplotVersion().empty()) return;
  EXPECT_THAT(written,
              ElementsAre(Path("both.csv"), Path("both.gp"), Path("both.svg"), Path("both.pdf")));
  EXPECT_THAT(Bytes(Path("both.svg")), HasSubstr("</svg>"));
}

// Differences exist only at the steps that both have; a mean takes as many steps of each.
TEST_F(Comparison, RowsAtOtherStepsAreComparedAtCommonOnes) {
  const fs::path a = PutTraining("a", {}, {5, 4.875, 4.75, 4.625, 4.5, 4.375, 4.25}, {5, 4});
  const fs::path b = PutTraining("b", {"telemetry.every=2"}, {}, {5, 4});
  Put("b/train.csv", "step,tokens,loss\n0,64,5\n2,192,5\n4,320,5\n5,384,5\n");
  const TrainComparison comparison = CompareTrainings({a, b});
  EXPECT_EQ(comparison.mean_steps, 20u);
  WriteComparison(comparison, Path("both"));
  // The means of a up to steps 0, 2, 4 and 5 are 5, 4.875, 4.75 and 4.6875.
  EXPECT_THAT(Bytes(Path("both.gp")),
              HasSubstr("$curve_3_2 << EOD\n0 0\n2 0.125\n4 0.25\n5 0.3125\nEOD\n"));
  EXPECT_EQ(ReadCsv(Path("both.csv")).Text(7 + 2 + 3, "step"), "5");
}

TEST_F(Comparison, DivergedTrainingIsCutOff) {
  const TrainComparison comparison =
      CompareTrainings({PutTraining("a", {}, Falling(5), {5, 4}),
                        PutTraining("b", {"train.seed=1"}, Falling(5), {5, 3.5}),
                        PutTraining("c", {"train.seed=2"}, {5, 5, 1e6, 1e30}, {5, 1e30})});
  WriteComparison(comparison, Path("both"));
  const std::string script = Bytes(Path("both.gp"));
  EXPECT_THAT(script, HasSubstr("'Validation loss, cut at 10'"));
  EXPECT_THAT(script, HasSubstr("set yrange [3.24:10.26]"));  // 3.5 to 10, and 4 % of that
  EXPECT_THAT(script, HasSubstr("'Validation loss minus the first, cut at 0.5'"));
  EXPECT_THAT(script, HasSubstr("set yrange [-0.54:0.54]"));
}

// The first loss of a training counts, whatever follows it.
TEST_F(Comparison, AxesEndByFirstLosses) {
  const TrainComparison comparison =
      CompareTrainings({PutTraining("a", {}, Falling(5), {5, 4}),
                        PutTraining("b", {"train.seed=1"}, Falling(5), {8, INFINITY}),
                        PutTraining("c", {"train.seed=2"}, Falling(5), {5, 1e30})});
  WriteComparison(comparison, Path("both"));
  EXPECT_THAT(Bytes(Path("both.gp")), HasSubstr("'Validation loss, cut at 16'"));
}

TEST_F(Comparison, RefusesWhatItCannotCompare) {
  const fs::path a = PutTraining("a", {}, Falling(5), {5, 4});
  const auto error_with = [&](const fs::path& other) {
    return ErrorOf([&] { CompareTrainings({a, other}); });
  };
  ExpectMessage(ErrorOf([&] { CompareTrainings({a}); }), {"at least two", "not 1"});
  ExpectMessage(error_with(Path("none")), {Path("none").string(), "no such directory"});
  ExpectMessage(error_with(a), {a.string(), "given twice"});
  ExpectMessage(error_with(Path("a/../a")), {"given twice"});
  fs::create_directories(Path("empty"));
  ExpectMessage(error_with(Path("empty")), {Path("empty").string(), "no config.toml"});
  ExpectMessage(error_with(PutTraining("mlp", {"model.kind=mlp"}, Falling(5), {5})),
                {Path("mlp").string(), "loss, mean square", "loss, nats", a.string()});
  ExpectMessage(error_with(PutTraining("begun", {}, {}, {})),
                {Path("begun/train.csv").string(), "no rows"});
  const fs::path bad = PutTraining("bad", {}, Falling(5), {5});
  Put("bad/config.toml", "train.step = 3\n");
  ExpectMessage(error_with(bad), {Path("bad/config.toml").string() + ":1", "train.steps?"});
  PutTraining("cell", {}, Falling(5), {5});
  Put("cell/valid.csv", "step,loss,accuracy\n0,x,1\n");
  EXPECT_THAT(error_with(Path("cell")), ::testing::Not(::testing::StrEq(kNoError)));
}

// While there is no manifest, files may change: the training goes on.
TEST_F(Comparison, FilesThatChangedSinceTheManifestAreRefused) {
  const fs::path a = PutTraining("a", {}, Falling(5), {5, 4}),
                 b = PutTraining("b", {"train.seed=1"}, Falling(5), {5, 4});
  const auto error = [&] { return ErrorOf([&] { CompareTrainings({a, b}); }); };
  EXPECT_EQ(error(), kNoError);
  Manifest manifest;
  for (const char* const name : {"config.toml", "train.csv", "valid.csv"}) {
    manifest.outputs.push_back(DescribeOutput(b, name));
  }
  WriteManifest(b / "manifest.json", manifest);
  EXPECT_EQ(error(), kNoError);
  for (const OutputFile& output : manifest.outputs) {
    const std::string good = Bytes(b / output.path);
    std::string bad = good;
    bad[bad.rfind('5')] = '6';
    Put("b/" + output.path, bad);
    ExpectMessage(error(), {(b / output.path).string() + ": changed since the run that wrote it"});
    Put("b/" + output.path, good);
  }
  Put("b/manifest.json", "{");
  ExpectMessage(error(), {(b / "manifest.json").string(), "expected the manifest of a numsim run"});
}

TEST_F(Comparison, OutputThatExistsIsNotReplaced) {
  const TrainComparison comparison = CompareTrainings(
      {PutTraining("a", {}, Falling(5), {5}), PutTraining("b", {"train.seed=1"}, Falling(5), {5})});
  for (const char* const extension : {".csv", ".gp", ".svg", ".pdf"}) {
    const fs::path file = Put(fmt::format("both{}", extension), "mine");
    const std::vector<std::string> before = Names();
    ExpectMessage(ErrorOf([&] { WriteComparison(comparison, Path("both")); }),
                  {file.string(), "exists", "--out"});
    EXPECT_EQ(Names(), before);
    EXPECT_EQ(Bytes(file), "mine");
    fs::remove(file);
  }
  ExpectMessage(ErrorOf([&] { WriteComparison(comparison, Path("none/both")); }), {"none/both"});
}

}  // namespace
}  // namespace numsim
