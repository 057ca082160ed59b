#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "numsim/data/internal/sources.h"

namespace numsim {
namespace {

// Checks what an epoch promises; returns how often each example takes part.
std::vector<int> CheckEpoch(const std::vector<int32_t>& concepts, size_t count, uint64_t epoch) {
  const DistinctBatches batches(concepts, count);
  const std::vector<uint32_t> order = batches.Order(5, epoch);
  EXPECT_EQ(order.size(), batches.Batches() * count);
  std::vector<int> times(concepts.size());
  for (size_t b = 0; b < batches.Batches(); ++b) {
    std::set<int32_t> seen;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t example = order[b * count + i];
      ++times.at(example);
      EXPECT_TRUE(seen.insert(concepts[example]).second) << "batch " << b;
    }
  }
  for (const int n : times) EXPECT_LE(n, 1);
  return times;
}

// The largest number of batches, by trying: every concept gives at most that many examples.
size_t MostBatches(const std::vector<int32_t>& concepts, size_t count) {
  std::map<int32_t, size_t> sizes;
  for (const int32_t c : concepts) ++sizes[c];
  size_t most = 0;
  for (size_t b = 1; b <= concepts.size(); ++b) {
    size_t usable = 0;
    for (const auto& [c, size] : sizes) usable += std::min(size, b);
    if (usable >= b * count) most = b;
  }
  return most;
}

TEST(DistinctBatches, NoConceptOccursTwiceInABatch) {
  const std::vector<std::vector<int32_t>> sets = {
      {0},
      {0, 0, 0, 0},
      {0, 1, 2, 3, 4, 5, 6},
      {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3},
      {7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3, 4},
      {1, 0, 1, 0, 1, 2, 2, 1, 0, 5, 5, 5, 5, 6},
  };
  for (const std::vector<int32_t>& concepts : sets) {
    for (size_t count = 1; count <= 5; ++count) {
      for (const uint64_t epoch : {0, 1, 2}) CheckEpoch(concepts, count, epoch);
      EXPECT_EQ(DistinctBatches(concepts, count).Batches(), MostBatches(concepts, count));
    }
  }
}

TEST(DistinctBatches, EveryExampleTakesPartWhereThatIsPossible) {
  std::vector<int32_t> concepts;
  for (int32_t i = 0; i < 96; ++i) concepts.push_back(i % 37);
  EXPECT_EQ(CheckEpoch(concepts, 8, 0), std::vector<int>(96, 1));
  // One too many for whole batches: another one is left out from time to time.
  concepts.push_back(3);
  std::set<std::vector<int>> left_out;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const std::vector<int> times = CheckEpoch(concepts, 8, epoch);
    EXPECT_EQ(std::count(times.begin(), times.end(), 0), 1);
    left_out.insert(times);
  }
  EXPECT_GT(left_out.size(), 10u);
}

TEST(DistinctBatches, AFrequentConceptTakesTurns) {
  std::vector<int32_t> concepts(20, 0);
  for (int32_t i = 1; i <= 6; ++i) concepts.push_back(i);
  // Batches of two: six of the 20.
  std::vector<int> times(26);
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const std::vector<int> now = CheckEpoch(concepts, 2, epoch);
    for (size_t i = 0; i < now.size(); ++i) times[i] += now[i];
  }
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(times[i], 60, 30) << i;
}

TEST(DistinctBatches, EpochsAndSeedsDiffer) {
  std::vector<int32_t> concepts(100);
  for (int32_t i = 0; i < 100; ++i) concepts[static_cast<size_t>(i)] = i;
  const DistinctBatches batches(concepts, 10);
  EXPECT_NE(batches.Order(1, 0), batches.Order(1, 1));
  EXPECT_NE(batches.Order(1, 0), batches.Order(2, 0));
  EXPECT_EQ(batches.Order(1, 0), batches.Order(1, 0));
}

}  // namespace
}  // namespace numsim
