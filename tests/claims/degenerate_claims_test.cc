// Verdicts on outcomes that are missing, diverged or without scatter, and tests that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "experiments/claims/verdict.h"
#include "tests/claims/claim_problem.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

constexpr double kNoRun = std::numeric_limits<double>::quiet_NaN();

TEST(TestClaim, OfOneSeedIsInconclusive) {
  const OutcomeTable table = {{"base", "other"}, 1, {5, 9}};
  const ClaimResult result = TestClaim(Difference(0.5), table);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.reason, "one seed");
  EXPECT_EQ(result.contrasts[0].value, 4);
  EXPECT_TRUE(std::isnan(result.contrasts[0].low));
  EXPECT_EQ(result.p, 1);
  EXPECT_EQ(result.seeds_to_decide, 0);
}

TEST(TestClaim, OfOneRunOfAnArmIsInconclusive) {
  OutcomeTable table = kThreeArms;
  table.values[7] = table.values[8] = kNoRun;
  const ClaimTest test = {.contrasts = {Gap("top", "base")}};
  EXPECT_EQ(TestClaim(test, table).reason, "one seed");
  EXPECT_EQ(TestClaim(test, table).verdict, Verdict::kInconclusive);
}

TEST(TestClaim, OfAnArmWithoutRunsIsNotTested) {
  OutcomeTable table = kTwoArms;
  for (int seed = 0; seed < 3; ++seed) table.values[3 + seed] = kNoRun;
  const ClaimResult result = TestClaim(Difference(0.5), table);
  EXPECT_EQ(result.verdict, Verdict::kNotTested);
  EXPECT_EQ(result.reason, "no run of 'other'");
  const ClaimTest unknown = {.contrasts = {Gap("third", "base")}};
  EXPECT_EQ(TestClaim(unknown, kTwoArms).reason, "no run of 'third'");
}

TEST(TestClaim, OfArmsThatShareNoSeedIsInconclusive) {
  const OutcomeTable table = {{"base", "other", "third"},
                              4,
                              {1, 2, kNoRun, kNoRun, kNoRun, kNoRun, 8, 9, 3, 5, kNoRun, kNoRun}};
  const ClaimResult result = TestClaim(Difference(0.5), table);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.reason, "its arms share too few seeds");
  EXPECT_TRUE(std::isnan(result.contrasts[0].value));
}

TEST(TestClaim, WithoutScatterJudgesTheValues) {
  const OutcomeTable table = {{"base", "other"}, 2, {0.1, 0.3, 0.6, 0.8}};
  EXPECT_EQ(TestClaim(Difference(0.4), table).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Difference(0.4), table).p, 0);
  EXPECT_EQ(TestClaim(Difference(0.6), table).verdict, Verdict::kContradicted);
  EXPECT_EQ(TestClaim(Equivalence(0.6), table).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Equivalence(0.4), table).verdict, Verdict::kContradicted);
  EXPECT_EQ(TestClaim(Difference(0.4), table).seeds_to_decide, 2);
}

TEST(TestClaim, OfEqualArmsShowsNoDifferenceAndEquivalence) {
  const OutcomeTable table = {{"base", "other"}, 2, {0.1, 0.3, 0.1, 0.3}};
  const ClaimResult tie = TestClaim(Difference(0), table);
  EXPECT_EQ(tie.verdict, Verdict::kInconclusive);
  EXPECT_EQ(tie.seeds_to_decide, 10001);
  EXPECT_EQ(TestClaim(Difference(0.01), table).verdict, Verdict::kContradicted);
  EXPECT_EQ(TestClaim(Equivalence(1e-6), table).verdict, Verdict::kSupported);
}

TEST(TestClaim, WithMissingDivergedRunsIsAtMostInconclusive) {
  OutcomeTable table = {{"base", "other"}, 5, {1, 2, 3, 4, 5, 9, 10.1, 11, 12, kDivergedRun}};
  const ClaimResult result = TestClaim(Difference(0), table);
  EXPECT_NEAR(result.contrasts[0].value, 8.025, 1e-13);  // of the others
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.reason, "1 of 5 runs of 'other' diverged");
  EXPECT_EQ(result.p, 1);
  EXPECT_EQ(result.seeds, 5);
  for (int seed = 0; seed < 5; ++seed) table.values[5 + seed] = -kDivergedRun;
  EXPECT_EQ(TestClaim(Difference(0), table).reason, "5 of 5 runs of 'other' diverged");
  EXPECT_EQ(TestClaim(Difference(0), table).verdict, Verdict::kInconclusive);
}

TEST(TestClaim, CountsDivergedRunsAsTheStatedValue) {
  OutcomeTable table = {{"base", "other"}, 5, {1, 2, 3, 4, 5, 9, 10.1, 11, 12, kDivergedRun}};
  ClaimTest test = Difference(0);
  test.diverged = Diverged::kAsValue;
  test.diverged_value = 14;
  const ClaimResult result = TestClaim(test, table);
  EXPECT_EQ(result.verdict, Verdict::kSupported);
  table.values[9] = 14;
  const ClaimResult expected = TestClaim(Difference(0), table);
  EXPECT_EQ(result.p, expected.p);
  EXPECT_EQ(result.contrasts[0].low, expected.contrasts[0].low);
}

