// Trainings made elsewhere (`--rows`): results that are those of a run of their own, verdicts that
// follow the rows, and everything that is refused.
#include "experiments/runner/given_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/runner/model_size.h"
#include "experiments/runner/rows_template.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_run.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/train/run.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"
#include "tests/support/gzip.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

Experiment WithoutFigures(const std::string& name) {
  Experiment experiment = *FindExperiment(name);
  experiment.figures = nullptr;  // gnuplot takes longer than everything else
  return experiment;
}

// Adds the columns of --rows to the table of trainings that a run wrote.
Table AsRows(const Experiment& experiment, const Settings& settings, Table table) {
  const std::vector<WantedTraining> trainings = ListTrainings(experiment, settings);
  const size_t own = table.columns.size();
  table.columns = ColumnsOfRows(experiment);
  EXPECT_EQ(trainings.size(), table.rows.size());
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const TrainConfig& config = trainings[row].training.config;
    if (table.columns.size() == own + 4) {
      table.rows[row].emplace_back(static_cast<int64_t>(CountParameters(config).all));
    }
    table.rows[row].emplace_back(table.Number(row, "steps") * TokensPerStep(config));
    table.rows[row].insert(table.rows[row].end(), {"", ""});
  }
  return table;
}

// The cells of verdicts.csv, with the scale up to where it says where the rows are from.
Table Verdicts(const fs::path& directory) {
  Table table = ReadCsv(directory / "verdicts.csv");
  const size_t scale = table.Column("scale");
  for (Row& row : table.rows) {
    const std::string text = row[scale].Text();
    row[scale] = text.substr(0, text.find("; trained elsewhere: "));
  }
  return table;
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, RowsOfARunGiveItsTablesAndVerdicts) {
  const Experiment experiment = WithoutFigures(GetParam());
  std::map<std::string, std::string> options = TinyRun(GetParam());
  if (options.contains("plants")) options["plants"] = "none";  // each trains all recipes
  const Settings settings = MakeSettings(experiment, "quick", 3, 2, options);
  const TemporaryDirectory directory;
  const fs::path own = directory.Path() / "own", main = directory.Path() / "rows.csv";
  RunWithoutFigures(experiment, settings, own);
  const std::string& table = experiment.rows.table;
  WriteCsv(main, AsRows(experiment, settings, ReadCsv(own / (table + ".csv"))));

  std::vector<RowsArgument> files = {{"", main}};
  for (const TableSpec& spec : experiment.tables) {
    if (spec.derived || spec.name == table) continue;
    files.push_back({spec.name, own / (spec.name + ".csv")});
  }
  const fs::path all = directory.Path() / "all";
  JudgeRows(experiment, settings, files, all, {});
  for (const TableSpec& spec : experiment.tables) {
    const std::string file = spec.name + ".csv";
    EXPECT_EQ(Bytes(all / file), Bytes(own / file)) << file;
  }
  EXPECT_EQ(ToCsv(Verdicts(all)), ToCsv(Verdicts(own)));

  // Without the other tables their claims are not tested, and no file looks like one of them.
  const fs::path alone = directory.Path() / "alone";
  const RunReport report = JudgeRows(experiment, settings, {files.front()}, alone, {});
  EXPECT_EQ(Bytes(alone / (table + ".csv")), Bytes(own / (table + ".csv")));
  for (const RowsArgument& file : files) {
    if (file.table.empty()) continue;
    EXPECT_FALSE(fs::exists(alone / (file.table + ".csv"))) << file.table;
  }
  const Table tested = Verdicts(own), judged_alone = Verdicts(alone);
  ASSERT_EQ(judged_alone.rows.size(), tested.rows.size());
  for (size_t row = 0; row < tested.rows.size(); ++row) {
    if (judged_alone.Text(row, "verdict") == "not tested") continue;
    EXPECT_GE(judged_alone.Number(row, "p"),
              tested.Number(row, "p"))  // leaving tables out eases none
        << tested.Text(row, "claim");
  }
  for (const JudgedClaim& claim : report.judged) {
    if (claim.result.verdict != Verdict::kNotTested) continue;
    for (size_t row = 0; row < tested.rows.size(); ++row) {
      if (tested.Text(row, "claim") != claim.spec->id) continue;
      const std::string reason = tested.Text(row, "reason");
      EXPECT_TRUE(claim.result.reason == reason ||
                  claim.result.reason.starts_with("--rows does not give the table "))
          << claim.spec->id << ": " << claim.result.reason << " / " << reason;
    }
  }

  // Drawing again finds where the rows are from.
  for (const fs::path& results : {all, alone}) {
    const std::string summary = Bytes(results / "summary.txt"), verdicts = ToCsv(Verdicts(results));
    Redraw(experiment, results, {});
    EXPECT_EQ(Bytes(results / "summary.txt"), summary);
    EXPECT_EQ(ToCsv(Verdicts(results)), verdicts);
  }
}

