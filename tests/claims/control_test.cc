// Controls of equivalences: what is seen of them, and what that does to a verdict.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/claims/run_settings.h"
#include "tests/claims/claim_problem.h"
#include "tests/claims/simulated_table.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

// An arm that matches the base to 0.01 and one that is `bad` above it, over four seeds.
OutcomeTable WithBad(double bad, double scatter = 0.01) {
  OutcomeTable table = {{"base", "near", "bad"}, 4, {1, 2, 3, 4, 1.01, 1.99, 3, 4}};
  const double sign[] = {1, -1, -1, 1};
  for (int seed = 0; seed < 4; ++seed) {
    table.values.push_back(seed + 1 + bad + scatter * sign[seed]);
  }
  return table;
}

ClaimTest Matches(double margin) {
  return {.kind = ClaimKind::kEquivalence,
          .contrasts = {Gap("near", "base")},
          .margin = margin,
          .control = Gap("bad", "base")};
}

TEST(TestClaim, ReportsTheControlAtTheLevelOfTheClaim) {
  const ControlResult fails = *TestClaim(Matches(0.1), WithBad(0.3)).control;
  EXPECT_TRUE(fails.fails);
  EXPECT_FALSE(fails.open);
  EXPECT_NEAR(fails.contrast.value, 0.3, 1e-12);
  // 90 %, three degrees of freedom: 2.353363.
  const double error = 0.01 * std::sqrt(4 / 3. / 4);
  EXPECT_NEAR(fails.contrast.low, 0.3 - 2.353363 * error, 1e-7);
  const double least = 0.1 + 2.353363 * error;
  EXPECT_TRUE(TestClaim(Matches(0.1), WithBad(least + 1e-6)).control->fails);
  EXPECT_FALSE(TestClaim(Matches(0.1), WithBad(least - 1e-6)).control->fails);
  EXPECT_TRUE(TestClaim(Matches(0.1), WithBad(least - 1e-6)).control->open);
  EXPECT_TRUE(TestClaim(Matches(0.1), WithBad(-0.3)).control->fails) << "accuracies fall";
  EXPECT_FALSE(TestClaim(Matches(0.1), WithBad(0)).control->open) << "it matches as well";
}

TEST(TestClaim, TakesAControlWhoseRunsAllDivergeAsFailed) {
  OutcomeTable table = WithBad(0);
  for (int seed = 0; seed < 4; ++seed) table.values[8 + seed] = kDivergedRun;
  EXPECT_EQ(TestClaim(Matches(0.1), table).control->arm_diverged, "bad");
  EXPECT_TRUE(TestClaim(Matches(0.1), table).control->fails);
  table.values[8] = 1;
  EXPECT_FALSE(TestClaim(Matches(0.1), table).control->fails) << "three of four";
  ClaimTest counted = Matches(0.1);
  counted.diverged = Diverged::kAsValue;
  counted.diverged_value = 9;
  for (int seed = 0; seed < 4; ++seed) table.values[8 + seed] = kDivergedRun;
  EXPECT_NEAR(TestClaim(counted, table).control->contrast.value, 9 - 2.5, 1e-12);
}

TEST(TestClaim, HasNoControlWithoutItsRuns) {
  ClaimTest test = Matches(0.1);
  test.control = Gap("worse", "base");
  EXPECT_FALSE(TestClaim(test, WithBad(1)).control);
  EXPECT_EQ(TestClaim(test, WithBad(1)).verdict, Verdict::kSupported) << "Judge says the rest";
  test.kind = ClaimKind::kDifference;
  EXPECT_EQ(ErrorOf([&] { TestClaim(test, WithBad(1)); }),
            "TestClaim: only a claim of kind equivalence has a control");
}

JudgedClaim JudgedWith(const OutcomeTable& table,
                       const std::string& bad = "bad",
                       const std::string& arm = "near") {
  ClaimSpec claim;
  claim.id = "x/matches";
  claim.kind = ClaimKind::kEquivalence;
  claim.margin = {0.1, "nats", "made up"};
  claim.control = "bad minus base";
  claim.evidence = [=](const Settings&, const Tables&) {
    Evidence evidence;
    evidence.outcomes = table;
    evidence.contrasts = {Gap(arm, "base")};
    if (!bad.empty()) evidence.control = Gap(bad, "base");
    return evidence;
  };
  static std::vector<ClaimSpec> claims;  // JudgedClaim points to its claim
  claims = {claim};
  return Judge(claims, {}, {}).at(0);
}

TEST(Judge, SupportsAnEquivalenceOnlyWhereItsControlFails) {
  EXPECT_EQ(JudgedWith(WithBad(0.3)).result.verdict, Verdict::kSupported);
  const JudgedClaim blind = JudgedWith(WithBad(0.02));
  EXPECT_EQ(blind.result.verdict, Verdict::kNotTested);
  EXPECT_TRUE(blind.result.reason.starts_with(
      "no evidence: the control bad - base is not seen to fail: 0.02 nats, ["))
      << blind.result.reason;
  EXPECT_EQ(blind.result.contrasts.size(), 1u) << "the numbers stay";
  EXPECT_TRUE(AllDecided({blind})) << "the control itself matches: more seeds do not help";
  EXPECT_FALSE(AllDecided({JudgedWith(WithBad(0.3, 0.5))})) << "more seeds may show that it fails";
}

TEST(Judge, SupportsNoEquivalenceWithoutAControl) {
  const JudgedClaim none = JudgedWith(WithBad(0.3), "");
  EXPECT_EQ(none.result.verdict, Verdict::kNotTested);
  EXPECT_EQ(none.result.reason, "no evidence: the claim names no control");
}

TEST(Judge, ContradictsAnEquivalenceWithoutAControl) {
  EXPECT_EQ(JudgedWith(WithBad(0.3), "", "bad").result.verdict, Verdict::kContradicted);
  EXPECT_EQ(JudgedWith(WithBad(0.3), "near", "bad").result.verdict, Verdict::kContradicted);
}

// Where nothing fails the arms are equal: a claim is then supported only if the control is taken to
// fail by chance, at most once in twenty times.
TEST(Judge, SeldomSupportsAnEquivalenceWhereNothingFails) {
  constexpr int kTrials = 2000;
  const auto supported = [&](double bad) {
    return ShareOf(kTrials, [&](uint64_t trial) {
      OutcomeTable table = Simulated({{0, 0, bad}, 5, {0.02}}, trial);
      table.arms = {"base", "near", "bad"};
      return JudgedWith(table).result.verdict == Verdict::kSupported;
    });
  };
  EXPECT_LT(supported(0.1), 0.05 + MonteCarloError(0.05, kTrials)) << "at the margin";
  EXPECT_EQ(supported(0), 0);
  EXPECT_GT(supported(0.3), 0.9);
}

}  // namespace
}  // namespace numsim::experiments
