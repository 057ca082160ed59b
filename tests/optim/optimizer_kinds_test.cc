// Tests every row of the table of optimisers, and docs/optimizers.md, which shows the table.
#include "numsim/optim/optimizer_kinds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/optim/optimizer.h"
#include "numsim/updates/step_sums.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

TEST(OptimizerKinds, NamesDifferAndReadBack) {
  std::set<std::string_view> names;
  for (const OptimizerKindRow& row : OptimizerKindRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(ParseOptimizerKind(row.name), OptimizerKind{&row});
    EXPECT_EQ(ToString(OptimizerKind{&row}), row.name);
  }
}

TEST(OptimizerKinds, TheDocsShowTheTable) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  std::ifstream file(std::filesystem::path(root) / "docs/optimizers.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string table =
      "<!-- table: optimisers -->\n| optimiser | state | direction |\n| --- | --- | --- |\n";
  for (const OptimizerKindRow& row : OptimizerKindRows()) {
    table += fmt::format("| `{}` {} | {} | {} |\n", row.name, row.source, row.state, row.direction);
  }
  EXPECT_THAT(page, HasSubstr("\n" + table + "<!-- end -->\n"))
      << "put this into docs/optimizers.md:\n"
      << table;
}

const std::vector<TensorShape> kShapes = {{"matrix", ParameterRole::kMatrix, 150, 401},
                                          {"table", ParameterRole::kEmbedding, 50, 7},
                                          {"gain", ParameterRole::kGain, 1, 9001}};

OptimizerConfig ConfigOf(const OptimizerKindRow& row, const char* moments, bool from_stored) {
  OptimizerConfig config;
  config.kind = {&row};
  config.m = config.v = ParseMomentFormat(moments);
  config.moment_filter = MomentFilter::kAll;
  config.update_from_stored = from_stored;
  return config;
}

template <typename Check>
void ForEachConfig(const Check& check) {
  for (const OptimizerKindRow& row : OptimizerKindRows()) {
    for (const char* const moments : {"fp32", "e5m2@tensor+sr"}) {
      for (const bool from_stored : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", row.name, moments, from_stored));
        check(ConfigOf(row, moments, from_stored));
      }
    }
  }
}

void ExpectAlike(Problem& a, Problem& b) {
  for (size_t i = 0; i < kShapes.size(); ++i) {
    EXPECT_TRUE(SameBits(a.Weights(i), b.Weights(i))) << kShapes[i].name;
  }
  const auto x = a.optimizer().Save(), y = b.optimizer().Save();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i].bytes, y[i].bytes) << x[i].name;
}

TEST(OptimizerKinds, ThreadsDoNotChangeBits) {
  const int threads = ThreadCount();
  ForEachConfig([](const OptimizerConfig& config) {
    Problem one(config, kShapes), four(config, kShapes);
    for (uint64_t step = 0; step < 3; ++step) {
      SetThreadCount(1);
      one.DrawnStep(1e-2, step);
      SetThreadCount(4);
      four.DrawnStep(1e-2, step);
    }
    ExpectAlike(one, four);
  });
  SetThreadCount(threads);
}

TEST(OptimizerKinds, RestoredTheyContinueBitForBit) {
  ForEachConfig([](const OptimizerConfig& config) {
    Problem first(config, kShapes), second(config, kShapes);
    for (uint64_t step = 0; step < 3; ++step) first.DrawnStep(1e-2, step);
    for (size_t i = 0; i < kShapes.size(); ++i) second.SetWeights(first.WeightValues(i), i);
    second.optimizer().Restore(first.optimizer().Save());
    for (uint64_t step = 3; step < 6; ++step) {
      first.DrawnStep(1e-2, step);
      second.DrawnStep(1e-2, step);
    }
    ExpectAlike(first, second);
  });
}

// A quadratic with its minimum at 0: each optimiser gets nearer, and reports its direction.
TEST(OptimizerKinds, TheyDescend) {
  for (const OptimizerKindRow& row : OptimizerKindRows()) {
    OptimizerConfig config = ConfigOf(row, "fp32", false);
    config.weight_decay = 0;
    Problem problem(config, kShapes);
    std::vector<double> before;
    for (size_t i = 0; i < kShapes.size(); ++i) before.push_back(SquaredSum(problem.Weights(i)));
    for (uint64_t step = 0; step < 20; ++step) {
      for (size_t i = 0; i < kShapes.size(); ++i) problem.SetGradient(problem.WeightValues(i), i);
      const OptimizerStep& taken = problem.optimizer().Step(2e-3, step);
      for (const TensorStep& tensor : taken.tensors) EXPECT_GT(tensor.update_rms, 0) << row.name;
    }
    for (size_t i = 0; i < kShapes.size(); ++i) {
      EXPECT_LT(SquaredSum(problem.Weights(i)), before[i]) << row.name << " " << kShapes[i].name;
    }
  }
}

}  // namespace
}  // namespace numsim