INSTANTIATE_TEST_SUITE_P(GivenRows,
                         RoundTrip,
                         testing::Values("moment-formats",
                                         "switchback-accuracy",
                                         "fp8-interventions",
                                         "fp8-outliers",
                                         "loss-scaling",
                                         "loss-spikes"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(GivenRows, OnlyExperimentsWhoseTrialsAreTrainingsTakeThem) {
  const TemporaryDirectory directory;
  std::string takers;
  for (const Experiment& experiment : AllExperiments()) {
    if (!experiment.rows.table.empty()) {
      takers += experiment.name + " ";
      continue;
    }
    Settings settings = MakeSettings(experiment, "quick", 0, 1, {});
    EXPECT_THAT(ErrorOf([&] {
                  JudgeRows(experiment, settings, {{"", "x.csv"}}, directory.Path(), {});
                }),
                testing::StartsWith(experiment.name + " does not take --rows: "));
  }
  EXPECT_EQ(
      takers,
      "moment-formats moments-over-tokens switchback-accuracy fp8-interventions loss-spikes loss-scaling "
      "fp8-outliers noise-floor fp4-training ");
}

// Rows of moment-formats that no training made.
class MadeUpRows : public testing::Test {
 protected:
  MadeUpRows()
      : experiment_(WithoutFigures("moment-formats")),
        settings_(MakeSettings(experiment_,
                               "quick",
                               0,
                               3,
                               {{"m", "e4m3fn,e5m2"},
                                {"v", "e4m3fn,e5m2"},
                                {"pairs", "none"},
                                {"epsilon", "1e-5"},
                                {"update-from", "fresh"},
                                {"text-size", "16384"},
                                {"steps", "10"},
                                {"records", "2"},
                                {"warmup", "1"}})),
        file_(directory_.Path() / "rows.csv") {
    WriteRowsTemplate(experiment_, settings_, {.file = file_, .configs = {}, .collect = {}});
    table_ = ReadCsv(file_);
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      Set(row, "status", "finished");
      Set(row, "steps", "10");
      Set(row, "start_loss", "5.5");
      const double gap = table_.Text(row, "v") == "e4m3fn" ? 0.5 : 0;
      const double noise = 0.001 * static_cast<double>((7 * row) % 5);
      Set(row, "train_loss", 3.0);
      Set(row, "valid_loss", 3.0 + gap + noise);
      Set(row, "entropy_bound", "nan");
      Set(row, "m_bytes", "1");
      Set(row, "v_bytes", "1");
      Set(row, "parameters", "131392");
    }
  }

  void Set(size_t row, const std::string& column, const Cell& cell) {
    table_.rows.at(row).at(table_.Column(column)) = cell;
  }
  // Sets a column of the rows of an m and v.
  void SetArm(const std::string& m, const std::string& v, const std::string& column, double value) {
    for (size_t row = 0; row < table_.rows.size(); ++row) {
      if (table_.Text(row, "m") == m && table_.Text(row, "v") == v) Set(row, column, value);
    }
  }
  fs::path Out() const { return directory_.Path() / "out"; }

  RunReport Judge() {
    WriteCsv(file_, table_);
    return JudgeRows(experiment_, settings_, {{"", file_}}, Out(), {});
  }
  // The verdict, with the reason if there is one.
  std::string VerdictOf(const std::string& claim) {
    fs::remove_all(Out());
    for (const JudgedClaim& judged : Judge().judged) {
      if (judged.spec->id != "moment-formats/" + claim) continue;
      return std::string(ToString(judged.result.verdict)) +
             (judged.result.reason.empty() ? "" : ": " + judged.result.reason);
    }
    return "no such claim";
  }
  // The message of the error, without the path of the file. Nothing may have been written.
  std::string Refusal() {
    std::string message = ErrorOf([&] { Judge(); });
    EXPECT_FALSE(fs::exists(Out())) << message;
    const size_t path = message.find(file_.string());
    if (path != message.npos) message.replace(path, file_.string().size(), "rows.csv");
    return message;
  }
  std::string RefusalWith(size_t row, const std::string& column, const Cell& cell) {
    const Table before = table_;
    Set(row, column, cell);
    std::string message = Refusal();
    table_ = before;
    return message;
  }

  TemporaryDirectory directory_;
  Experiment experiment_;
  Settings settings_;
  fs::path file_;
  Table table_;
};

TEST_F(MadeUpRows, MayBeCompressed) {
  Judge();
  const auto outputs = [&] {
    return ReadText(Out() / "settings.json") + ReadText(Out() / "verdicts.csv") +
           ReadText(Out() / "final.csv");
  };
  const std::string plain = outputs();
  fs::remove_all(Out());
  fs::remove(file_);
  WriteFileAtomically(file_.string() + ".gz", Gzip(ToCsv(table_)));
  JudgeRows(experiment_, settings_, {{"", file_}}, Out(), {});
  EXPECT_EQ(outputs(), plain);
}

TEST_F(MadeUpRows, TemplateHasEveryTrainingOnce) {
  EXPECT_EQ(table_.columns,
            (std::vector<std::string>{"m",
                                      "v",
                                      "epsilon",
                                      "update_from",
                                      "lr",
                                      "seed",
                                      "status",
                                      "steps",
                                      "start_loss",
                                      "train_loss",
                                      "valid_loss",
                                      "entropy_bound",
                                      "m_bytes",
                                      "v_bytes",
                                      "parameters",
                                      "trained_tokens",
                                      "run",
                                      "digest"}));
  EXPECT_EQ(table_.rows.size(), 5u * 3u);
  EXPECT_EQ(
      CellsOf(table_, 3, {"m", "v", "epsilon", "update_from", "lr", "seed", "trained_tokens"}),
      "e4m3fn e4m3fn 1e-5 fresh 3e-3 0 5120");  // 10 steps of 8 x 64
}

TEST_F(MadeUpRows, VerdictsFollowTheRows) {
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "supported");
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "supported");
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "contradicted");
  SetArm("e4m3fn", "e4m3fn", "valid_loss", 3.0);
  SetArm("e5m2", "e4m3fn", "valid_loss", 3.0);
  SetArm("e4m3fn", "e5m2", "valid_loss", 3.5);
  SetArm("e5m2", "e5m2", "valid_loss", 3.5);
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "contradicted");
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "contradicted");
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "supported");
}

