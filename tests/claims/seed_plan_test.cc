// The number of seeds that a pilot plans: tables with that number of seeds are simulated with a known
// truth and judged, without the code that plans.
#include "experiments/claims/seed_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/claims/power.h"
#include "tests/claims/simulated_table.h"

namespace numsim::experiments {
namespace {

constexpr double kMargin = 0.02;

std::vector<Contrast> AgainstFirst(size_t arms) {
  std::vector<Contrast> contrasts;
  for (size_t a = 1; a < arms; ++a) contrasts.push_back(Gap(std::to_string(a), "0"));
  return contrasts;
}

// A pilot that has found a residual SD of exactly this size.
JudgedClaim PilotOf(const ClaimSpec& spec, size_t arms, double residual_sd, int seeds) {
  JudgedClaim claim;
  claim.spec = &spec;
  claim.margin = spec.margin.value;
  claim.evidence.contrasts = AgainstFirst(arms);
  for (size_t a = 1; a < arms; ++a) {
    claim.result.contrasts.push_back({.standard_error = residual_sd * std::sqrt(2.0 / seeds),
                                      .freedom = static_cast<int>(arms - 1) * (seeds - 1)});
  }
  return claim;
}

ClaimSpec SpecOf(ClaimKind kind) {
  ClaimSpec spec;
  spec.kind = kind;
  spec.margin.value = kMargin;
  return spec;
}

// The share of simulated runs of the truth `gap` of all arms after the first that are decided.
double ShareDecided(ClaimKind kind, size_t arms, double gap, double sd, int seeds, double alpha) {
  TrueEffects effects{.arms = std::vector<double>(arms, gap), .seeds = seeds, .scatter = {sd}};
  effects.arms[0] = 0;
  const ClaimTest test{.kind = kind, .contrasts = AgainstFirst(arms), .margin = kMargin};
  return ShareOf(1500, [&](uint64_t trial) {
    const Verdict verdict =
        TestClaim(test, Simulated(effects, trial), {.alpha = alpha, .plan = false}).verdict;
    return verdict == Verdict::kSupported || verdict == Verdict::kContradicted;
  });
}

TEST(SeedPlan, DecidesWithTheStatedProbabilityOnBothSidesOfTheMargin) {
  for (const ClaimKind kind : {ClaimKind::kDifference, ClaimKind::kEquivalence}) {
    const ClaimSpec spec = SpecOf(kind);
    for (const double sd : {0.012, 0.03}) {
      for (const int primary : {1, 6}) {
        SCOPED_TRACE(testing::Message() << ToString(kind) << " sd " << sd << " of " << primary);
        const SeedPlan plan = PlanSeeds(PilotOf(spec, 2, sd, 4), 4, primary);
        EXPECT_NEAR(plan.residual_sd, sd, 1e-12);
        EXPECT_NEAR(plan.contrast_sd, sd * std::sqrt(2.0), 1e-12);
        ASSERT_GE(plan.seeds, 2);
        ASSERT_LE(plan.seeds, kMostSeeds);
        double least = 1, least_of_fewer = 1;
        for (const double truth : {0.0, 2 * kMargin}) {
          const double alpha = 0.05 / primary;
          least = std::min(least, ShareDecided(kind, 2, truth, sd, plan.seeds, alpha));
          const int fewer = std::max(2, plan.seeds * 7 / 10);
          least_of_fewer = std::min(least_of_fewer, ShareDecided(kind, 2, truth, sd, fewer, alpha));
        }
        EXPECT_GE(least, 0.77) << plan.seeds;
        EXPECT_LT(least_of_fewer, 0.8) << plan.seeds;
      }
    }
  }
}

// With several contrasts the plan is a bound: it may be larger than needed, never smaller.
TEST(SeedPlan, OfSeveralContrastsIsABound) {
  const ClaimSpec spec = SpecOf(ClaimKind::kDifference);
  const double sd = 0.02;
  const SeedPlan plan = PlanSeeds(PilotOf(spec, 4, sd, 3), 3, 1);
  for (const double truth : {0.0, 2 * kMargin}) {
    EXPECT_GE(ShareDecided(spec.kind, 4, truth, sd, plan.seeds, 0.05), 0.77);
  }
}

TEST(SeedPlan, IsTheSameFromAPilotOfAnySizeThatFindsTheSameScatter) {
  const ClaimSpec spec = SpecOf(ClaimKind::kDifference);
  const int seeds = PlanSeeds(PilotOf(spec, 2, 0.02, 3), 3, 2).seeds;
  for (const int pilot : {2, 5, 20}) {
    EXPECT_EQ(PlanSeeds(PilotOf(spec, 2, 0.02, pilot), pilot, 2).seeds, seeds);
  }
}

TEST(SeedPlan, SaysWhyThereIsNone) {
  ClaimSpec spec = SpecOf(ClaimKind::kDifference);
  const auto note = [&](const JudgedClaim& claim) {
    const SeedPlan plan = PlanSeeds(claim, 4, 1);
    EXPECT_EQ(plan.seeds, 0);
    return plan.note;
  };
  JudgedClaim claim = PilotOf(spec, 2, 0.02, 4);
  claim.evidence.not_tested = "was not trained: x";
  EXPECT_EQ(note(claim), "not tested: was not trained: x");
  claim = PilotOf(spec, 2, 0.02, 4);
  claim.result.contrasts[0].standard_error = std::nan("");
  EXPECT_EQ(note(claim), "its scatter is not known: runs are missing or diverged");
  spec.margin.value = 0;
  claim = PilotOf(spec, 2, 0.02, 4);
  EXPECT_EQ(note(claim), "its margin is 0, and no effect of the paper is stated");
  spec.papers_effect = 0.02;
  EXPECT_GT(PlanSeeds(claim, 4, 1).seeds, 2);
  spec.kind = ClaimKind::kDivergence;
  EXPECT_NE(note(claim), "");
}

}  // namespace
}  // namespace numsim::experiments
