#include "experiments/claims/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/claims/claim_problem.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

// P(T > t) for two degrees of freedom.
double TailOfTwo(double t) { return (1 - t / std::sqrt(2 + t * t)) / 2; }
// Student's t for two degrees of freedom at an upper tail of 2.5 % and 5 %.
const double kT95 = 0.95 * std::sqrt(2 / (4 * 0.975 * 0.025));
const double kT90 = 0.90 * std::sqrt(2 / (4 * 0.95 * 0.05));
const double kError = std::sqrt(1 / 3.);

TEST(Verdict, NamesAreThoseOfTheStandard) {
  EXPECT_EQ(ToString(Verdict::kSupported), "supported");
  EXPECT_EQ(ToString(Verdict::kContradicted), "contradicted");
  EXPECT_EQ(ToString(Verdict::kInconclusive), "inconclusive");
  EXPECT_EQ(ToString(Verdict::kNotTested), "not tested");
  EXPECT_EQ(ToString(Verdict::kExactHolds), "exact: holds");
  EXPECT_EQ(ToString(Verdict::kExactRefuted), "exact: refuted");
  for (int i = 0; i <= static_cast<int>(Verdict::kExactRefuted); ++i) {
    const Verdict verdict = static_cast<Verdict>(i);
    EXPECT_EQ(ParseVerdict(ToString(verdict)), verdict);
  }
  EXPECT_EQ(ErrorOf([] { ParseVerdict("holds in part"); }),
            "verdict 'holds in part' is not one of supported, contradicted, inconclusive, not "
            "tested, exact: holds, exact: refuted");
}

TEST(ClaimKind, NamesAreParsedBack) {
  for (int i = 0; i <= static_cast<int>(ClaimKind::kExact); ++i) {
    const ClaimKind kind = static_cast<ClaimKind>(i);
    EXPECT_EQ(ParseClaimKind(ToString(kind)), kind);
  }
  EXPECT_NE(ErrorOf([] { ParseClaimKind("gap"); }), kNoError);
}

TEST(TestClaim, OfADifferenceReportsTheTwoSidedInterval) {
  const ClaimResult result = TestClaim(Difference(0.5), kTwoArms);
  ASSERT_EQ(result.contrasts.size(), 1u);
  EXPECT_NEAR(result.contrasts[0].value, 2, 1e-14);
  EXPECT_NEAR(result.contrasts[0].standard_error, kError, 1e-14);
  EXPECT_NEAR(result.contrasts[0].low, 2 - kT95 * kError, 1e-12);
  EXPECT_NEAR(result.contrasts[0].high, 2 + kT95 * kError, 1e-12);
  EXPECT_EQ(result.contrasts[0].freedom, 2);
  EXPECT_EQ(result.confidence, 0.95);
  EXPECT_EQ(result.seeds, 3);
  EXPECT_NEAR(result.p_supported, 2 * TailOfTwo(1.5 / kError), 1e-13);
  EXPECT_EQ(result.p_contradicted, 1);
  EXPECT_EQ(result.p, result.p_supported);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.reason, "p = 0.12, above 0.05");
  EXPECT_GT(result.seeds_to_decide, 3);
  EXPECT_LT(result.seeds_to_decide, 10);
}

// The verdict of a margin just inside and just outside of each end of the interval.
TEST(TestClaim, OfADifferenceIsDecidedByWhereItsIntervalLies) {
  const double low = 2 - kT95 * kError, high = 2 + kT95 * kError;
  EXPECT_EQ(TestClaim(Difference(high - 1e-6), kTwoArms).verdict, Verdict::kInconclusive);
  EXPECT_EQ(TestClaim(Difference(high + 1e-6), kTwoArms).verdict, Verdict::kContradicted);
  OutcomeTable shifted = kTwoArms;  // by 1, so that the whole interval is above 0
  for (int seed = 0; seed < 3; ++seed) shifted.values[3 + seed] += 1;
  EXPECT_EQ(TestClaim(Difference(low + 1 - 1e-6), shifted).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Difference(low + 1 + 1e-6), shifted).verdict, Verdict::kInconclusive);
  EXPECT_EQ(TestClaim(Difference(low + 1 - 1e-6), shifted).reason, "");
}

// Not worse by more than a margin: the interval lies above minus the margin.
TEST(TestClaim, OfADifferenceWithANegativeMarginIsOneOfNonInferiority) {
  const double low = 2 - kT95 * kError;
  ASSERT_LT(low, 0);
  EXPECT_EQ(TestClaim(Difference(low - 1e-6), kTwoArms).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Difference(low + 1e-6), kTwoArms).verdict, Verdict::kInconclusive);
}

TEST(TestClaim, OfTheOtherSideIsTheTestOfTheNegatedOutcomes) {
  OutcomeTable negated = kTwoArms;
  for (double& value : negated.values) value = -value;
  for (const double margin : {-6.0, -1.0, 0.0, 0.5, 3.0, 5.0}) {
    const ClaimResult result = TestClaim(Difference(margin), kTwoArms);
    const ClaimResult mirrored = TestClaim(Difference(margin, -1), negated);
    EXPECT_EQ(mirrored.verdict, result.verdict);
    EXPECT_EQ(mirrored.p_supported, result.p_supported);
    EXPECT_EQ(mirrored.p_contradicted, result.p_contradicted);
    EXPECT_EQ(mirrored.seeds_to_decide, result.seeds_to_decide);
    EXPECT_EQ(mirrored.contrasts[0].low, -result.contrasts[0].high);
  }
  EXPECT_GT(TestClaim(Difference(0, -1), kTwoArms).p_supported, 0.9);
}