TEST_F(MadeUpRows, ResultsSayWhereTheyAreFrom) {
  const RunReport report = Judge();
  const std::string digest = Sha256OfText(Bytes(file_));
  EXPECT_THAT(report.summary, testing::HasSubstr("(SHA-256 " + digest.substr(0, 12) + ")"));
  const Table verdicts = ReadCsv(Out() / "verdicts.csv");
  EXPECT_EQ(
      verdicts.Text(0, "scale"),
      "2 layers, width 64, 10 steps; trained elsewhere: 131392 parameters, 5120 tokens; rows of "
      "rows.csv (SHA-256 " +
          digest.substr(0, 12) + ")");
  EXPECT_THAT(Bytes(Out() / "manifest.json"), testing::HasSubstr("rows.csv, SHA-256 " + digest));
  // Others rows are other results, and so is a run without rows.
  Set(0, "valid_loss", "3.25");
  EXPECT_THAT(ErrorOf([&] { Judge(); }),
              testing::HasSubstr("holds results of other settings: --rows"));
  EXPECT_THAT(ErrorOf([&] { RunWithoutFigures(experiment_, settings_, Out()); }),
              testing::HasSubstr("holds results of other settings: --rows"));
}

TEST_F(MadeUpRows, FiguresSayWhereTheRowsAreFrom) {
  experiment_.figures = [](const Settings&, const Tables&) {
    Figure figure{.name = "made-up", .title = "Made up"};
    figure.panels.push_back({.series = {{.x = {0, 1}, .y = {0, 1}}}});
    return std::vector<Figure>{figure, {.name = "of-curves", .title = "Without panels"}};
  };
  const RunReport report = Judge();
  size_t scripts = 0;
  for (const std::string& file : report.outputs) {
    if (!file.ends_with(".gp")) continue;
    ++scripts;
    EXPECT_THAT(Bytes(Out() / file), testing::HasSubstr("trained elsewhere")) << file;
  }
  EXPECT_EQ(scripts, 1u);
}

