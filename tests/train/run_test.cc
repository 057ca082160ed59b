#include "numsim/train/run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/io/csv.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/process_name.h"
#include "numsim/plot/figure.h"
#include "numsim/train/shared/run_files.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"
#include "tests/support/train_problem.h"
#include "tests/train/interrupted_run.h"

namespace numsim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class TrainRun : public IoTest {
 protected:
  // Trains in a folder of the test; with `stop_at` it is interrupted after that many steps.
  TrainRunResult Train(const TrainConfig& config,
                       std::string_view folder,
                       bool resume = false,
                       uint64_t stop_at = UINT64_MAX) {
    return TrainUntil(config, Path(folder), resume, stop_at);
  }

  // A process that is killed: what was in the directory after the last step before the kill, and
  // rows of which a part was written.
  void Kill(const TrainConfig& config, std::string_view folder, bool resume, uint64_t at) {
    TrainRunOptions options;
    options.out = Path(folder);
    options.resume = resume;
    struct Killed {};
    options.progress = [&](const Trainer& trainer, double, double) {
      if (trainer.steps_taken() == at) throw Killed();
    };
    EXPECT_THROW(RunTraining(config, options), Killed);
  }

  void AppendTo(std::string_view folder, std::string_view name, std::string_view text) {
    std::ofstream(Path(folder) / name, std::ios::binary | std::ios::app) << text;
  }

  std::string ErrorOfTraining(const TrainConfig& config, std::string_view folder, bool resume) {
    return ErrorOf([&] { Train(config, folder, resume); });
  }
};

// Measures under recipes of which some have a state.
TrainConfig RecipesConfig() {
  TrainConfig config = StatefulConfig();
  config.what_if.every = 3;
  for (const char* const recipe :
       {"e4m3fn delayed history:3", "e5m2 tensor", "e2m1fn block:16 sr"}) {
    config.what_if.recipes.push_back(ParseWhatIfRecipe(recipe));
  }
  return config;
}

void ExpectSameFiles(const fs::path& a, const fs::path& b) {
  const auto left = ReproducibleFiles(a), right = ReproducibleFiles(b);
  for (const auto& [name, text] : left) {
    EXPECT_NE(text, "no file") << name;
    EXPECT_TRUE(right.at(name) == text) << name << "\n"
                                        << text.substr(0, 2000) << "\nis not\n"
                                        << right.at(name).substr(0, 2000);
  }
}

TEST_F(TrainRun, WritesItsFiles) {
  const TrainRunResult result = Train(TinyConfig(), "a");
  EXPECT_EQ(result.status, TrainStatus::kFinished);
  EXPECT_EQ(result.steps, 12u);
  for (const std::string& file : result.files) EXPECT_TRUE(fs::exists(Path("a") / file)) << file;
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(Path("a"))) entries += entry.is_regular_file();
  EXPECT_EQ(entries, result.files.size());  // nothing else, no temporary file

  const Table train = ReadCsv(Path("a") / "train.csv");
  EXPECT_EQ(train.rows.size(), 12u);
  const Table valid = ReadCsv(Path("a") / "valid.csv");
  EXPECT_EQ(valid.rows.size(), 4u);
  EXPECT_EQ(valid.Number(3, "loss"), result.valid_loss);
  double last_ten = 0;
  for (size_t row = 2; row < 12; ++row) last_ten += train.Number(row, "loss");
  EXPECT_NEAR(result.train_loss, last_ten / 10, 1e-12);

  const std::string summary = Bytes(Path("a") / "summary.txt");
  EXPECT_EQ(summary, result.summary);
  for (const std::string& text : {std::string("finished"),
                                  std::string("12 of 12"),
                                  FormatCell(result.valid_loss),
                                  FormatCell(result.train_loss),
                                  std::string("entropy bound"),
                                  std::string("m 4, v 4, weights 4, together 12")}) {
    EXPECT_THAT(summary, HasSubstr(text));
  }
}

