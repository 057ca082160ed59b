// The experiment `moment-formats`: the training of a pair against the trainer itself, a golden
// CSV, which is that of all trainings, and the rows of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/moment_formats_fixture.h"
#include "tests/experiments/stops.h"

namespace numsim::experiments::moment_formats {
namespace {

// The tables of one training.
class MomentTraining : public testing::Test {
 protected:
  void Train(const MomentPair& pair, const Overrides& overrides = kTiny, uint64_t seed = 0) {
    const Regime regime{.lr = overrides.at("lr")};
    const Arm arm = ArmOf(pair, regime);
    Trial trial{.label = "", .seed = seed, .parameters = {}};
    const study::Study study = MomentFormatsStudy();
    for (size_t i = 0; i < arm.size(); ++i) trial.parameters[study.axes[i].name] = arm[i];
    const Rows rows = MomentFormats().run(SettingsWith(overrides), trial);
    tables_.clear();
    for (const TableSpec& spec : MomentFormats().tables) {
      if (spec.derived) continue;
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
      if (rows.contains(spec.name)) table.rows = rows.at(spec.name);
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
    }
  }
  const Table& Curves() const { return tables_.at("curves"); }
  const Table& Flushed() const { return tables_.at("flushed"); }
  const Table& Final() const { return tables_.at("final"); }
  static std::vector<double> Values(const Table& table, const char* column) {
    std::vector<double> values;
    for (size_t r = 0; r < table.rows.size(); ++r) values.push_back(table.Number(r, column));
    return values;
  }
  static double Largest(const Table& table, const char* column) {
    const std::vector<double> values = Values(table, column);
    return *std::max_element(values.begin(), values.end());
  }

  Tables tables_;
};

TEST_F(MomentTraining, BaselineLosesNothingAndLearns) {
  Train(kBaseline, With(kTiny, "steps", "100"));
  for (const char* const column : {"m_flushed", "v_flushed", "m_error", "v_error"}) {
    EXPECT_EQ(Largest(Flushed(), column), 0) << column;
  }
  EXPECT_GT(Largest(Flushed(), "update_max"), 0);
  EXPECT_NEAR(Final().Number(0, "start_loss"), std::log(256), 0.1);
  EXPECT_LT(Final().Number(0, "valid_loss"), 4);
  EXPECT_GT(Final().Number(0, "valid_loss"), Final().Number(0, "entropy_bound"));
  EXPECT_GT(Final().Number(0, "entropy_bound"), 0.1);
  EXPECT_EQ(Final().Number(0, "m_bytes"), 4);
}

// Width 16, one layer: embedding and head 256 x 16; queries, keys and values in one matrix 48 x 16,
// and what they become 16 x 16; of the MLP both inputs in one matrix 128 x 16, and its output
// 16 x 64. Three norms of 16 keep float32. A scale for each matrix.
TEST_F(MomentTraining, BytesAreThoseOfTheWholeModel) {
  Train({"e4m3fn", "bf16"});
  const double matrices = 2 * 256 * 16 + 4 * 16 * 16 + 3 * 64 * 16, norms = 3 * 16;
  EXPECT_DOUBLE_EQ(Final().Number(0, "m_bytes"),
                   (matrices + 6 * 4 + 4 * norms) / (matrices + norms));
  EXPECT_DOUBLE_EQ(Final().Number(0, "v_bytes"), (2 * matrices + 4 * norms) / (matrices + norms));
}

// v ranges over more than the 2^18 of E4M3 with its subnormals: the claim's mechanism.
TEST_F(MomentTraining, E4m3FlushesMoreOfVThanE5m2) {
  Train({"fp32", "e4m3fn"});
  const double e4m3 = Largest(Flushed(), "v_flushed");
  EXPECT_EQ(Largest(Flushed(), "m_flushed"), 0);
  EXPECT_GT(Largest(Flushed(), "v_error"), 0.01);
  Train({"fp32", "e5m2"});
  const double e5m2 = Largest(Flushed(), "v_flushed");
  EXPECT_GT(e4m3, 0.1);
  EXPECT_LT(e5m2, 0.5 * e4m3);
  Train({"e4m3fn", "bf16"});
  EXPECT_EQ(Largest(Flushed(), "v_flushed"), 0);
  EXPECT_GT(Largest(Flushed(), "m_flushed"), 0);
}

// The largest v is at least the mean square of the last gradients times 1 - beta2.
TEST_F(MomentTraining, TheSpreadIsThatOfTheBaselinesMoments) {
  Train(kBaseline);
  const Table& spread = tables_.at("spread");
  ASSERT_EQ(spread.rows.size(), 6u);  // matrices
  size_t embeddings = 0;
  for (size_t r = 0; r < spread.rows.size(); ++r) {
    embeddings += spread.Text(r, "role") == "embedding" ? 1 : 0;
    EXPECT_GT(spread.Number(r, "sqrt_v_max"), 1e-6);
    EXPECT_LT(spread.Number(r, "sqrt_v_max"), 1);
    EXPECT_GT(spread.Number(r, "weight_rms"), 1e-3);
    EXPECT_LT(spread.Number(r, "weight_rms"), 0.3);
  }
  EXPECT_EQ(embeddings, 1u);
  Train({"fp32", "e4m3fn"});
  EXPECT_TRUE(tables_.at("spread").rows.empty());
}

TEST_F(MomentTraining, DivergenceIsARowAndNotAnError) {
  Train(kBaseline, With(With(kTiny, "lr", "100"), "clip", "0"));
  EXPECT_EQ(Final().Text(0, "status"), "diverged");
  EXPECT_EQ(Final().Text(0, "valid_loss"), "inf");
  EXPECT_LT(Final().Number(0, "steps"), 20);
  EXPECT_LE(Curves().Number(Curves().rows.size() - 1, "step"), Final().Number(0, "steps") + 1);
  EXPECT_LE(Flushed().Number(Flushed().rows.size() - 1, "step"), Final().Number(0, "steps"));
}

// Runs, with their files side by side.
class MomentRuns : public testing::Test {
 protected:
  ~MomentRuns() override { SetThreadCount(threads_before_); }