TEST_F(MadeUpRows, MissingTrainingsAreNamedAndTheirClaimsNotTested) {
  Table all = table_;
  std::erase_if(table_.rows, [](const Row& row) { return row[0] == "e5m2" && row[1] == "e5m2"; });
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "not tested: no run of 'e5m2 / e5m2 / 1e-5 / fresh'");
  fs::remove_all(Out());
  EXPECT_THAT(Judge().summary, testing::HasSubstr("12 of 15 trainings are there; missing: m=e5m2"));
  // A row of the template that nobody filled is missing too.
  fs::remove_all(Out());
  table_ = all;
  for (size_t row = 0; row < table_.rows.size(); ++row) {
    if (table_.Text(row, "seed") == "0") continue;
    for (size_t column = 6; column < table_.columns.size(); ++column) {
      if (table_.columns[column] != "trained_tokens") table_.rows[row][column] = "";
    }
  }
  EXPECT_EQ(VerdictOf("v-e4m3-fails").substr(0, 12), "inconclusive");
  // Without the baseline there is nothing to compare with.
  fs::remove_all(Out());
  table_ = all;
  std::erase_if(table_.rows, [](const Row& row) { return row[0] == "fp32"; });
  EXPECT_THAT(Refusal(),
              testing::AllOf(testing::StartsWith("--rows: what rows.csv has does not suffice"),
                             testing::HasSubstr("missing: m=fp32 v=fp32")));
}

TEST_F(MadeUpRows, NumbersOfTheKeyMayBeWrittenInAnotherWay) {
  for (size_t row = 0; row < table_.rows.size(); ++row) {
    Set(row, "epsilon", "1e-05");
    Set(row, "lr", "0.003");
  }
  Judge();
  EXPECT_EQ(CellsOf(ReadCsv(Out() / "final.csv"), 0, {"epsilon", "lr"}), "1e-5 3e-3");
}

TEST_F(MadeUpRows, BadColumnsAreRefused) {
  const Table good = table_;
  const auto rename = [&](const std::string& from, const std::string& to) {
    table_ = good;
    table_.columns[table_.Column(from)] = to;
    return Refusal();
  };
  EXPECT_THAT(rename("valid_loss", "valid_los"),
              testing::AllOf(testing::StartsWith("rows.csv:1: column 'valid_los' is not one of"),
                             testing::EndsWith("did you mean valid_loss?")));
  EXPECT_EQ(rename("train_loss", "valid_loss"), "rows.csv:1: column 'valid_loss' appears twice");
  table_ = good;
  table_.columns.pop_back();
  for (Row& row : table_.rows) row.pop_back();
  EXPECT_THAT(Refusal(), testing::StartsWith("rows.csv:1: has no column digest; expected"));
}