TEST_F(TrainRun, RecipesAddAFileAndLinesOfTheSummary) {
  const TrainRunResult result = Train(RecipesConfig(), "a");
  EXPECT_THAT(result.files, Contains("what_if.csv"));
  EXPECT_EQ(ReadCsv(Path("a") / "what_if.csv").rows.size(), 4u * 5 * 3 * 3);
  const std::string summary = Bytes(Path("a") / "summary.txt");
  EXPECT_THAT(summary, HasSubstr("what if                     e4m3fn delayed history:3\n"));
  EXPECT_THAT(summary, HasSubstr("\n  |G| < sqrt(3) noise"));
  Train(StatefulConfig(), "b");
  EXPECT_FALSE(fs::exists(Path("b") / "what_if.csv"));
  EXPECT_EQ(Bytes(Path("a") / "train.csv"), Bytes(Path("b") / "train.csv"));
  EXPECT_THAT(ErrorOfTraining(StatefulConfig(), "a", true),
              HasSubstr("what_if.every is now 50 and was 3"));
}

// A GEMM takes two operations for each weight and token, and a step three GEMMs for each weight.
TEST_F(TrainRun, SpeedCountsThreeGemmsForEachWeightAndStep) {
  const TrainSpeed speed = Train(TinyConfig(), "a").speed;
  constexpr double kSteps = 12, kTokens = 4 * 16;
  constexpr double kWeights = 16 * 48 + 16 * 16 + 3 * 16 * 64 + 16 * 256;  // qkv, out, MLP, head
  EXPECT_EQ(speed.steps, kSteps);
  EXPECT_EQ(speed.unit, "tokens");
  EXPECT_GT(speed.fastest, 0);
  EXPECT_LE(speed.fastest * kSteps, speed.seconds);
  EXPECT_NEAR(speed.tokens_per_second * speed.seconds, kSteps * kTokens, 1e-9 * kSteps * kTokens);
  const double giga = 3 * 2 * kTokens * kWeights * kSteps / 1e9;
  const double product_seconds = speed.Share(StepPhase::kProduct) * speed.seconds;
  EXPECT_NEAR(speed.layer_gflops * product_seconds, giga, 1e-9 * giga);
  // Measured apart from the training.
  // Any processor does ten million operations per second.
  EXPECT_GT(speed.library_gflops, 0.01);
  EXPECT_GT(speed.float32_gflops, 0.01);
}

TEST_F(TrainRun, ManifestHasTheTimesAndTheOptions) {
  const TrainSpeed speed = Train(TinyConfig(), "a").speed;
  const auto json = nlohmann::json::parse(Bytes(Path("a") / "manifest.json"));
  EXPECT_EQ(json["experiment"], "train");
  EXPECT_EQ(json["command"][1], "train");
  EXPECT_EQ(json["options"]["optimizer.beta1"], "0.9");
  EXPECT_EQ(json["seeds"][0], 7);
  const std::map<std::string, double> measured = {
      {"steps", 12},
      {"seconds", speed.seconds},
      {"seconds_of_fastest_step", speed.fastest},
      {"tokens_per_second", speed.tokens_per_second},
      {"layer_gflops", speed.layer_gflops},
      {"float32_gflops", speed.float32_gflops},
      {"library_gflops", speed.library_gflops},
      {"share_product", speed.profile[StepPhase::kProduct] / speed.seconds},
      {"share_telemetry", speed.profile[StepPhase::kTelemetry] / speed.seconds}};
  for (const auto& [key, value] : measured) {
    EXPECT_EQ(json["measurements"][key], FormatCell(value)) << key;
  }
  std::vector<std::string> outputs;
  for (const auto& output : json["outputs"]) outputs.push_back(output["path"]);
  EXPECT_EQ(outputs,
            (std::vector<std::string>{"config.toml",
                                      "checkpoint.safetensors",
                                      "train.csv",
                                      "valid.csv",
                                      "tensors.csv",
                                      "quantised.csv",
                                      "optimizer.csv",
                                      "summary.txt"}));
}

