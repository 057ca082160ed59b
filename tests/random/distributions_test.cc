#include "numsim/random/distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "numsim/stats/moments.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr RandomStream kStream = {.seed = 2024, .stream = 7};
constexpr size_t kDraws = 200000;
constexpr Distribution kAll[] = {
    Distribution::kNormal, Distribution::kUniform, Distribution::kLaplace, Distribution::kStudent3};

std::vector<float> Draws(Distribution distribution,
                         uint64_t first,
                         size_t n,
                         RandomStream stream = kStream) {
  std::vector<float> draws(n);
  Fill(distribution, stream, first, draws);
  return draws;
}

Moments MomentsOf(const std::vector<float>& draws) {
  Moments moments;
  for (float x : draws) moments.Add(static_cast<double>(x));
  return moments;
}

// The middle of the word's interval.
long double U(uint64_t j) {
  return (static_cast<long double>(RandomWord(kStream, j)) + 0.5L) / 4294967296.0L;
}

// The documented mappings, one draw at a time.
long double NormalDraw(uint64_t i) {
  const uint64_t even = i - i % 2;
  const long double r = std::sqrt(-2 * std::log(U(even)));
  const long double angle = 2 * std::numbers::pi_v<long double> * U(even + 1);
  return i % 2 == 0 ? r * std::cos(angle) : r * std::sin(angle);
}

long double UniformDraw(uint64_t i) { return std::sqrt(3.0L) * (2 * U(i) - 1); }

long double LaplaceDraw(uint64_t i) {
  const uint32_t word = RandomWord(kStream, i);
  const long double v = (static_cast<long double>(word % 0x80000000u) + 0.5L) / 2147483648.0L;
  const long double magnitude = -std::log(v) / std::sqrt(2.0L);
  return word >= 0x80000000u ? -magnitude : magnitude;
}

long double StudentDraw(uint64_t i) {
  const long double z = NormalDraw(4 * i), other = NormalDraw(4 * i + 1);
  return z / std::sqrt(other * other - 2 * std::log(U(4 * i + 2)));
}

using Mapping = long double (*)(uint64_t);
Mapping MappingOf(Distribution distribution) {
  switch (distribution) {
    case Distribution::kNormal:
      return NormalDraw;
    case Distribution::kUniform:
      return UniformDraw;
    case Distribution::kLaplace:
      return LaplaceDraw;
    case Distribution::kStudent3:
      break;
  }
  return StudentDraw;
}

// Distribution functions, all of variance 1.
double Cdf(Distribution distribution, double x) {
  switch (distribution) {
    case Distribution::kNormal:
      return std::erfc(-x / std::numbers::sqrt2) / 2;
    case Distribution::kUniform:
      return 0.5 + x / (2 * std::sqrt(3.0));
    case Distribution::kLaplace: {
      const double tail = std::exp(-std::abs(x) * std::numbers::sqrt2) / 2;
      return x < 0 ? tail : 1 - tail;
    }
    case Distribution::kStudent3:
      break;
  }
  // With t = sqrt(3) x: 1/2 + (x / (1 + x^2) + atan x) / pi.
  return 0.5 + (x / (1 + x * x) + std::atan(x)) / std::numbers::pi;
}

TEST(Distributions, EqualTheDocumentedMappingDrawByDraw) {
  for (Distribution distribution : kAll) {
    for (uint64_t first : {0ull, 12345ull, (1ull << 32) - 100}) {
      const std::vector<float> draws = Draws(distribution, first, 300);
      for (size_t i = 0; i < draws.size(); ++i) {
        // Rounded once to float32 from a float64 good to some ulps: at most the neighbour.
        const float want = static_cast<float>(MappingOf(distribution)(first + i));
        EXPECT_LE(std::abs(draws[i] - want), std::abs(want) * 0x1p-23f)
            << ToString(distribution) << " " << first + i;
      }
    }
  }
}

TEST(Distributions, ADrawIsTheSameWhateverRangeItIsPartOf) {
  for (Distribution distribution : kAll) {
    for (uint64_t base : {uint64_t{0}, (uint64_t{1} << 40) + 8}) {
      const std::vector<float> whole = Draws(distribution, base, 400);
      for (size_t first : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 129, 200}) {
        for (size_t n : {0, 1, 2, 3, 15, 17, 63, 64, 65, 128, 199}) {
          const std::vector<float> part = Draws(distribution, base + first, n);
          EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first))
              << ToString(distribution) << " " << first << " " << n;
        }
      }
    }
  }
}