TEST_F(MadeUpRows, BadCellsAreRefusedWithLineAndColumn) {
  EXPECT_EQ(
      RefusalWith(4, "m", "e4m3f"),
      "rows.csv:6: column m: no training has 'e4m3f'; expected fp32, e4m3fn, e5m2; did you mean "
      "e4m3fn?");
  EXPECT_EQ(RefusalWith(4, "v", "fp32"),
            "rows.csv:6: column v: no training has 'fp32' with m=e4m3fn; expected e4m3fn, e5m2");
  EXPECT_EQ(RefusalWith(14, "seed", "3"),
            "rows.csv:16: column seed: no training has '3' with m=e5m2 v=e5m2 epsilon=1e-5 "
            "update_from=fresh lr=3e-3; expected 0, 1, 2");
  EXPECT_EQ(RefusalWith(1, "seed", "0"),
            "rows.csv:3: column seed: the training m=fp32 v=fp32 epsilon=1e-5 update_from=fresh "
            "lr=3e-3 seed=0 is in line 2 too");
  EXPECT_EQ(RefusalWith(2, "valid_loss", "3.0x"),
            "rows.csv:4: column valid_loss: expected a number, found '3.0x'");
  EXPECT_EQ(RefusalWith(2, "valid_loss", ""),
            "rows.csv:4: column valid_loss: expected a number, found ''");
  EXPECT_EQ(RefusalWith(2, "valid_loss", "nan"),
            "rows.csv:4: column valid_loss: expected a number, since the training has finished");
  EXPECT_EQ(RefusalWith(2, "status", "finishd"),
            "rows.csv:4: column status: 'finishd' is not one of finished, diverged; did you mean "
            "finished?");
  EXPECT_EQ(RefusalWith(2, "steps", "9"),
            "rows.csv:4: column steps: expected the 10 steps, as the settings say, found 9");
  EXPECT_EQ(RefusalWith(2, "steps", "9.5"),
            "rows.csv:4: column steps: expected a whole number, found '9.5'");
  EXPECT_EQ(
      RefusalWith(2, "trained_tokens", "10240"),
      "rows.csv:4: column trained_tokens: expected 5120 for 10 steps of these settings, found "
      "10240");
  EXPECT_EQ(RefusalWith(2, "parameters", "131393"),
            "rows.csv:4: column parameters: 131393, but line 2 has 131392 for the same model");
  EXPECT_EQ(RefusalWith(0, "parameters", "1313920"),
            "rows.csv:2: column parameters: expected about 1.4e+05, as the settings say, found "
            "1313920");
  EXPECT_EQ(RefusalWith(0, "digest", "ab"),
            "rows.csv:2: column run: expected the run directory of the digest, found nothing");
  EXPECT_EQ(RefusalWith(0, "run", "elsewhere"),
            "rows.csv:2: column digest: expected the SHA-256 of the run, 64 digits of 0-9 and a-f, "
            "found ''");
  const std::string digest(64, 'a');
  for (const size_t row : {3u, 5u}) {
    Set(row, "run", "elsewhere" + std::to_string(row));
    Set(row, "digest", digest);
  }
  EXPECT_EQ(Refusal(), "rows.csv:7: column digest: is that of line 5 too: one run twice");
}

TEST_F(MadeUpRows, BadFilesAreRefused) {
  const auto refusal = [&](const std::vector<RowsArgument>& files) {
    WriteCsv(file_, table_);
    return ErrorOf([&] { JudgeRows(experiment_, settings_, files, Out(), {}); });
  };
  EXPECT_EQ(refusal({{"", file_}, {"curvs", file_}}),
            "--rows curvs=...: table 'curvs' is not one of curves, flushed, final, spread; did you "
            "mean curves?");
  EXPECT_THAT(refusal({{"pairs", file_}}), testing::HasSubstr("table 'pairs' is not one of"));
  EXPECT_THAT(refusal({{"", file_}, {"final", file_}}), testing::HasSubstr("has a file already"));
  EXPECT_EQ(refusal({{"curves", file_}}), "--rows: expected a file of the table final too");
  const fs::path curves = directory_.Path() / "curves.csv";
  WriteFileAtomically(curves,
                      "m,v,epsilon,update_from,lr,seed,step,loss\n"
                      "fp32,fp32,1e-5,fresh,3e-3,0,0,5.5\n"
                      "fp32,fp32,1e-5,fresh,3e-3,0,10,x\n");
  EXPECT_THAT(refusal({{"", file_}, {"curves", curves}}),
              testing::EndsWith("curves.csv:3: column loss: expected a number, found 'x'"));
  // Rows of a training that the file of trainings does not have.
  table_.rows.erase(table_.rows.begin());
  EXPECT_THAT(refusal({{"", file_}, {"curves", curves}}),
              testing::HasSubstr("curves.csv:2: column seed: no training has '0' with"));
  EXPECT_FALSE(fs::exists(Out()));
  table_.rows.clear();
  EXPECT_EQ(Refusal(), "rows.csv: no row has an outcome");
  EXPECT_EQ(ParseRowsArgument("curves=a/b.csv").table, "curves");
  EXPECT_EQ(ParseRowsArgument("a=b/c.csv").path, "b/c.csv");
  EXPECT_EQ(ParseRowsArgument("./a=b.csv").path, "./a=b.csv");
}