TEST_F(TrainRun, ManifestOfTheScalarBackendNamesNoSimdTarget) {
  const ExecutionState state;
  for (const std::string& backend : {AvailableBackends().front(), std::string("scalar")}) {
    ForceBackend(backend);
    TrainConfig config = TinyConfig();
    config.train.steps = 2;
    Train(config, backend);
    const auto json = nlohmann::json::parse(Bytes(Path(backend) / "manifest.json"));
    EXPECT_EQ(json["backend"], backend);
    EXPECT_EQ(json["simd_target"], backend == "scalar" ? "none" : backend);
  }
}

TEST_F(TrainRun, ThreadsDoNotChangeAByte) {
  const int threads = ThreadCount();
  SetThreadCount(1);
  Train(RecipesConfig(), "one");
  SetThreadCount(2);
  Train(RecipesConfig(), "two");
  SetThreadCount(threads);
  ExpectSameFiles(Path("one"), Path("two"));
}

TEST_F(TrainRun, InterruptedAndResumedItEndsInTheSameBytes) {
  for (const TrainConfig& config : {TinyConfig(), StatefulConfig(), RecipesConfig()}) {
    fs::remove_all(Path("whole"));
    Train(config, "whole");
    for (const uint64_t at : {1, 5, 6, 11}) {
      fs::remove_all(Path("parts"));
      const TrainRunResult first = Train(config, "parts", false, at);
      EXPECT_EQ(first.status, TrainStatus::kRunning);
      EXPECT_EQ(first.steps, at);
      EXPECT_FALSE(fs::exists(Path("parts") / "manifest.json"));
      EXPECT_EQ(Train(config, "parts", true).status, TrainStatus::kFinished);
      ExpectSameFiles(Path("whole"), Path("parts"));
    }
  }
}

// Deviations of the loss are from up to 128 losses before, so from losses before the checkpoint.
TEST_F(TrainRun, ResumedItsLossesDeviateAsInTheUninterrupted) {
  TrainConfig config = TinyConfig();
  config.train.steps = 150;
  config.checkpoint.every = 0;
  config.telemetry.tensors_every = 0;
  Train(config, "whole");
  const Table train = ReadCsv(Path("whole") / "train.csv");
  for (size_t row = 0; row < 150; ++row) {
    EXPECT_EQ(std::isfinite(train.Number(row, "loss_deviation")), row >= 16) << row;
  }
  for (const uint64_t at : {10, 17, 140}) {
    fs::remove_all(Path("parts"));
    EXPECT_EQ(Train(config, "parts", false, at).steps, at);
    Train(config, "parts", true);
    ExpectSameFiles(Path("whole"), Path("parts"));
  }
}

TEST_F(TrainRun, KilledAtAnyStepItEndsInTheSameBytes) {
  const TrainConfig config = RecipesConfig();  // checkpoints after steps 5 and 10
  Train(config, "whole");
  for (const uint64_t at : {1, 4, 5, 7, 10, 12}) {
    fs::remove_all(Path("parts"));
    Kill(config, "parts", false, at);
    AppendTo("parts", "train.csv", "7,448,5.");
    AppendTo("parts", "tensors.csv", "garbage\n\"");
    EXPECT_EQ(fs::exists(Path("parts") / "checkpoint.safetensors"), at > 5) << at;
    const TrainRunResult result = Train(config, "parts", true);
    EXPECT_EQ(result.status, TrainStatus::kFinished);
    EXPECT_EQ(result.speed.steps, 12 - (at > 10 ? 10u : at > 5 ? 5u : 0u));
    ExpectSameFiles(Path("whole"), Path("parts"));
  }
}

