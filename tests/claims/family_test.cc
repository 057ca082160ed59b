#include "experiments/claims/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/random/streams.h"
#include "tests/claims/simulated_table.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

// The closed testing procedure: a hypothesis is rejected at level alpha if every set of hypotheses
// that holds it is, by the Bonferroni test of the least p of the set.
std::vector<double> ByClosedTesting(const std::vector<double>& p) {
  std::vector<double> adjusted(p.size(), 0.);
  for (unsigned set = 1; set < 1u << p.size(); ++set) {
    double least = 1;
    int size = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      least = std::min(least, p[i]);
      ++size;
    }
    for (size_t i = 0; i < p.size(); ++i) {
      if (set >> i & 1) adjusted[i] = std::max(adjusted[i], std::min(1., size * least));
    }
  }
  return adjusted;
}

TEST(HolmAdjusted, IsClosedTestingWithBonferroni) {
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> p;
    for (int i = 0; i < 1 + trial % 7; ++i) {
      const uint32_t word = RandomWord({.seed = 8, .stream = static_cast<uint64_t>(trial)}, i);
      // Every third trial has few different values, hence ties.
      p.push_back(trial % 3 == 0 ? 0.01 * (word % 4) : std::pow(word * 0x1p-32, 2));
    }
    const std::vector<double> adjusted = HolmAdjusted(p), expected = ByClosedTesting(p);
    for (size_t i = 0; i < p.size(); ++i) EXPECT_DOUBLE_EQ(adjusted[i], expected[i]) << trial;
  }
  EXPECT_TRUE(HolmAdjusted({}).empty());
}

ClaimResult Tested(double p_supported, double p_contradicted) {
  ClaimResult result;
  result.verdict = std::min(p_supported, p_contradicted) > 0.05 ? Verdict::kInconclusive
                   : p_supported < p_contradicted               ? Verdict::kSupported
                                                                : Verdict::kContradicted;
  result.reason = result.verdict == Verdict::kInconclusive ? "reason" : "";
  result.p_supported = p_supported;
  result.p_contradicted = p_contradicted;
  result.alpha = 0.05;
  return result;
}

TEST(JudgeTogether, AdjustsByHolmWhatIsTested) {
  std::vector<ClaimResult> claims = {Tested(0.02, 1),
                                     NotTested("not built"),
                                     Tested(1, 0.03),
                                     Tested(0.3, 0.9),
                                     ExactResult(true),
                                     Tested(1, 0.005)};
  JudgeTogether(claims);
  EXPECT_EQ(claims[0].verdict, Verdict::kInconclusive);
  EXPECT_DOUBLE_EQ(claims[0].p, 0.06);
  EXPECT_EQ(claims[0].reason, "p = 0.06 after Holm's correction, above 0.05");
  EXPECT_EQ(claims[1].verdict, Verdict::kNotTested);
  EXPECT_EQ(claims[1].reason, "not built");
  EXPECT_EQ(claims[2].verdict, Verdict::kInconclusive);
  EXPECT_EQ(claims[3].verdict, Verdict::kInconclusive);
  EXPECT_EQ(claims[3].reason, "reason");
  EXPECT_EQ(claims[4].verdict, Verdict::kExactHolds);
  EXPECT_EQ(claims[5].verdict, Verdict::kContradicted);
  EXPECT_DOUBLE_EQ(claims[5].p, 0.02);
}

// Claims that a look at the outcomes left out: the smallest p is that of four.
TEST(JudgeTogether, CountsWhatWasLeftOut) {
  std::vector<ClaimResult> claims = {Tested(0.01, 1), Tested(0.02, 1)};
  JudgeTogether(claims, 2);
  EXPECT_DOUBLE_EQ(claims[0].p, 0.04);
  EXPECT_EQ(claims[0].verdict, Verdict::kSupported);
  EXPECT_DOUBLE_EQ(claims[1].p, 0.06);
  EXPECT_EQ(claims[1].verdict, Verdict::kInconclusive);
}

TEST(JudgeTogether, OfOneClaimChangesNothing) {
  for (const ClaimResult& alone : {Tested(0.04, 1), Tested(1, 0.04), Tested(0.2, 1)}) {
    std::vector<ClaimResult> claims = {alone};
    JudgeTogether(claims);
    EXPECT_EQ(claims[0].verdict, alone.verdict);
    EXPECT_EQ(claims[0].reason, alone.reason);
  }
}

TEST(JudgeTogether, ForgetsAnEarlierFamily) {
  std::vector<ClaimResult> claims = {Tested(0.04, 1), Tested(0.2, 1)};
  JudgeTogether(claims);
  EXPECT_EQ(claims[0].verdict, Verdict::kInconclusive);
  claims.pop_back();
  JudgeTogether(claims);
  EXPECT_EQ(claims[0].verdict, Verdict::kSupported);
  EXPECT_EQ(claims[0].p, 0.04);
  EXPECT_EQ(claims[0].reason, "");
}

TEST(JudgeTogether, OfDifferentLevelsThrows) {
  std::vector<ClaimResult> claims = {Tested(0.04, 1), Tested(1, 0.04)};
  claims[1].alpha = 0.01;
  EXPECT_EQ(ErrorOf([&] { JudgeTogether(claims); }),
            "JudgeTogether: claims tested at alpha 0.05 and 0.01, expected one level");
}

