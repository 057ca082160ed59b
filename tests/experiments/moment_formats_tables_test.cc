// Tests what `moment-formats` derives from its tables: gaps, memory.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "tests/experiments/moment_formats_fixture.h"
#include "tests/support/special_values.h"

namespace numsim::experiments::moment_formats {
namespace {

class PairTables : public MomentTables {
 protected:
  double Number(const std::string& m, const std::string& v, const char* column) const {
    return Pairs().Number(RowOf(m, v), column);
  }
};

TEST_F(PairTables, GapsArePairedBySeed) {
  Add({"fp32", "fp32", 5, 1}, "7");
  Add({"fp32", "fp32", 5, 2}, "8");
  Add({"e4m3fn", "e5m2", 5, 2.25}, "8");
  Add({"e4m3fn", "e5m2", 5, 1.25}, "7");
  Finish();
  EXPECT_EQ(Number("e4m3fn", "e5m2", "seeds"), 2);
  EXPECT_EQ(Number("e4m3fn", "e5m2", "valid_loss"), 1.75);
  // Student's t of one degree of freedom: 12.7062 standard errors of 0.5.
  EXPECT_NEAR(Number("e4m3fn", "e5m2", "valid_loss_low"), 1.75 - 6.3531, 1e-3);
  EXPECT_NEAR(Number("e4m3fn", "e5m2", "valid_loss_high"), 1.75 + 6.3531, 1e-3);
  EXPECT_EQ(Number("e4m3fn", "e5m2", "gap"), 0.25);
  EXPECT_EQ(Number("e4m3fn", "e5m2", "gap_low"), 0.25);
  EXPECT_EQ(Number("e4m3fn", "e5m2", "gap_high"), 0.25);
}

TEST_F(PairTables, IntervalsOfGapsAreStudentsT) {
  const double gaps[] = {0, 0.25, 0.5};
  for (int seed = 0; seed < 3; ++seed) {
    Add({"fp32", "fp32", 8, 1.0 + seed}, FormatCell(seed));
    Add({"bf16", "bf16", 8, 1.0 + seed + gaps[seed]}, FormatCell(seed));
  }
  Finish();
  // Two degrees of freedom: 4.30265 standard errors of 0.25 / sqrt(3).
  EXPECT_EQ(Number("bf16", "bf16", "gap"), 0.25);
  EXPECT_NEAR(Number("bf16", "bf16", "gap_low"), 0.25 - 0.62103, 1e-4);
  EXPECT_NEAR(Number("bf16", "bf16", "gap_high"), 0.25 + 0.62103, 1e-4);
}

TEST_F(PairTables, OneSeedHasNoIntervals) {
  Add({"fp32", "fp32", 5, 1});
  Add({"bf16", "bf16", 5, 1.5});
  Finish();
  EXPECT_EQ(Number("bf16", "bf16", "gap"), 0.5);
  for (const char* const column : {"valid_loss_low", "valid_loss_high", "gap_low", "gap_high"}) {
    EXPECT_TRUE(std::isnan(Number("bf16", "bf16", column))) << column;
  }
}

TEST_F(PairTables, BaselineIsComparedWithItself) {
  Add({"fp32", "fp32", 5, 1}, "0");
  Add({"fp32", "fp32", 5, 3}, "1");
  Finish();
  EXPECT_EQ(Number("fp32", "fp32", "gap"), 0);
  EXPECT_EQ(Number("fp32", "fp32", "gap_high"), 0);
}

TEST_F(PairTables, ADivergedTrainingIsNoBetterThanItsStart) {
  for (const char* const seed : {"0", "1", "2"}) {
    const bool diverges = seed[0] == '1';
    Add({"fp32", "fp32", 5, 1}, seed);
    Add({"e5m2", "e4m3fn", 5, diverges ? kInfinity : 1, diverges ? "diverged" : "finished"}, seed);
  }
  Finish();
  EXPECT_EQ(Number("e5m2", "e4m3fn", "diverged"), 1);
  EXPECT_EQ(Number("e5m2", "e4m3fn", "seeds"), 3);
  EXPECT_EQ(Number("e5m2", "e4m3fn", "valid_loss"), kInfinity);
  EXPECT_NEAR(Number("e5m2", "e4m3fn", "gap"), 4.0 / 3, 1e-12);
}

TEST_F(PairTables, FlushedIsTheMeanOverTheTrainingAndSeeds) {
  Add({"fp32", "fp32", 5, 1}, "0");
  Add({"fp32", "fp32", 5, 1}, "1");
  Add({"e5m2", "e4m3fn", 5, 2}, "0", {0, 0.5});
  Add({"e5m2", "e4m3fn", 5, 2}, "1", {1, 0.5, 0.75});
  Add({"e5m2", "e5m2", 5, 2}, "0", {});
  Finish();
  EXPECT_EQ(Number("fp32", "fp32", "v_flushed"), 0);
  EXPECT_EQ(Number("e5m2", "e4m3fn", "v_flushed"), 0.5);
  EXPECT_TRUE(std::isnan(Number("e5m2", "e5m2", "v_flushed")));
}

TEST_F(PairTables, BytesAreOfBothMoments) {
  Add({"fp32", "fp32", 5, 1});
  Add({"e5m2", "fp16@tensor", 5, 2, "finished", 1.25, 2.5});
  Finish();
  EXPECT_EQ(Number("e5m2", "fp16@tensor", "bytes"), 3.75);
}

TEST_F(PairTables, PairsKeepTheOrderOfTheTable) {
  Add({"fp32", "fp32", 5, 1});
  Add({"e5m2", "e4m3fn", 5, 1});
  Add({"bf16", "bf16", 5, 1});
  Finish();
  ASSERT_EQ(Pairs().rows.size(), 3u);
  EXPECT_EQ(Pairs().Text(1, "v"), "e4m3fn");
  EXPECT_EQ(Pairs().Text(2, "v"), "bf16");
}

// E4M3: 2^-10 / 448; E5M2: 2^-17 / 57344.
TEST(PredictedEpsilon, FollowsFromTheSpreadOfTheWorstMatrix) {
  Table spread{{"role", "step_lr", "sqrt_v_max", "weight_rms"}};
  spread.rows = {{"embedding", 0.003, 0.002, 0.02},
                 {"embedding", 0.0001, 1, 0.02},  // in the warm-up
                 {"matrix", 0.003, 0.2, 0.04}};
  const double e4m3 = std::sqrt(0x1p-10 / 448), e5m2 = std::sqrt(0x1p-17 / 57344);
  EXPECT_NEAR(PredictedEpsilon(spread, "e4m3fn", "fresh", 0.6), 0.5 * 0.005 * e4m3, 1e-15);
  EXPECT_NEAR(PredictedEpsilon(spread, "e4m3fn", "stored", 0.6), 0.5 * 0.015 * e4m3, 1e-15);
  EXPECT_NEAR(PredictedEpsilon(spread, "e5m2", "stored", 0), 0.015 * e5m2, 1e-15);
  EXPECT_TRUE(std::isnan(PredictedEpsilon(spread, "e4m3fn@block:128", "fresh", 0.9)));
  spread.rows.clear();
  EXPECT_TRUE(std::isnan(PredictedEpsilon(spread, "e4m3fn", "fresh", 0.9)));
}

class Memory : public MomentTables {
 protected:
  // The only row of that pair.
  size_t MemoryRow(const std::string& m,
                   const std::string& v,
                   const std::string& master,
                   int devices) const {
    const Table& table = tables_.at("memory");
    size_t found = table.rows.size();
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (table.Text(r, "m") != m || table.Text(r, "v") != v) continue;
      if (table.Text(r, "master") != master || table.Number(r, "devices") != devices) continue;
      EXPECT_EQ(found, table.rows.size()) << "twice";
      found = r;
    }
    EXPECT_LT(found, table.rows.size());
    return found;
  }
  double Number(size_t row, const char* column) const {
    return tables_.at("memory").Number(row, column);
  }
};

TEST_F(Memory, OfThePapersPairIsOneAndOneAndTwoBytesOverTheDevices) {
  Add({"fp32", "fp32", 5, 1});
  Add({"e4m3fn", "e5m2", 5, 1});
  Finish({{"billions", "7"}});
  const std::map<int, double> bytes = {{1, 8}, {2, 6}, {4, 5}, {8, 4.5}};
  const std::map<int, double> fp32 = {{1, 16}, {2, 10}, {4, 7}, {8, 5.5}};
  for (const auto& [devices, expected] : bytes) {
    const size_t row = MemoryRow("e4m3fn", "e5m2", "fp16", devices);
    EXPECT_EQ(Number(row, "m_bytes"), 1);
    EXPECT_EQ(Number(row, "v_bytes"), 1);
    EXPECT_EQ(Number(row, "master_bytes"), 2);
    EXPECT_DOUBLE_EQ(Number(row, "gigabytes"), 7 * expected) << devices;
    EXPECT_DOUBLE_EQ(Number(row, "saving"), 1 - expected / fp32.at(devices)) << devices;
    EXPECT_EQ(Number(MemoryRow("fp32", "fp32", "fp32", devices), "saving"), 0) << devices;
    EXPECT_DOUBLE_EQ(Number(MemoryRow("fp32", "fp32", "fp32", devices), "gigabytes"),
                     7 * fp32.at(devices));
  }
  EXPECT_DOUBLE_EQ(Number(MemoryRow("e4m3fn", "e5m2", "fp32", 1), "saving"), 6.0 / 16);
  EXPECT_DOUBLE_EQ(Number(MemoryRow("fp32", "fp32", "fp16", 1), "saving"), 2.0 / 16);
  EXPECT_EQ(tables_.at("memory").rows.size(), 16u);
}

// float32 scales: one a block, of COAT two; one a tensor, which a large tensor does not feel.
TEST_F(Memory, CountsTheScalesOfBlocks) {
  Add({"fp32", "fp32", 5, 1});
  const std::map<std::string, double> bytes = {{"bf16", 2},
                                               {"fp16@tensor", 2},
                                               {"e4m3", 1},
                                               {"e5m2+sr", 1},
                                               {"e4m3fn@none", 1},
                                               {"e4m3fn@block", 1 + 4.0 / 128},
                                               {"e5m2@block:32", 1 + 4.0 / 32},
                                               {"bf16@block:100", 2 + 4.0 / 100},
                                               {"e4m3fn@coat", 1 + 8.0 / 128},
                                               {"e5m2@coat:64+sr", 1 + 8.0 / 64},
                                               {"dynamic", 1 + 4.0 / 256},
                                               {"dynamic:64", 1 + 4.0 / 64},
                                               {"e2m1fn", 0.5},
                                               {"e2m1fn@block:16", 0.5 + 4.0 / 16}};
  for (const auto& [storage, expected] : bytes) Add({storage, "fp32", 5, 1});
  Finish();
  for (const auto& [storage, expected] : bytes) {
    const size_t row = MemoryRow(storage, "fp32", "fp32", 2);
    EXPECT_DOUBLE_EQ(Number(row, "m_bytes"), expected) << storage;
    EXPECT_DOUBLE_EQ(Number(row, "gigabytes"), 6.74 * (4 + (expected + 8) / 2)) << storage;
  }
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