TEST_F(TrainRun, KilledAgainAndAgainItEndsInTheSameBytes) {
  TrainConfig config = StatefulConfig();
  config.checkpoint.every = 2;
  Train(config, "whole");
  Kill(config, "parts", false, 3);
  Kill(config, "parts", true, 6);
  AppendTo("parts", "valid.csv", "8");
  Kill(config, "parts", true, 5);
  EXPECT_EQ(Train(config, "parts", true, 9).status, TrainStatus::kRunning);
  Kill(config, "parts", true, 10);
  Train(config, "parts", true);
  ExpectSameFiles(Path("whole"), Path("parts"));
}

TEST_F(TrainRun, ResumingWhatHasEndedMakesTheSameFilesAgain) {
  Train(TinyConfig(), "a");
  const auto before = ReproducibleFiles(Path("a"));
  AppendTo("a", "train.csv", "more");
  fs::remove(Path("a") / "summary.txt");
  const TrainRunResult result = Train(TinyConfig(), "a", true);
  EXPECT_EQ(result.status, TrainStatus::kFinished);
  EXPECT_EQ(result.speed.steps, 0u);
  EXPECT_EQ(ReproducibleFiles(Path("a")), before);
}

TEST_F(TrainRun, MoreStepsContinueWhatHadFinished) {
  TrainConfig config = TinyConfig();
  Train(config, "a");
  config.train.steps = 15;
  EXPECT_EQ(Train(config, "a", true, 13).status, TrainStatus::kRunning);
  EXPECT_FALSE(fs::exists(Path("a") / "manifest.json"));
  EXPECT_FALSE(fs::exists(Path("a") / "summary.txt"));
  EXPECT_THAT(Bytes(Path("a") / "config.toml"), HasSubstr("steps = 15"));
  const TrainRunResult result = Train(config, "a", true);
  EXPECT_EQ(result.steps, 15u);
  EXPECT_EQ(ReadCsv(Path("a") / "train.csv").rows.size(), 15u);
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true),
                {"checkpoint.safetensors: ", "train.steps is 12 and was 15"});
}

TEST_F(TrainRun, DivergenceIsAResult) {
  TrainConfig config = TinyConfig();
  config.train.steps = 200;
  config.schedule.peak = 100;
  config.train.diverged_above = 1.5;
  const TrainRunResult result = Train(config, "a");
  EXPECT_EQ(result.status, TrainStatus::kDiverged);
  EXPECT_THAT(Bytes(Path("a") / "summary.txt"), HasSubstr("diverged: " + result.reason));
  EXPECT_TRUE(fs::exists(Path("a") / "manifest.json"));
  const TrainRunResult again = Train(config, "a", true);
  EXPECT_EQ(again.status, TrainStatus::kDiverged);
  EXPECT_EQ(again.reason, result.reason);
}

TEST_F(TrainRun, DirectoriesOfOtherRunsAreRefused) {
  Train(TinyConfig(), "a");
  const auto before = ReproducibleFiles(Path("a"));
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", false),
                {Path("a").string(), "holds config.toml", "--resume"});
  TrainConfig other = TinyConfig();
  other.train.seed = 8;
  ExpectMessage(ErrorOfTraining(other, "a", true),
                {Path("a").string(), "checkpoint.safetensors", "train.seed is now 8 and was 7"});
  EXPECT_EQ(ReproducibleFiles(Path("a")), before);
  EXPECT_TRUE(fs::exists(Path("a") / "manifest.json"));
}

TEST_F(TrainRun, ARunWithoutACheckpointIsOnlyBegunAgainAsItWas) {
  TrainConfig config = TinyConfig();
  config.checkpoint.every = 0;
  Kill(config, "a", false, 9);
  EXPECT_FALSE(fs::exists(Path("a") / "checkpoint.safetensors"));
  TrainConfig other = config;
  other.train.batch = 5;
  ExpectMessage(ErrorOfTraining(other, "a", true),
                {"config.toml: ", "train.batch is now 5 and was 4"});
  ExpectMessage(ErrorOfTraining(config, "a", false), {Path("a").string(), "holds config.toml"});
  EXPECT_EQ(Train(config, "a", true).status, TrainStatus::kFinished);
}