TEST(Distributions, SeedsAndStreamsDrawApart) {
  for (Distribution distribution : kAll) {
    const std::vector<float> draws = Draws(distribution, 0, 1000);
    for (RandomStream other : {RandomStream{2025, 7}, RandomStream{2024, 8}}) {
      const std::vector<float> others = Draws(distribution, 0, 1000, other);
      Comoments comoments;
      for (size_t i = 0; i < draws.size(); ++i) {
        comoments.Add(static_cast<double>(draws[i]), static_cast<double>(others[i]));
      }
      EXPECT_LT(std::abs(comoments.Correlation()), 0.13) << ToString(distribution);  // four sigma
    }
  }
}

TEST(Distributions, NeighbouringDrawsAreUncorrelated) {
  for (Distribution distribution : kAll) {
    const std::vector<float> draws = Draws(distribution, 0, kDraws);
    for (size_t lag : {1, 2, 4, 16, 64}) {
      Comoments comoments;
      for (size_t i = lag; i < draws.size(); ++i) {
        comoments.Add(static_cast<double>(draws[i - lag]), static_cast<double>(draws[i]));
      }
      EXPECT_LT(std::abs(comoments.Correlation()), 0.01) << ToString(distribution) << " " << lag;
    }
  }
}

TEST(Distributions, HaveMeanZeroAndVarianceOne) {
  for (Distribution distribution : kAll) {
    const Moments moments = MomentsOf(Draws(distribution, 0, kDraws));
    EXPECT_NEAR(moments.Mean(), 0.0, 4 / std::sqrt(kDraws)) << ToString(distribution);
    // Student's fourth moment is infinite: its sample variance settles slowly.
    const double tolerance = distribution == Distribution::kStudent3 ? 0.15 : 0.025;
    EXPECT_NEAR(moments.Variance(), 1.0, tolerance) << ToString(distribution);
  }
}

TEST(Distributions, HaveTheKurtosisOfTheirKind) {
  const auto kurtosis = [](Distribution distribution) {
    return MomentsOf(Draws(distribution, 0, kDraws)).Kurtosis();
  };
  EXPECT_NEAR(kurtosis(Distribution::kNormal), 3.0, 0.06);
  EXPECT_NEAR(kurtosis(Distribution::kUniform), 1.8, 0.02);
  EXPECT_NEAR(kurtosis(Distribution::kLaplace), 6.0, 0.4);
  EXPECT_GT(kurtosis(Distribution::kStudent3), 9.0);
}

// The distance's 99.9 % quantile for n draws is 1.95 / sqrt n.
TEST(Distributions, AreCloseToTheExactDistributionFunction) {
  for (Distribution distribution : kAll) {
    std::vector<float> draws = Draws(distribution, 0, kDraws);
    std::sort(draws.begin(), draws.end());
    double distance = 0;
    for (size_t i = 0; i < draws.size(); ++i) {
      const double exact = Cdf(distribution, static_cast<double>(draws[i]));
      const double below = static_cast<double>(i) / kDraws;
      const double above = static_cast<double>(i + 1) / kDraws;
      distance = std::max({distance, exact - below, above - exact});
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(kDraws)) << ToString(distribution);
  }
}

TEST(Distributions, UniformStaysWithinItsRangeAndFillsIt) {
  const std::vector<float> draws = Draws(Distribution::kUniform, 0, kDraws);
  const auto [low, high] = std::minmax_element(draws.begin(), draws.end());
  EXPECT_GE(*low, -std::sqrt(3.0f));
  EXPECT_LE(*high, std::sqrt(3.0f));
  EXPECT_LT(*low, -1.7319f);
  EXPECT_GT(*high, 1.7319f);
}

TEST(Distributions, FillNormalIsFillOfTheNormal) {
  std::vector<float> draws(130);
  FillNormal(kStream, 5, draws);
  EXPECT_EQ(draws, Draws(Distribution::kNormal, 5, 130));
}

TEST(Distributions, NamesParseBackAndOthersAreRefusedWithTheList) {
  for (const char* text : {"normal", "uniform", "laplace", "student-t3"}) {
    EXPECT_EQ(ToString(ParseDistribution(text)), text);
  }
  EXPECT_EQ(ErrorOf([] { ParseDistribution("cauchy"); }),
            "distribution 'cauchy' is not one of normal, uniform, laplace, student-t3");
}

}  // namespace
}  // namespace numsim