// Trainings of `numsim train` by the configurations of the template.
class RunDirectories : public testing::Test {
 protected:
  // Each ends with a measurement of the machine's speed, so they are made once.
  static void SetUpTestSuite() {
    made_ = std::make_unique<TemporaryDirectory>();
    const fs::path configs = made_->Path() / "configs";
    WriteRowsTemplate(*FindExperiment("moment-formats"),
                      TinySettings(),
                      {.file = made_->Path() / "todo.csv", .configs = configs, .collect = {}});
    for (const auto& entry : fs::directory_iterator(configs)) {
      RunTraining(ReadTrainConfig(entry.path(), {}),
                  {.out = made_->Path() / "runs" / entry.path().stem(), .figures = false});
    }
  }
  static void TearDownTestSuite() { made_.reset(); }

  RunDirectories()
      : experiment_(WithoutFigures("moment-formats")),
        settings_(TinySettings()),
        rows_(directory_.Path() / "rows.csv"),
        curves_(directory_.Path() / "rows-curves.csv") {
    fs::copy(made_->Path() / "runs", directory_.Path() / "runs", fs::copy_options::recursive);
    for (const char* const number : {"0", "1", "2"}) {
      runs_.push_back(directory_.Path() / "runs" / number);
    }
  }

  static Settings TinySettings() {
    return MakeSettings(*FindExperiment("moment-formats"), "quick", 0, 1, Tiny());
  }
  static std::map<std::string, std::string> Tiny() {
    std::map<std::string, std::string> options = TinyRun("moment-formats");
    options["m"] = "e4m3fn";
    options["pairs"] = "none";
    return options;
  }
  RowsTemplateReport Collect(const std::vector<fs::path>& runs) {
    fs::remove(rows_);
    fs::remove(curves_);
    return WriteRowsTemplate(
        experiment_, settings_, {.file = rows_, .configs = {}, .collect = runs});
  }
  RunReport Judge() {
    return JudgeRows(experiment_, settings_, {{"", rows_}}, directory_.Path() / "out", {});
  }

  static inline std::unique_ptr<TemporaryDirectory> made_;
  TemporaryDirectory directory_;
  Experiment experiment_;
  Settings settings_;
  fs::path rows_, curves_;
  std::vector<fs::path> runs_;
};

TEST_F(RunDirectories, CollectedTrainingsGiveTheTableOfARun) {
  const RowsTemplateReport report = Collect(runs_);
  EXPECT_EQ(report.trainings, 3u);  // fp32, and two formats of v
  EXPECT_EQ(report.filled, 3u);
  EXPECT_TRUE(report.empty_columns.empty());
  EXPECT_THAT(Judge().summary, testing::HasSubstr("Run directories: 3 have"));
  RunWithoutFigures(experiment_, settings_, directory_.Path() / "own");
  const fs::path own = directory_.Path() / "own";
  EXPECT_EQ(Bytes(directory_.Path() / "out" / "final.csv"), Bytes(own / "final.csv"));
  EXPECT_THAT(report.tables, testing::ElementsAre(std::pair(std::string("curves"), curves_)));
  EXPECT_GT(ReadCsv(curves_).rows.size(), 9u);
  EXPECT_EQ(Bytes(curves_), Bytes(own / "curves.csv"));
}