TEST_F(TrainRun, FilesOfUnknownOriginAreNotReplaced) {
  fs::create_directories(Path("a"));
  Put("a/train.csv", "mine");
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", false), {"holds train.csv"});
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true), {"holds train.csv but neither"});
  EXPECT_EQ(Bytes(Path("a") / "train.csv"), "mine");
  Put("file", "");
  ExpectMessage(ErrorOfTraining(TinyConfig(), "file", false), {Path("file").string()});
}

TEST_F(TrainRun, OneProcessAtATimeTrainsInADirectory) {
  fs::create_directories(Path("a"));
  const DirectoryLock lock(Path("a") / ".lock", DirectoryLock::IfHeld::kThrow);
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", false),
                {Path("a").string(), "another process is working there"});
}

TEST_F(TrainRun, WhatAKilledProcessLeftIsSwept) {
  ProcessName ended = ThisProcess();
  ended.process = 4194399;  // above the largest number of a process
  const std::string left = "a/.numsim-" + FileNamePartOf(ended);
  fs::create_directories(Path(left + "-figure-abc"));
  Put(left + "-0.tmp", "");
  Train(TinyConfig(), "a");
  EXPECT_FALSE(fs::exists(Path(left + "-figure-abc")));
  EXPECT_FALSE(fs::exists(Path(left + "-0.tmp")));
}

TEST_F(TrainRun, FilesOfOthersStay) {
  fs::create_directories(Path("a"));
  Put("a/notes.txt", "mine");
  EXPECT_EQ(Train(TinyConfig(), "a", true).status, TrainStatus::kFinished);
  EXPECT_EQ(Bytes(Path("a") / "notes.txt"), "mine");
}

// A mistyped directory must not train unnoticed.
TEST_F(TrainRun, ResumingWithoutACheckpointSaysSo) {
  TrainConfig config = TinyConfig();
  config.checkpoint.every = 0;
  const auto notices = [&](std::string_view folder, bool resume) {
    std::vector<std::string> lines;
    TrainRunOptions options;
    options.out = Path(folder);
    options.resume = resume;
    options.figures = false;
    options.notice = [&](const std::string& line) { lines.push_back(line); };
    EXPECT_EQ(RunTraining(config, options).status, TrainStatus::kFinished);
    return lines;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(notices("typo", true),
            Lines{fmt::format("no checkpoint in {}, which does not exist: starting at step 0",
                              Path("typo").string())});
  fs::create_directories(Path("empty"));
  const auto begins = [&](std::string_view folder) {
    return Lines{fmt::format("no checkpoint in {}: starting at step 0", Path(folder).string())};
  };
  EXPECT_EQ(notices("empty", true), begins("empty"));
  Kill(config, "killed", false, 9);
  EXPECT_EQ(notices("killed", true), begins("killed"));
  EXPECT_EQ(notices("killed", true), Lines());  // it has ended, and has a checkpoint
  EXPECT_EQ(notices("new", false), Lines());
}

TEST_F(TrainRun, BrokenCheckpointsAreErrorsThatNameTheFile) {
  Train(TinyConfig(), "a", false, 6);
  const fs::path path = Path("a") / "checkpoint.safetensors";
  const std::string bytes = Bytes(path);
  const auto error_of = [&](std::string_view content) {
    Put("a/checkpoint.safetensors", content);
    return ErrorOfTraining(TinyConfig(), "a", true);
  };
  ExpectMessage(error_of(bytes.substr(0, bytes.size() - 3)), {path.string()});
  ExpectMessage(error_of(""), {path.string()});
  ExpectMessage(error_of("something else altogether"), {path.string()});
  EXPECT_EQ(error_of(bytes), "no error");
}

TEST_F(TrainRun, CsvsThatAreShorterThanTheCheckpointKnowsAreErrors) {
  Train(TinyConfig(), "a", false, 6);
  const std::string text = Bytes(Path("a") / "train.csv");
  Put("a/train.csv", text.substr(0, text.size() - 1));
  AppendTo("a", "valid.csv", "stays");
  const std::string valid = Bytes(Path("a") / "valid.csv");
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true),
                {(Path("a") / "train.csv").string(), fmt::format("had {}", text.size())});
  EXPECT_EQ(Bytes(Path("a") / "valid.csv"), valid);
  fs::remove(Path("a") / "train.csv");
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true), {(Path("a") / "train.csv").string()});
}