TEST(DefaultLooks, AreAtMostFourAtEqualRatios) {
  EXPECT_EQ(DefaultLooks(3, 20).seeds, (std::vector<int>{3, 6, 11, 20}));
  EXPECT_EQ(DefaultLooks(3, 24).seeds, (std::vector<int>{3, 6, 12, 24}));
  EXPECT_EQ(DefaultLooks(3, 12).seeds, (std::vector<int>{3, 6, 12}));
  EXPECT_EQ(DefaultLooks(3, 6).seeds, (std::vector<int>{3, 6}));
  EXPECT_EQ(DefaultLooks(5, 6).seeds, (std::vector<int>{5, 6}));
  EXPECT_EQ(DefaultLooks(2, 2).seeds, (std::vector<int>{2}));
  EXPECT_EQ(DefaultLooks(2, 2000).seeds, (std::vector<int>{2, 20, 200, 2000}));
  for (int first = 2; first < 30; ++first) {
    for (int most = first; most < 200; ++most) {
      const std::vector<int> seeds = DefaultLooks(first, most).seeds;
      EXPECT_EQ(seeds.front(), first);
      EXPECT_EQ(seeds.back(), most);
      EXPECT_LE(seeds.size(), 4u);
      EXPECT_TRUE(std::is_sorted(seeds.begin(), seeds.end(), std::less_equal<int>())) << most;
    }
  }
  EXPECT_EQ(ErrorOf([] { DefaultLooks(1, 5); }),
            "DefaultLooks: 1 to 5 seeds, expected an ascending range from at least 2");
  EXPECT_NE(ErrorOf([] { DefaultLooks(5, 4); }), kNoError);
}

constexpr int kTrials = 1600;

ClaimTest GapOf(const char* arm, double margin) {
  return {.kind = ClaimKind::kDifference, .contrasts = {Gap(arm, "0")}, .margin = margin};
}

// Four claims about one baseline. Each of `right` is the verdict that is not wrong; inconclusive
// never is. Returns the share of runs with a wrong verdict.
double WrongInFamily(const std::vector<double>& effects,
                     const std::vector<ClaimTest>& tests,
                     const std::vector<Verdict>& right,
                     bool together) {
  return ShareOf(kTrials, [&](uint64_t trial) {
    const OutcomeTable table = Simulated({effects, 4, {0.1}}, trial);
    std::vector<ClaimResult> claims;
    for (const ClaimTest& test : tests) claims.push_back(TestClaim(test, table, {.plan = false}));
    if (together) JudgeTogether(claims);
    bool wrong = false;
    for (size_t i = 0; i < claims.size(); ++i) {
      wrong |= claims[i].verdict != Verdict::kInconclusive && claims[i].verdict != right[i];
    }
    return wrong;
  });
}

// All claims at their margin, where every verdict is counted as wrong.
TEST(JudgeTogether, IsWrongAboutAnyClaimOnceInTwentyTimes) {
  const std::vector<double> effects = {0, 0.7, 0.7, 0.7, 0.7};
  const std::vector<ClaimTest> tests = {
      GapOf("1", 0.7), GapOf("2", 0.7), GapOf("3", 0.7), GapOf("4", 0.7)};
  const std::vector<Verdict> none(4, Verdict::kNotTested);
  const double limit = 0.05 + MonteCarloError(0.05, kTrials);
  EXPECT_LT(WrongInFamily(effects, tests, none, true), limit);
  EXPECT_GT(WrongInFamily(effects, tests, none, false), 0.09);
}

// Two claims that are easily supported raise the level of the other two: an equivalence that is
// false and a difference that is true, both at the margin.
TEST(JudgeTogether, IsSeldomWrongAlsoAfterClaimsThatAreDecided) {
  const std::vector<double> effects = {0, 9, -9, 0.7, 0.7};
  std::vector<ClaimTest> tests = {
      GapOf("1", 0.7), GapOf("2", 0.7), GapOf("3", 0.7), GapOf("4", 0.7)};
  tests[2].kind = ClaimKind::kEquivalence;
  const std::vector<Verdict> right = {
      Verdict::kSupported, Verdict::kContradicted, Verdict::kContradicted, Verdict::kSupported};
  const double limit = 0.05 + MonteCarloError(0.05, kTrials);
  const double wrong = WrongInFamily(effects, tests, right, true);
  EXPECT_LT(wrong, limit);
  EXPECT_GT(wrong, 0.015);
}

// Runs that add seeds until the claim is decided, which is at its margin. Returns the share with a
// wrong verdict.
double WrongUntilDecided(int looks_counted) {
  const Looks looks = DefaultLooks(3, 24);
  return ShareOf(kTrials, [&](uint64_t trial) {
    for (const int seeds : looks.seeds) {
      const OutcomeTable table = Simulated({{0, 0.7, 0.1}, seeds, {0.5}}, trial);
      const ClaimResult result =
          TestClaim(GapOf("1", 0.7), table, {.looks = looks_counted, .plan = false});
      if (result.verdict != Verdict::kInconclusive) return true;
    }
    return false;
  });
}

TEST(Looks, ShareAlphaSoThatARunIsWrongOnceInTwentyTimes) {
  EXPECT_LT(WrongUntilDecided(4), 0.05 + MonteCarloError(0.05, kTrials));
  EXPECT_GT(WrongUntilDecided(4), 0.02);
  EXPECT_GT(WrongUntilDecided(1), 0.09);  // without the split
}

}  // namespace
}  // namespace numsim::experiments