TEST_F(RunDirectories, CurvesHaveAPointPerWindowOfSteps) {
  // A training that diverged, and whose losses were recorded every third step alone.
  const fs::path train = runs_[1] / "train.csv", summary = runs_[1] / "summary.txt";
  Table steps = ReadCsv(train);
  std::erase_if(steps.rows,
                [&](const Row& row) { return static_cast<int>(row[0].Number()) % 3 != 0; });
  WriteCsv(train, steps);
  std::string text = Bytes(summary);
  text.replace(text.find("finished"), 8, "diverged");
  WriteFileAtomically(summary, text);
  Collect({runs_[1]});
  const Table curve = ReadCsv(curves_);  // 20 steps, three records
  ASSERT_EQ(curve.rows.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(curve.Number(i, "step"), 6.0 * static_cast<double>(i));
  EXPECT_EQ(curve.Number(1, "loss"), (steps.Number(0, "loss") + steps.Number(1, "loss")) / 2);
  EXPECT_EQ(curve.Number(2, "loss"), (steps.Number(2, "loss") + steps.Number(3, "loss")) / 2);
}

// Validations at doublings are those of a run of numsim's own, and no row states another early loss.
TEST(ValidationsOfRuns, CollectedOnesAreThoseOfARun) {
  const Experiment experiment = WithoutFigures("moments-over-tokens");
  std::map<std::string, std::string> options = TinyRun("moments-over-tokens");
  options["steps"] = "20";
  options["validations"] = "3";
  options["warmup"] = "2";
  const auto settings_with = [&](const std::string& option, const std::string& value) {
    std::map<std::string, std::string> all = options;
    if (!option.empty()) all[option] = value;
    return MakeSettings(experiment, "quick", 0, 1, all);
  };
  const Settings settings = settings_with("", "");
  const TemporaryDirectory directory;
  const fs::path configs = directory.Path() / "configs", rows = directory.Path() / "rows.csv";
  WriteRowsTemplate(experiment,
                    settings,
                    {.file = directory.Path() / "todo.csv", .configs = configs, .collect = {}});
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(configs)) {
    runs.push_back(directory.Path() / "runs" / entry.path().stem());
    RunTraining(ReadTrainConfig(entry.path(), {}), {.out = runs.back(), .figures = false});
  }
  const RowsTemplateReport report =
      WriteRowsTemplate(experiment, settings, {.file = rows, .configs = {}, .collect = runs});
  EXPECT_TRUE(report.empty_columns.empty());
  const fs::path own = directory.Path() / "own", out = directory.Path() / "out";
  RunWithoutFigures(experiment, settings, own);
  EXPECT_EQ(Bytes(report.tables.at("validations")), Bytes(own / "validations.csv"));
  const std::vector<RowsArgument> files = {{"", rows},
                                           {"validations", report.tables.at("validations")}};
  JudgeRows(experiment, settings, files, out, {});
  EXPECT_EQ(Bytes(out / "gaps.csv"), Bytes(own / "gaps.csv"));
  EXPECT_EQ(Bytes(out / "final.csv"), Bytes(own / "final.csv"));

  Table table = ReadCsv(rows);
  table.rows.back()[table.Column("early_loss")] = "1.5";
  WriteCsv(rows, table);
  EXPECT_THAT(ErrorOf([&] { JudgeRows(experiment, settings, files, directory.Path() / "x", {}); }),
              testing::HasSubstr("column early_loss: '1.5', but "));
  EXPECT_EQ(ErrorOf([&] {
              WriteRowsTemplate(
                  experiment,
                  settings_with("steps", "22"),
                  {.file = directory.Path() / "b.csv", .configs = configs / "b", .collect = {}});
            }),
            "--configs: 3 validations at doublings need steps that are a multiple of 4, found 22");
  EXPECT_FALSE(fs::exists(configs / "b"));
}

// A training that diverged before the first doubling has no early loss, and one that was validated at
// other steps does not say it.
TEST(ValidationsOfRuns, EarlyLossIsThatOfTheFirstDoubling) {
  const TemporaryDirectory directory;
  const auto early = [&](const std::string& status, const std::string& valid) {
    WriteFileAtomically(directory.Path() / "summary.txt",
                        fmt::format("{:28}{}\n", "status", status));
    WriteFileAtomically(directory.Path() / "valid.csv", "step,loss\n" + valid);
    return ReadDoublings(directory.Path(), 20, 3).early_loss;
  };
  EXPECT_EQ(early("finished", "0,7\n4,6\n5,5.5\n10,5\n20,4\n"), "5.5");
  EXPECT_EQ(early("finished", "0,7\n20,4\n"), "");
  EXPECT_EQ(early("diverged: step 7", "0,7\n5,nan\n10,5\n"), "5");
  EXPECT_EQ(early("diverged: step 3", "0,7\n4,9\n"), "inf");
  EXPECT_EQ(early("finished", "0,7\n"), "");
  EXPECT_TRUE(IsDoubling(5, 21, 3) && IsDoubling(21, 21, 1) && !IsDoubling(0, 1, 8));
}