// A digit of a row that a resumed run would keep.
TEST_F(TrainRun, CsvsThatWereChangedAreErrors) {
  Train(TinyConfig(), "a", false, 6);
  std::string text = Bytes(Path("a") / "train.csv");
  const size_t digit = text.find_first_of("123456", text.find('\n') + 8);
  text[digit] = static_cast<char>(text[digit] + 1);
  Put("a/train.csv", text);
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true),
                {(Path("a") / "train.csv").string(), "have been changed since"});
  EXPECT_EQ(Bytes(Path("a") / "train.csv"), text);
}

TEST_F(TrainRun, CsvsOfOtherColumnsAreErrors) {
  Train(TinyConfig(), "a", false, 6);
  std::string text = Bytes(Path("a") / "valid.csv");
  text.replace(text.find("zero_shot"), 9, "unknown__");
  Put("a/valid.csv", text);
  AppendTo("a", "train.csv", "stays");
  const std::string train = Bytes(Path("a") / "train.csv");
  ExpectMessage(ErrorOfTraining(TinyConfig(), "a", true),
                {(Path("a") / "valid.csv").string(), "columns"});
  EXPECT_EQ(Bytes(Path("a") / "train.csv"), train);
}

TEST_F(TrainRun, ProgressComesAfterEveryStep) {
  std::vector<uint64_t> steps;
  TrainRunOptions options;
  options.out = Path("a");
  options.figures = false;
  options.progress = [&](const Trainer& trainer, double tokens_per_second, double seconds_left) {
    steps.push_back(trainer.steps_taken());
    EXPECT_GT(tokens_per_second, 0);
    EXPECT_EQ(seconds_left == 0, trainer.steps_taken() == 12);
  };
  RunTraining(TinyConfig(), options);
  EXPECT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps.front(), 1u);
  EXPECT_EQ(steps.back(), 12u);
}

// The points of the first curve of that label in a gnuplot script.
struct ScriptCurve {
  std::vector<double> x, y;
};
ScriptCurve CurveIn(const std::string& script, const std::string& label) {
  ScriptCurve curve;
  std::istringstream lines(
      script.substr(std::min(script.find("# " + label + "\n"), script.size())));
  std::string line;
  std::getline(lines, line);  // the label
  std::getline(lines, line);  // $NAME << EOD
  while (std::getline(lines, line) && line != "EOD") {
    const size_t blank = line.find(' ');
    curve.x.push_back(std::stod(line));
    curve.y.push_back(std::stod(line.substr(blank)));
  }
  return curve;
}

std::vector<double> ColumnOf(const Table& table, std::string_view column) {
  std::vector<double> values;
  for (size_t row = 0; row < table.rows.size(); ++row) values.push_back(table.Number(row, column));
  return values;
}