  RunOptions OptionsFor(const std::string& out) const {
    RunOptions options;
    options.settings = SettingsWith(kTiny);
    options.out = directory_.Path() / out;
    return options;
  }
  static Experiment Plain() {
    Experiment experiment = MomentFormats();
    experiment.figures = nullptr;  // gnuplot takes longer than everything else
    return experiment;
  }
  std::map<std::string, std::string> FilesOf(const std::string& out) const {
    std::map<std::string, std::string> files;
    for (const TableSpec& spec : MomentFormats().tables) {
      files[spec.name] = Bytes(directory_.Path() / out / (spec.name + ".csv"));
      EXPECT_FALSE(files[spec.name].empty()) << spec.name;
    }
    files["summary"] = Bytes(directory_.Path() / out / "summary.txt");
    return files;
  }

  const TemporaryDirectory directory_;
  const int threads_before_ = ThreadCount();
};

TEST_F(MomentRuns, EqualTheGoldenCsvOnAnyNumberOfThreads) {
  for (const int threads : {1, 2}) {
    SetThreadCount(threads);
    experiments::Run(Plain(), OptionsFor(std::to_string(threads)));
  }
  EXPECT_EQ(FilesOf("1"), FilesOf("2"));
  EXPECT_EQ(FilesOf("1").at("final"), GoldenCsv("moment-formats-final"));
}

TEST_F(MomentRuns, MergedShardsEqualAWholeRun) {
  experiments::Run(Plain(), OptionsFor("whole"));
  for (const int shard : {0, 1}) {
    RunOptions options = OptionsFor("shard" + std::to_string(shard));
    options.shard_index = shard;
    options.shard_count = 2;
    EXPECT_EQ(experiments::Run(Plain(), options).trials_run, 3u);
  }
  const std::filesystem::path path = directory_.Path();
  Merge(Plain(), {path / "shard1", path / "shard0"}, path / "merged", {"numsim"});
  EXPECT_EQ(FilesOf("merged"), FilesOf("whole"));
}

TEST(MomentFormats, StopsChangeNothing) {
  const Settings settings = SettingsWith(kTiny);
  ExpectStopsChangeNothing(MomentFormats(), settings, MomentFormats().trials(settings).front());
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