TEST(TestClaim, LeavesOutDivergedRunsOfOtherArms) {
  OutcomeTable table = kThreeArms;
  table.values[8] = kDivergedRun;  // of "top"
  ClaimTest test = Difference(0);
  const ClaimResult result = TestClaim(test, table);
  test.diverged = Diverged::kAsValue;
  test.diverged_value = 1e6;
  EXPECT_EQ(TestClaim(test, table).p, result.p);
  table.values[8] = kNoRun;
  EXPECT_EQ(TestClaim(Difference(0), table).p, result.p);
  EXPECT_LT(result.p, 1);
}

// Other arms change nothing, wild ones neither.
TEST(TestClaim, JudgesAContrastByItsOwnArms) {
  OutcomeTable table = kThreeArms;
  const ClaimResult before = TestClaim(Difference(0.5), table);
  for (int seed = 0; seed < 3; ++seed) table.values[6 + seed] = 1e3 * seed * seed;
  const ClaimResult after = TestClaim(Difference(0.5), table);
  EXPECT_EQ(after.p, before.p);
  EXPECT_EQ(after.contrasts[0].low, before.contrasts[0].low);
  EXPECT_EQ(after.contrasts[0].freedom, 2);
  EXPECT_EQ(after.seeds_to_decide, before.seeds_to_decide);
}

// With all of n runs diverged the limits of Clopper and Pearson are (alpha / 2)^(1 / n) and 1.
TEST(TestClaim, OfDivergenceCountsRuns) {
  const auto test = [](int diverged, int runs, double share) {
    OutcomeTable table = {{"arm"}, runs, std::vector<double>(runs, 2.5)};
    for (int i = 0; i < diverged; ++i) table.values[i] = kDivergedRun;
    return TestClaim({.kind = ClaimKind::kDivergence, .contrasts = {{{"arm"}}}, .margin = share},
                     table);
  };
  const ClaimResult five = test(5, 5, 0.5);
  EXPECT_NEAR(five.p_supported, 2 / 32., 1e-14);
  EXPECT_EQ(five.verdict, Verdict::kInconclusive);
  EXPECT_EQ(five.seeds_to_decide, 6);
  EXPECT_NEAR(five.contrasts[0].low, std::pow(0.025, 0.2), 1e-12);
  EXPECT_EQ(five.contrasts[0].high, 1);
  const ClaimResult six = test(6, 6, 0.5);
  EXPECT_NEAR(six.p_supported, 2 / 64., 1e-14);
  EXPECT_EQ(six.verdict, Verdict::kSupported);
  const ClaimResult none = test(0, 6, 0.5);
  EXPECT_EQ(none.verdict, Verdict::kContradicted);
  EXPECT_NEAR(none.contrasts[0].high, 1 - std::pow(0.025, 1 / 6.), 1e-12);
  // 3 of 8 at 0.1: one less the chance of 0, 1 and 2.
  EXPECT_NEAR(test(3, 8, 0.1).p_supported,
              2 * (1 - std::pow(.9, 8) - 8 * .1 * std::pow(.9, 7) - 28 * .01 * std::pow(.9, 6)),
              1e-13);
  EXPECT_NEAR(test(2, 20, 0.5).p_contradicted, 2 * (1 + 20 + 190) * 0x1p-20, 1e-15);
  EXPECT_EQ(test(2, 20, 0.5).verdict, Verdict::kContradicted);
  EXPECT_EQ(test(0, 5, 0.5).seeds_to_decide, 6);
  EXPECT_EQ(test(1, 4, 0.3).seeds_to_decide, test(3, 4, 0.7).seeds_to_decide);
  EXPECT_EQ(test(1, 2, 0.5).seeds_to_decide, 10001);
}

TEST(TestClaim, OfInvalidTestsThrows) {
  const auto error = [](ClaimTest test) { return ErrorOf([&] { TestClaim(test, kTwoArms); }); };
  EXPECT_EQ(error({.kind = ClaimKind::kExact}), "TestClaim: a claim of kind exact has no test");
  EXPECT_EQ(error({}), "TestClaim: no contrast, expected at least one");
  EXPECT_EQ(error({.contrasts = {{{"base", 1}, {"other", -2}}}}),
            "TestClaim: the weights of a contrast sum to -1, expected 0 and not all of them 0");
  EXPECT_EQ(error(Difference(1, 0)), "TestClaim: side is 0, expected 1 or -1");
  EXPECT_EQ(
      error({.kind = ClaimKind::kOrder, .contrasts = Successive({"base", "other"}), .margin = -1}),
      "TestClaim: margin is -1, expected a finite number, below 0 only for a difference");
  EXPECT_EQ(error(Difference(HUGE_VAL)),
            "TestClaim: margin is inf, expected a finite number, below 0 only for a difference");
  EXPECT_EQ(error(Equivalence(0)), "TestClaim: the margin of an equivalence is 0, expected more");
  EXPECT_EQ(error({.kind = ClaimKind::kDivergence, .contrasts = {{{"base"}}}, .margin = 1}),
            "TestClaim: margin is 1, expected a share between 0 and 1");
  EXPECT_EQ(ErrorOf([] {
              TestClaim(Difference(1), {{"base", "other"}, 2, {1, 2, 3}});
            }),
            "TestClaim: 'values' has 3 elements, expected 4");
  EXPECT_NE(ErrorOf([] { TestClaim(Difference(1), kTwoArms, {.alpha = 0}); }), kNoError);
  EXPECT_NE(ErrorOf([] { TestClaim(Difference(1), kTwoArms, {.looks = 0}); }), kNoError);
}

}  // namespace
}  // namespace numsim::experiments
