// How the trials of a look are shared out.
#include "experiments/runner/looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace numsim::experiments {
namespace {

using ::testing::ElementsAre;

using Shares = std::vector<std::vector<size_t>>;

std::vector<Trial> TrialsOfCosts(const std::vector<double>& costs) {
  std::vector<Trial> trials;
  for (const double cost : costs) trials.emplace_back().cost = cost;
  return trials;
}

Shares ShareOutAll(const std::vector<double>& costs, size_t count) {
  Look look;
  for (size_t i = 0; i < costs.size(); ++i) look.added.push_back(i);
  return ShareOut(look, TrialsOfCosts(costs), count);
}

TEST(ShareOut, GivesTheMostExpensiveToTheShardWithTheLeast) {
  // 7 | 6, 7 | 11, 11 | 11, then both shards have 11 and two trials.
  EXPECT_THAT(ShareOutAll({3, 4, 7, 3, 6, 5}, 2),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(ShareOutAll({1, 1, 1, 9}, 2), ElementsAre(ElementsAre(3), ElementsAre(0, 1, 2)));
}

TEST(ShareOut, DealsEqualTrialsOutInTurn) {
  for (const double cost : {0.0, 0.1, 3.0}) {
    for (size_t trials = 1; trials < 30; ++trials) {
      for (size_t count = 1; count <= trials + 2; ++count) {
        Shares expected(count);
        for (size_t i = 0; i < trials; ++i) expected[i % count].push_back(i);
        EXPECT_EQ(ShareOutAll(std::vector<double>(trials, cost), count), expected);
      }
    }
  }
}

// Every trial is in one share, the shares are not further apart than the cost of one trial, and none
// is empty.
TEST(ShareOut, SharesAreAboutEqual) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> cost(0, 2);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<double> costs(1 + random() % 100);
    for (double& value : costs) value = cost(random);
    const size_t count = 1 + random() % costs.size();
    std::vector<size_t> all;
    std::vector<double> sums, least;
    for (const std::vector<size_t>& share : ShareOutAll(costs, count)) {
      ASSERT_FALSE(share.empty());
      EXPECT_TRUE(std::is_sorted(share.begin(), share.end()));
      all.insert(all.end(), share.begin(), share.end());
      sums.push_back(0);
      least.push_back(costs[share.front()]);
      for (const size_t i : share) {
        sums.back() += costs[i];
        least.back() = std::min(least.back(), costs[i]);
      }
    }
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < costs.size(); ++i) ASSERT_EQ(all.at(i), i);
    ASSERT_EQ(all.size(), costs.size());
    // The last trial of a share, its cheapest, went there because no other share had less.
    const double smallest = *std::min_element(sums.begin(), sums.end());
    for (size_t i = 0; i < count; ++i) EXPECT_LE(sums[i] - least[i], smallest * (1 + 1e-12));
  }
}

TEST(ShareOut, LeavesATrialInItsShardAtEveryLook) {
  const std::vector<Trial> trials = TrialsOfCosts({5, 1, 2, 8, 3, 3, 1, 4});
  const std::vector<Look> looks = {{{}, {0, 4}}, {{}, {1, 5, 6}}, {{}, {2, 3, 7}}};
  for (size_t shard = 0; shard < 2; ++shard) {
    std::vector<size_t> expected;
    for (size_t count = 1; count <= looks.size(); ++count) {
      const std::vector<size_t> added = ShareOut(looks[count - 1], trials, 2)[shard];
      expected.insert(expected.end(), added.begin(), added.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(ShardTrialsUpTo(looks, trials, count, shard, 2), expected);
    }
  }
  EXPECT_THAT(TrialsUpTo(looks, 2), ElementsAre(0, 1, 4, 5, 6));
}

}  // namespace
}  // namespace numsim::experiments