TEST_F(TrainRun, CurvesAreDrawnFromWhatIsInTheCsvs) {
  TrainRunOptions options;
  options.out = Path("a");
  const TrainRunResult result = RunTraining(StatefulConfig(), options);
  EXPECT_THAT(result.files, Contains("loss.gp"));
  EXPECT_THAT(result.files, Contains("optimizer.gp"));
  EXPECT_EQ(fs::exists(Path("a") / "loss.svg"), !GnuplotVersion().empty());
  const std::string script = Bytes(Path("a") / "loss.gp");
  const Table train = ReadCsv(Path("a") / "train.csv"), valid = ReadCsv(Path("a") / "valid.csv");
  const std::vector<double> loss = ColumnOf(train, "loss");
  EXPECT_EQ(CurveIn(script, "training").x, ColumnOf(train, "step"));
  EXPECT_EQ(CurveIn(script, "training").y, loss);
  EXPECT_EQ(CurveIn(script, "validation").x, ColumnOf(valid, "step"));
  EXPECT_EQ(CurveIn(script, "validation").y, ColumnOf(valid, "loss"));
  const ScriptCurve mean = CurveIn(script, "training, mean of 10 rows");
  EXPECT_EQ(mean.x, ColumnOf(train, "step"));
  ASSERT_EQ(mean.y.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const size_t begin = i < 10 ? 0 : i - 9;
    double sum = 0;
    for (size_t j = begin; j <= i; ++j) sum += loss[j];
    EXPECT_NEAR(mean.y[i], sum / static_cast<double>(i + 1 - begin), 1e-12) << i;
  }
  const double bound = *OpenData(StatefulConfig().data)->EntropyBound();
  EXPECT_EQ(CurveIn(script, "entropy bound").x, (std::vector<double>{0, 11}));
  EXPECT_EQ(CurveIn(script, "entropy bound").y, (std::vector<double>{bound, bound}));
}

TEST_F(TrainRun, CurvesOfTheOptimizerAreTakenOverItsTensors) {
  TrainRunOptions options;
  options.out = Path("a");
  RunTraining(StatefulConfig(), options);
  const std::string script = Bytes(Path("a") / "optimizer.gp");
  for (const char* const title : {"First moment in e4m3fn", "Second moment in dynamic"}) {
    EXPECT_THAT(script, HasSubstr(title));
  }
  // Each curve of the first panel has a style of its own.
  for (const char* const line :
       {"$curve_1_1 using 1:2 with lines linecolor rgb '#0072B2' dashtype 1",
        "$curve_1_2 using 1:2 with lines linecolor rgb '#D55E00' dashtype (12,4)"}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
  // The first panel shows RMS_t.
  const Table table = ReadCsv(Path("a") / "optimizer.csv");
  std::map<double, std::vector<double>> steps;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    steps[table.Number(row, "step")].push_back(table.Number(row, "rms"));
  }
  const ScriptCurve mean = CurveIn(script, "mean over tensors");
  const ScriptCurve largest = CurveIn(script, "largest over tensors");
  ASSERT_EQ(mean.y.size(), steps.size());
  ASSERT_EQ(largest.y.size(), steps.size());
  size_t i = 0;
  for (const auto& [step, values] : steps) {
    double sum = 0;
    for (const double value : values) sum += value;
    EXPECT_EQ(mean.x[i], step);
    EXPECT_NEAR(mean.y[i], sum / static_cast<double>(values.size()), 1e-12 * sum);
    EXPECT_EQ(largest.x[i], step);
    EXPECT_EQ(largest.y[i], *std::max_element(values.begin(), values.end()));
    ++i;
  }
}

TEST(TrainSpeedText, NamesRatesAndShares) {
  TrainSpeed speed;
  EXPECT_EQ(Describe(speed), "");
  speed.steps = 10;
  speed.seconds = 2;
  speed.tokens_per_second = 640;
  speed.profile[StepPhase::kProduct] = 1.5;
  speed.layer_gflops = 12.34;
  speed.float32_gflops = 50;
  speed.library_gflops = 70;
  const std::string text = Describe(speed);
  for (const char* const part : {"10 steps in 2.0 s, 640 tokens/s",
                                 "GEMMs of linear layers 12.3 GFLOP/s",
                                 "50.0 in fixed order, 70.0 by",
                                 "product 75.0 %",
                                 "other 25.0 %"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace numsim
