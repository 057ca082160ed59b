#include "numsim/data/internal/shuffle.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace numsim {
namespace {

std::vector<uint64_t> Order(uint64_t seed, uint64_t epoch, uint64_t n) {
  const EpochShuffle shuffle(seed, epoch, n);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < n; ++i) order.push_back(shuffle(i));
  return order;
}

TEST(EpochShuffle, VisitsEachExampleOnce) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 9, 10, 63, 64, 65, 1000, 4097}) {
    for (const uint64_t epoch : {0, 1, 77}) {
      std::vector<int> seen(n);
      for (const uint64_t i : Order(5, epoch, n)) ++seen.at(i);
      for (const int times : seen) EXPECT_EQ(times, 1) << n;
    }
  }
}

TEST(EpochShuffle, BitsStayWhatTheyAre) {
  EXPECT_EQ(Order(7, 3, 8), (std::vector<uint64_t>{0, 6, 1, 2, 4, 3, 7, 5}));
  EXPECT_EQ(EpochShuffle(7, 3, uint64_t{1} << 62)(12345), 605406401025094033u);
}

TEST(EpochShuffle, SeedAndEpochMakeOtherOrders) {
  EXPECT_NE(Order(1, 0, 100), Order(1, 1, 100));
  EXPECT_NE(Order(1, 0, 100), Order(2, 0, 100));
  EXPECT_NE(Order(1, 0, 100), Order(1, uint64_t{1} << 32, 100));
  EXPECT_NE(Order(1, 0, 100), Order(uint64_t{1} << 63 | 1, 0, 100));
}

// Chi-square of counts that are expected to be equal.
double ChiSquare(const std::vector<double>& counts, double expected) {
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(EpochShuffle, EveryPlaceHoldsEveryExampleEquallyOften) {
  constexpr uint64_t kN = 7, kEpochs = 4000;
  std::vector<double> counts(kN * kN);
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<uint64_t> order = Order(11, epoch, kN);
    for (uint64_t i = 0; i < kN; ++i) ++counts[i * kN + order[i]];
  }
  // 36 degrees of freedom: 85 is exceeded with probability 1e-5.
  EXPECT_LT(ChiSquare(counts, double{kEpochs} / kN), 85);
}

TEST(EpochShuffle, NeighboursGoTheirOwnWays) {
  // Pairs of examples that follow each other are as likely as any.
  constexpr uint64_t kN = 12, kEpochs = 6000;
  std::vector<double> counts;
  std::map<std::pair<uint64_t, uint64_t>, double> pairs;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<uint64_t> order = Order(12, epoch, kN);
    for (uint64_t i = 0; i + 1 < kN; ++i) ++pairs[{order[i], order[i + 1]}];
  }
  EXPECT_EQ(pairs.size(), kN * (kN - 1));
  for (const auto& [pair, count] : pairs) counts.push_back(count);
  // 131 degrees of freedom: 210 is exceeded with probability 1e-5.
  EXPECT_LT(ChiSquare(counts, double{kEpochs} / kN), 210);
}

TEST(EpochShuffle, AllOrdersOfThreeOccurEquallyOften) {
  std::map<std::vector<uint64_t>, double> orders;
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) ++orders[Order(1, epoch, 3)];
  EXPECT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 150);
}

TEST(EpochDraw, IsUniformAndOfItsOwn) {
  std::vector<double> counts(10);
  for (uint64_t epoch = 0; epoch < 10000; ++epoch) ++counts.at(EpochDraw(3, epoch, 0, 10));
  EXPECT_LT(ChiSquare(counts, 1000),
            40);  // 9 degrees of freedom: probability 1e-5
  EXPECT_NE(EpochDraw(3, 0, 0, uint64_t{1} << 60), EpochDraw(3, 0, 1, uint64_t{1} << 60));
  EXPECT_NE(EpochDraw(3, 0, 0, uint64_t{1} << 60), EpochDraw(4, 0, 0, uint64_t{1} << 60));
  EXPECT_EQ(EpochDraw(3, 0, 0, 1), 0u);
}

TEST(EpochShuffleDeathTest, StopsAtBrokenContracts) {
  EXPECT_DEATH(EpochShuffle(1, 0, 0), "a permutation of 0");
  EXPECT_DEATH(EpochShuffle(1, 0, 5)(5), "place 5 of 5");
}

}  // namespace
}  // namespace numsim