TEST_F(RunDirectories, RowsThatDoNotFitTheirRunsAreRefused) {
  Collect(runs_);
  const Table good = ReadCsv(rows_);
  const auto refusal = [&](const std::function<void(Table&)>& change) {
    Table table = good;
    change(table);
    WriteCsv(rows_, table);
    std::string message = ErrorOf([&] { Judge(); });
    EXPECT_FALSE(fs::exists(directory_.Path() / "out")) << message;
    return message;
  };
  const size_t loss = good.Column("valid_loss"), run = good.Column("run"),
               digest = good.Column("digest");
  EXPECT_THAT(refusal([&](Table& table) { table.rows[1][loss] = "1.5"; }),
              testing::HasSubstr("rows.csv:3: column valid_loss: '1.5', but "));
  EXPECT_THAT(refusal([&](Table& table) { table.rows[1][digest] = std::string(64, '0'); }),
              testing::HasSubstr("rows.csv:3: column digest: is not that of "));
  EXPECT_THAT(refusal([&](Table& table) {
                std::swap(table.rows[0][run], table.rows[2][run]);
                std::swap(table.rows[0][digest], table.rows[2][digest]);
              }),
              testing::HasSubstr("is another training: optimizer."));
  // A file of the run that was changed, or is missing.
  WriteCsv(rows_, good);
  const fs::path train = rows_.parent_path() / good.Text(0, "run") / "train.csv";
  const std::string bytes = Bytes(train);
  WriteFileAtomically(train, bytes + "\n");
  EXPECT_THAT(ErrorOf([&] { Judge(); }), testing::HasSubstr("column digest: is not that of "));
  fs::remove(train);
  EXPECT_THAT(ErrorOf([&] { Judge(); }), testing::HasSubstr("has no train.csv"));
  // Where the run directories are not, the results say so.
  fs::remove_all(directory_.Path() / "runs");
  EXPECT_THAT(Judge().summary, testing::HasSubstr("3 are not here"));
}

TEST_F(RunDirectories, CollectRefusesOtherTrainings) {
  const auto collected = [&](const std::vector<fs::path>& runs) {
    std::string message = ErrorOf([&] { Collect(runs); });
    EXPECT_FALSE(fs::exists(rows_)) << message;
    return message;
  };
  EXPECT_THAT(collected({runs_[0], runs_[0]}), testing::HasSubstr("is the training of"));
  EXPECT_THAT(collected({directory_.Path() / "nowhere"}), testing::HasSubstr("has no config.toml"));
  const fs::path other = directory_.Path() / "runs" / "other";
  fs::copy(runs_[0], other);
  WriteFileAtomically(
      other / "config.toml",
      WriteTrainConfig(ReadTrainConfig(other / "config.toml", {"schedule.peak=0.5"})));
  EXPECT_THAT(collected({other}),
              testing::AllOf(testing::HasSubstr("is none of the 3 trainings of these settings"),
                             testing::HasSubstr("schedule.peak is 0.5, not 0.01")));
  Collect({runs_[2]});
  EXPECT_EQ(ErrorOf([&] {
              WriteRowsTemplate(
                  experiment_, settings_, {.file = rows_, .configs = {}, .collect = {}});
            }),
            "--rows-template " + rows_.string() + ": exists; remove it or write another file");
  fs::remove(rows_);
  EXPECT_THAT(ErrorOf([&] {
                WriteRowsTemplate(
                    experiment_, settings_, {.file = rows_, .configs = {}, .collect = {runs_[2]}});
              }),
              testing::HasSubstr("the file of losses beside it, " + curves_.string() + ", exists"));
  EXPECT_FALSE(fs::exists(rows_));
}

// The digest can be computed without numsim.
TEST_F(RunDirectories, DigestIsThatOfSha256sum) {
  Collect({runs_[0]});
  std::string lines;
  for (const char* const name : {"config.toml", "summary.txt", "train.csv", "valid.csv"}) {
    lines += Sha256OfText(Bytes(runs_[0] / name)) + "  " + name + "\n";
  }
  const Table table = ReadCsv(rows_);
  std::string found;
  for (size_t row = 0; row < table.rows.size(); ++row) found += table.Text(row, "digest");
  EXPECT_EQ(found, Sha256OfText(lines));
}

}  // namespace
}  // namespace numsim::experiments
