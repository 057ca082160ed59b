// Ratios of rates: exact tails by sums, simulated counts whose ratio is known, and the edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "experiments/claims/ratio_statistics.h"
#include "experiments/claims/verdict.h"
#include "tests/claims/simulated_table.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ClaimTest Fewer(double margin) {
  return {.kind = ClaimKind::kRatio,
          .contrasts = {Gap("with", "without")},
          .side = -1,
          .margin = margin};
}

OutcomeTable TableOf(std::vector<double> with, const std::vector<double>& without) {
  OutcomeTable table = {{"with", "without"}, static_cast<int>(with.size()), std::move(with)};
  table.values.insert(table.values.end(), without.begin(), without.end());
  return table;
}

// P(X <= k) of n trials by its terms.
double AtMost(int k, int n, double p) {
  double sum = 0;
  for (int i = 0; i <= k; ++i) {
    sum += std::exp(std::lgamma(n + 1.) - std::lgamma(i + 1.) - std::lgamma(n - i + 1.)) *
           std::pow(p, i) * std::pow(1 - p, n - i);
  }
  return sum;
}

// Counts that scatter less than Poisson's are judged by the exact test.
TEST(RatioBelow, OfCalmCountsIsTheBinomialTail) {
  const PairedCounts counts{{1, 2, 1, 2, 1}, {4, 5, 5, 4, 4}};  // 7 and 22
  EXPECT_NEAR(RatioBelow(counts, 1), AtMost(7, 29, 0.5), 1e-13);
  EXPECT_NEAR(RatioBelow(counts, 0.8), AtMost(7, 29, 0.8 / 1.8), 1e-13);
  const PairedCounts none{{0, 0, 0}, {1, 1, 1}};
  EXPECT_NEAR(RatioBelow(none, 1), 1 / 8., 1e-15) << "equal differences are no certainty";
}

// Counts that scatter more are judged by Student's t of x - r y: for two degrees of freedom
// P(T < -t) = (1 - t / sqrt(2 + t^2)) / 2.
TEST(RatioBelow, OfWildCountsIsTheTailOfStudentsT) {
  const PairedCounts counts{{0, 10, 5}, {30, 100, 20}};  // differences -30, -90, -15
  const double mean = 45, error = std::sqrt((225 + 2025 + 900) / 2. / 3), t = mean / error;
  EXPECT_NEAR(RatioBelow(counts, 1), (1 - t / std::sqrt(2 + t * t)) / 2, 1e-12);
  EXPECT_GT(RatioAbove(counts, 1), 0.5);
}

// x is smaller than y by the same number at every seed, but one seed has nearly all events of y: without
// it there is nothing to be smaller than. For three degrees of freedom, with s = t / sqrt(3),
// P(T > t) = 1/2 - (s / (1 + s^2) + atan(s)) / pi.
TEST(RatioBelow, NeedsEventsOfTheSecondArmAtMoreThanOneSeed) {
  const PairedCounts counts{{0, 2000, 0, 0}, {100, 2100, 100, 100}};
  const double s = 600 / 500. / std::sqrt(3.);  // of y: mean 600, standard error 500
  const double tail = 0.5 - (s / (1 + s * s) + std::atan(s)) / std::numbers::pi;
  EXPECT_NEAR(RatioBelow(counts, 1), tail, 1e-12);
}

TEST(RatioBelow, DoesNotRiseWithTheRatioAndIsMirrored) {
  const PairedCounts counts{{3, 0, 2, 6}, {5, 1, 9, 8}}, swapped{counts.second, counts.first};
  double before = 1;
  for (const double ratio : {0.05, 0.2, 0.5, 0.9, 1.3, 2.0, 5.0, 1e3, kInfinity}) {
    const double p = RatioBelow(counts, ratio);
    EXPECT_LE(p, before);
    EXPECT_EQ(p, RatioAbove(swapped, 1 / ratio));
    before = p;
  }
}

// An end of the interval is the ratio that is just rejected at that level.
TEST(TestClaim, OfARatioHasTheIntervalOfItsTests) {
  const OutcomeTable table =
      TableOf({3, 0, 2, 6, 4, 1, 2, 3}, {5, 4, 9, 8, 7, 3, 6, 12});  // 21 and 54
  const ClaimResult result = TestClaim(Fewer(1), table);
  const ContrastResult& ratio = result.contrasts[0];
  EXPECT_NEAR(ratio.value, 21 / 54., 1e-15);
  EXPECT_EQ(result.confidence, 0.95);
  const PairedCounts counts{{3, 0, 2, 6, 4, 1, 2, 3}, {5, 4, 9, 8, 7, 3, 6, 12}};
  EXPECT_NEAR(RatioBelow(counts, ratio.high), 0.025, 1e-9);
  EXPECT_NEAR(RatioAbove(counts, ratio.low), 0.025, 1e-9);
  EXPECT_EQ(result.verdict, Verdict::kSupported);
  EXPECT_EQ(TestClaim(Fewer(0.5), table).verdict, Verdict::kInconclusive);
  ClaimTest more = Fewer(1);
  more.side = 1;
  EXPECT_EQ(TestClaim(more, table).verdict, Verdict::kContradicted);
}