TEST(TestClaim, OfAnEquivalenceIsTwoOneSidedTests) {
  const ClaimResult result = TestClaim(Equivalence(4), kTwoArms);
  EXPECT_EQ(result.confidence, 0.9);
  EXPECT_NEAR(result.contrasts[0].low, 2 - kT90 * kError, 1e-12);
  EXPECT_NEAR(result.p_supported, TailOfTwo(2 / kError), 1e-13);
  EXPECT_EQ(result.verdict, Verdict::kSupported);
  const double high = 2 + kT90 * kError;
  EXPECT_EQ(TestClaim(Equivalence(high + 1e-6), kTwoArms).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Equivalence(high - 1e-6), kTwoArms).verdict, Verdict::kInconclusive);
  OutcomeTable far = kTwoArms;  // gaps 11, 12, 13
  for (int seed = 0; seed < 3; ++seed) far.values[3 + seed] += 10;
  const double low = 12 - kT95 * kError;
  EXPECT_EQ(TestClaim(Equivalence(low - 1e-6), far).verdict, Verdict::kContradicted);
  EXPECT_EQ(TestClaim(Equivalence(low + 1e-6), far).verdict, Verdict::kInconclusive);
  EXPECT_NEAR(TestClaim(Equivalence(2), far).p_contradicted, 2 * TailOfTwo(10 / kError), 1e-13);
}

TEST(TestClaim, OfAnOrderNeedsEveryStep) {
  const auto order = [](const std::vector<std::string>& arms, double margin) {
    return ClaimTest{.kind = ClaimKind::kOrder, .contrasts = Successive(arms), .margin = margin};
  };
  const ClaimResult all = TestClaim(order({"base", "other", "top"}, 0), kThreeArms);
  const ClaimResult first = TestClaim(order({"base", "other"}, 0), kThreeArms);
  const ClaimResult second = TestClaim(order({"other", "top"}, 0), kThreeArms);
  EXPECT_EQ(all.contrasts.size(), 2u);
  EXPECT_EQ(all.p_supported, std::max(first.p_supported, second.p_supported));
  EXPECT_EQ(all.verdict, Verdict::kSupported);
  EXPECT_EQ(first.p_supported, TestClaim(Difference(0), kThreeArms).p_supported);
  // The step from "base" to "other" is 2, that to "top" 4.
  const ClaimResult steep = TestClaim(order({"base", "other", "top"}, 3), kThreeArms);
  EXPECT_EQ(steep.verdict, Verdict::kContradicted);
  EXPECT_NEAR(steep.p_contradicted,
              2 * TestClaim(order({"base", "other"}, 3), kThreeArms).p_contradicted,
              1e-15);
  const ClaimResult wrong = TestClaim(order({"top", "other", "base"}, 0), kThreeArms);
  EXPECT_EQ(wrong.verdict, Verdict::kContradicted);
}

TEST(TestClaim, OfSeveralContrastsIsTrueOnlyIfAllAre) {
  ClaimTest test = Equivalence(5.95);
  test.contrasts.push_back(Gap("top", "base"));  // 6
  EXPECT_EQ(TestClaim(Equivalence(5.95), kThreeArms).verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(test, kThreeArms).verdict, Verdict::kInconclusive);
  test.margin = 5;
  EXPECT_EQ(TestClaim(test, kThreeArms).verdict, Verdict::kContradicted);
  test.margin = 7;
  EXPECT_EQ(TestClaim(test, kThreeArms).verdict, Verdict::kSupported);
}

TEST(TestClaim, OfADifferenceOfDifferencesWeighsItsArms) {
  const ClaimTest test = {.contrasts = {{{"top", 1}, {"other", -1}, {"other", -1}, {"base", 1}}},
                          .margin = 1};
  const ClaimResult result = TestClaim(test, kThreeArms);  // 4 - 2
  EXPECT_NEAR(result.contrasts[0].value, 2, 1e-14);
}

TEST(TestClaim, SplitsAlphaOverTheLooks) {
  const ClaimResult once = TestClaim(Difference(0.5), kTwoArms);
  const ClaimResult often = TestClaim(Difference(0.5), kTwoArms, {.looks = 4});
  EXPECT_EQ(often.alpha, 0.0125);
  EXPECT_EQ(often.confidence, 0.9875);
  EXPECT_EQ(often.p_supported, once.p_supported);
  const double t = 0.9875 * std::sqrt(2 / (0.9875 + 1) / (1 - 0.9875));
  EXPECT_NEAR(often.contrasts[0].low, 2 - t * kError, 1e-11);
  EXPECT_GT(often.seeds_to_decide, once.seeds_to_decide);
  const ClaimResult family = TestClaim(Difference(0.5), kTwoArms, {.primary = 4});
  EXPECT_EQ(family.seeds_to_decide, often.seeds_to_decide);
  EXPECT_EQ(family.alpha, 0.05);
}

TEST(ClaimResult, WithoutATestStatesItsVerdict) {
  EXPECT_EQ(NotTested("not built").verdict, Verdict::kNotTested);
  EXPECT_EQ(NotTested("not built").reason, "not built");
  EXPECT_EQ(ExactResult(true).verdict, Verdict::kExactHolds);
  EXPECT_EQ(ExactResult(false).verdict, Verdict::kExactRefuted);
  EXPECT_EQ(SeedsText(12), "12");
  EXPECT_EQ(SeedsText(0), "unknown");
  EXPECT_EQ(SeedsText(10001), "more than 10000");
}

}  // namespace
}  // namespace numsim::experiments
