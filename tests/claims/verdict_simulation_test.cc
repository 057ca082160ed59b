// Verdicts on simulated experiments: how often they are wrong, and how often they are given.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "experiments/claims/verdict.h"
#include "tests/claims/simulated_table.h"

namespace numsim::experiments {
namespace {

constexpr int kTrials = 2000;

ClaimTest TestOf(ClaimKind kind, double margin) {
  return {.kind = kind, .contrasts = {Gap("1", "0")}, .margin = margin};
}

ClaimTest OrderOf(const std::vector<std::string>& arms, double margin) {
  return {.kind = ClaimKind::kOrder, .contrasts = Successive(arms), .margin = margin};
}

struct Shares {
  double supported = 0, contradicted = 0;
};

Shares SharesOf(const ClaimTest& test, const TrueEffects& truth) {
  Shares shares;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Verdict verdict = TestClaim(test, Simulated(truth, trial), {.plan = false}).verdict;
    shares.supported += (verdict == Verdict::kSupported) / static_cast<double>(kTrials);
    shares.contradicted += (verdict == Verdict::kContradicted) / static_cast<double>(kTrials);
  }
  return shares;
}

void ExpectLevel(double share, double level) {
  EXPECT_NEAR(share, level, MonteCarloError(level, kTrials));
}

// Of two wrong verdicts, each at half of the level.
TEST(SimulatedVerdict, OfADifferenceAtTheMarginIsWrongOnceInTwentyTimes) {
  const ClaimTest test = TestOf(ClaimKind::kDifference, 0.7);
  for (const int seeds : {2, 3, 8}) {
    const Shares shares = SharesOf(test, {{0, 0.7, 0.1, -2}, seeds, {0.5}});
    ExpectLevel(shares.supported, 0.025);
    ExpectLevel(shares.contradicted, 0.025);
  }
}

TEST(SimulatedVerdict, OfAnEquivalenceAtTheMarginIsWrongOnceInTwentyTimes) {
  for (const double effect : {0.7, -0.7}) {
    const Shares shares =
        SharesOf(TestOf(ClaimKind::kEquivalence, 0.7), {{0, effect, 0.1, -2}, 3, {0.1}});
    ExpectLevel(shares.supported, 0.05);
    ExpectLevel(shares.contradicted, 0.025);
  }
}

// One step at the margin decides whether the order is supported; with all of them at the margin
// each may contradict it.
TEST(SimulatedVerdict, OfAnOrderAtTheMarginIsWrongOnceInTwentyTimes) {
  const ClaimTest test = OrderOf({"0", "1", "2", "3"}, 0.2);
  ExpectLevel(SharesOf(test, {{0, 3, 3.2, 7}, 4, {0.3}}).supported, 0.025);
  const Shares all = SharesOf(test, {{0, 0.2, 0.4, 0.6}, 4, {0.3}});
  ExpectLevel(all.contradicted, 0.025);
  EXPECT_LT(all.supported, 0.005);
}

TEST(SimulatedVerdict, OfSeveralEquivalencesIsWrongOnceInTwentyTimes) {
  ClaimTest test = TestOf(ClaimKind::kEquivalence, 0.7);
  for (const char* arm : {"2", "3"}) test.contrasts.push_back(Gap(arm, "0"));
  ExpectLevel(SharesOf(test, {{0, 0.7, 0, 0}, 4, {0.1}}).supported, 0.05);
  const double all = SharesOf(test, {{0, 0.7, 0.7, -0.7}, 4, {0.1}}).contradicted;
  EXPECT_LT(all, 0.05 + MonteCarloError(0.05, kTrials));
  EXPECT_GT(all, 0.01);
}

// An arm that scatters five times more than seven others, and one that scatters five times less.
TEST(SimulatedVerdict, OfAnArmThatScattersOtherwiseIsWrongOnceInTwentyTimes) {
  for (const double scatter : {5.0, 0.2}) {
    const TrueEffects truth = {{0, 0.7, 0, 0, 0, 0, 0, 0}, 5, {scatter, scatter, 1, 1, 1, 1, 1, 1}};
    const Shares shares = SharesOf(TestOf(ClaimKind::kDifference, 0.7), truth);
    ExpectLevel(shares.supported + shares.contradicted, 0.05);
  }
}

double Coverage(const ClaimTest& test, const TrueEffects& truth, double expected, double missing) {
  return ShareOf(kTrials, [&](uint64_t trial) {
    OutcomeTable table = Simulated(truth, trial);
    for (size_t i = 0; i < table.values.size(); ++i) {  // runs missing by a fixed pattern
      if (missing > 0 && (7 * i + trial) % 10 < 10 * missing) table.values[i] = std::nan("");
    }
    const ContrastResult contrast = TestClaim(test, table, {.plan = false}).contrasts[0];
    return contrast.low <= expected && expected <= contrast.high;
  });
}

TEST(SimulatedVerdict, IntervalsHoldTheTruth) {
  const TrueEffects truth = {{0, 0.3, -1, 4}, 10, {0.4}};
  ClaimTest second_difference = TestOf(ClaimKind::kDifference, 0);
  second_difference.contrasts = {{{"3", 1}, {"2", -1}, {"1", -1}, {"0", 1}}};
  for (const double missing : {0.0, 0.2}) {
    const auto expect = [&](const ClaimTest& test, double effect, double level) {
      ExpectLevel(Coverage(test, truth, effect, missing), level);
    };
    expect(TestOf(ClaimKind::kDifference, 0), 0.3, 0.95);
    expect(TestOf(ClaimKind::kEquivalence, 1), 0.3, 0.90);
    expect(second_difference, 4.7, 0.95);
  }
}

// A table of three arms whose estimates and scatter are the truth. The residuals are two patterns over
// arms times two over seeds, such that differences of arms have the same share of them.
OutcomeTable TrueToEstimates(const TrueEffects& truth) {
  constexpr double kFirst[3][4] = {{1, -1, 1, -1}, {1, -1, 1, -1}, {-2, 2, -2, 2}};
  constexpr double kSecond[3][4] = {{1, 1, -1, -1}, {-1, -1, 1, 1}, {0, 0, 0, 0}};
  const double scale = truth.scatter[0] * std::sqrt(6 / 48.);  // over 3 degrees of freedom
  OutcomeTable table = {{"0", "1", "2"}, 4, {}};
  for (int arm = 0; arm < 3; ++arm) {
    for (int seed = 0; seed < 4; ++seed) {
      const double residual = kFirst[arm][seed] + std::sqrt(3.0) * kSecond[arm][seed];
      table.values.push_back(truth.arms[arm] + scale * residual);
    }
  }
  return table;
}

void ExpectPlannedPower(const ClaimTest& test, TrueEffects truth, Verdict verdict, double most) {
  const ClaimResult planned = TestClaim(test, TrueToEstimates(truth));
  for (const ContrastResult& contrast : planned.contrasts) {
    ASSERT_NEAR(contrast.standard_error, truth.scatter[0] * std::sqrt(2 / 4.), 1e-12);
  }
  truth.seeds = planned.seeds_to_decide;
  const Shares shares = SharesOf(test, truth);
  const double power = verdict == Verdict::kSupported ? shares.supported : shares.contradicted;
  EXPECT_GT(power, 0.8 - MonteCarloError(0.8, kTrials)) << truth.seeds << " seeds";
  EXPECT_LT(power, most + MonteCarloError(0.8, kTrials)) << truth.seeds << " seeds";
}

// Whole numbers of seeds add some power.
TEST(SimulatedVerdict, IsGivenWithFourFifthsOfThePowerAtTheSeedsThatItNames) {
  const ClaimTest difference = TestOf(ClaimKind::kDifference, 0.3);
  ExpectPlannedPower(difference, {{0, 1, 2}, 0, {0.8}}, Verdict::kSupported, 0.85);
  ExpectPlannedPower(difference, {{0, -0.1, 2}, 0, {0.4}}, Verdict::kContradicted, 0.85);
  const ClaimTest equivalence = TestOf(ClaimKind::kEquivalence, 0.5);
  ExpectPlannedPower(equivalence, {{0, 0.1, 2}, 0, {0.5}}, Verdict::kSupported, 0.85);
  ExpectPlannedPower(equivalence, {{0, 1, 2}, 0, {0.5}}, Verdict::kContradicted, 0.85);
}

// For several contrasts the plan is a lower bound: tests of two equal gaps share an arm.
TEST(SimulatedVerdict, OfAnOrderIsGivenWithAtLeastThatPower) {
  const ClaimTest order = OrderOf({"0", "1", "2"}, 0.1);
  ExpectPlannedPower(order, {{0, 0.6, 1.2}, 0, {0.5}}, Verdict::kSupported, 0.9);
  ExpectPlannedPower(order, {{0, 0.6, 0.3}, 0, {0.4}}, Verdict::kContradicted, 0.9);
}

}  // namespace
}  // namespace numsim::experiments