TEST(TestClaim, OfARatioWithoutEventsIsOpen) {
  const ClaimResult none = TestClaim(Fewer(1), TableOf({0, 0, 0}, {0, 0, 0}));
  EXPECT_EQ(none.verdict, Verdict::kInconclusive);
  EXPECT_TRUE(std::isnan(none.contrasts[0].value));
  EXPECT_EQ(none.contrasts[0].low, 0);
  EXPECT_EQ(none.contrasts[0].high, kInfinity);
  EXPECT_EQ(none.seeds_to_decide, 0);
  // No event of one arm beside 14 of the other excludes 1, and no ratio near 0.
  const ClaimResult zero = TestClaim(Fewer(1), TableOf({0, 0, 0, 0}, {3, 4, 4, 3}));
  EXPECT_EQ(zero.verdict, Verdict::kSupported);
  EXPECT_EQ(zero.contrasts[0].low, 0);
  EXPECT_GT(zero.contrasts[0].high, 0.2);
  const ClaimResult without = TestClaim(Fewer(1), TableOf({3, 4, 4, 3}, {0, 0, 0, 0}));
  EXPECT_EQ(without.verdict, Verdict::kContradicted);
  EXPECT_EQ(without.contrasts[0].value, kInfinity);
  EXPECT_EQ(TestClaim(Fewer(1), TableOf({0}, {9})).reason, "one seed");
}

TEST(TestClaim, OfARatioRefusesOtherOutcomesAndMargins) {
  const OutcomeTable table = TableOf({1, 2}, {2, 2});
  EXPECT_EQ(ErrorOf([&] {
              TestClaim(Fewer(1), TableOf({1.5, 2}, {2, 2}));
            }),
            "TestClaim: an outcome of a ratio is 1.5, expected a whole number from 0 on");
  EXPECT_EQ(ErrorOf([&] { TestClaim(Fewer(0.4), table); }),
            "TestClaim: the margin of a ratio that is smaller is 0.4, expected 0.5 to 1, at most "
            "half of the possible effect");
  EXPECT_NE(ErrorOf([&] { TestClaim(Fewer(1.2), table); }), kNoError);
  ClaimTest more = Fewer(0.9);
  more.side = 1;
  EXPECT_NE(ErrorOf([&] { TestClaim(more, table); }), kNoError);
  ClaimTest weighed = Fewer(1);
  weighed.contrasts[0][0].weight = 2;
  weighed.contrasts[0][1].weight = -2;
  EXPECT_NE(ErrorOf([&] { TestClaim(weighed, table); }), kNoError);
}

// Counts of two arms whose true ratio is known: a seed's rate is a gamma variable of that relative
// variance, half of which both arms share.
struct TrueRates {
  int seeds;
  double events, ratio, variance;
};

OutcomeTable SimulatedCounts(const TrueRates& truth, uint64_t trial) {
  std::mt19937_64 bits(977 * trial + 1);
  const auto factor = [&] {
    const double v = truth.variance / 2;
    return v == 0 ? 1 : std::gamma_distribution<double>(1 / v, v)(bits);
  };
  OutcomeTable table = {{"with", "without"}, truth.seeds, {}};
  std::vector<double> second;
  for (int seed = 0; seed < truth.seeds; ++seed) {
    const double shared = truth.events * factor();
    const double rates[2] = {truth.ratio * shared * factor(), shared * factor()};
    table.values.push_back(std::poisson_distribution<int>(rates[0])(bits));
    second.push_back(std::poisson_distribution<int>(rates[1])(bits));
  }
  table.values.insert(table.values.end(), second.begin(), second.end());
  return table;
}

TEST(SimulatedRatio, AtTheMarginIsWrongAtMostOnceInTwentyTimes) {
  constexpr int kTrials = 2000;
  for (const int seeds : {3, 10, 40}) {
    for (const double events : {0.5, 4.0}) {
      for (const double ratio : {0.5, 1.0}) {
        for (const double variance : {0.0, 0.5, 2.0}) {
          int supported = 0, contradicted = 0;
          for (int trial = 0; trial < kTrials; ++trial) {
            const OutcomeTable table = SimulatedCounts({seeds, events, ratio, variance}, trial);
            const auto middle = table.values.begin() + seeds;
            const PairedCounts counts{{table.values.begin(), middle}, {middle, table.values.end()}};
            supported += RatioBelow(counts, ratio) <= 0.025;
            contradicted += RatioAbove(counts, ratio) <= 0.025;
          }
          const double most = 0.025 + MonteCarloError(0.025, kTrials);
          EXPECT_LT(supported, most * kTrials) << seeds << " " << events << " " << variance;
          EXPECT_LT(contradicted, most * kTrials) << seeds << " " << events << " " << variance;
          if (seeds < 40 || events < 1) continue;
          EXPECT_GT(supported + contradicted, 0.02 * kTrials);
        }
      }
    }
  }
}

// As many events as the constant rate of loss-spikes: half of 2 per run in 40 runs is seen to be fewer.
TEST(SimulatedRatio, FindsFewerEventsAtTheSeedsThatItNames) {
  constexpr int kTrials = 200;
  const auto power = [&](int seeds) {
    return ShareOf(kTrials, [&](uint64_t trial) {
      const OutcomeTable table = SimulatedCounts({seeds, 2, 0.5, 0.3}, trial);
      return TestClaim(Fewer(1), table, {.plan = false}).verdict == Verdict::kSupported;
    });
  };
  EXPECT_GT(power(40), 0.85);
  std::vector<int> named;  // at estimates that scatter: their median is that of the truth
  for (int trial = 0; trial < 41; ++trial) {
    const OutcomeTable table = SimulatedCounts({40, 2, 0.5, 0.3}, trial);
    named.push_back(TestClaim(Fewer(1), table).seeds_to_decide);
  }
  std::nth_element(named.begin(), named.begin() + 20, named.end());
  EXPECT_GT(power(named[20]), 0.65);
  EXPECT_LT(power(named[20]), 0.95);
}

}  // namespace
}  // namespace numsim::experiments
