// Directions against closed forms and a float64 computation of the same recurrences.
#include "numsim/updates/update_direction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/random/distributions.h"

namespace numsim {
namespace {

using Floats = std::vector<float>;

TEST(Momentum, SumsGradientsWithDecay) {
  Momentum momentum(2, {.beta = 0.5f});
  Floats u(2);
  momentum.Next(Floats{4, -2}, u);
  EXPECT_EQ(u, (Floats{-4, 2}));
  momentum.Next(Floats{1, 0}, u);
  EXPECT_EQ(u, (Floats{-3, 1}));
  EXPECT_EQ(Floats(momentum.Mean().begin(), momentum.Mean().end()), (Floats{3, -1}));
}

TEST(Momentum, DampedAveragesGradients) {
  Momentum momentum(1, {.beta = 0.75f, .damped = true});
  Floats u(1);
  momentum.Next(Floats{8}, u);
  EXPECT_EQ(u[0], -2);
  momentum.Next(Floats{4}, u);
  EXPECT_EQ(u[0], -2.5f);
  for (int i = 0; i < 200; ++i) momentum.Next(Floats{4}, u);
  EXPECT_NEAR(u[0], -4, 1e-5);
}

TEST(Momentum, WithoutDecayIsTheGradient) {
  for (const bool damped : {false, true}) {
    Momentum momentum(1, {.beta = 0, .damped = damped});
    Floats u(1);
    momentum.Next(Floats{3}, u);
    momentum.Next(Floats{-5}, u);
    EXPECT_EQ(u[0], 5);
  }
}

// fl(beta m) and the sum are rounded one by one: no fused multiply-add.
TEST(Momentum, RoundsEveryOperation) {
  const float beta = 0.9f, m = 1.0f / 3, g = -0.3f;
  Momentum momentum(1, {.beta = beta});
  Floats u(1);
  momentum.Next(Floats{m}, u);
  momentum.Next(Floats{g}, u);
  const auto product = static_cast<float>(static_cast<double>(beta) * static_cast<double>(m));
  const auto sum = static_cast<float>(static_cast<double>(product) + static_cast<double>(g));
  const auto fused = static_cast<float>(static_cast<double>(beta) * static_cast<double>(m) +
                                        static_cast<double>(g));
  ASSERT_NE(sum, fused);
  EXPECT_EQ(u[0], -sum);
}

TEST(Adam, FirstStepHasMagnitudeOneWhateverTheGradient) {
  Adam adam(4, {});
  Floats u(4);
  adam.Next(Floats{1e-3f, -7, 1e4f, 0}, u);
  EXPECT_NEAR(u[0], -1, 2e-5);
  EXPECT_NEAR(u[1], 1, 1e-6);
  EXPECT_NEAR(u[2], -1, 1e-6);
  EXPECT_EQ(u[3], 0);
  EXPECT_EQ(adam.Steps(), 1u);
}

// Betas that are powers of two: every value by hand.
TEST(Adam, SecondStepHasTheClosedForm) {
  Adam adam(1, {.beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.5f});
  Floats u(1);
  adam.Next(Floats{4}, u);
  EXPECT_EQ(adam.Mean()[0], 2);
  EXPECT_EQ(adam.Square()[0], 4);
  EXPECT_EQ(u[0], -4 / 4.5f);
  adam.Next(Floats{0}, u);
  EXPECT_EQ(adam.Mean()[0], 1);
  EXPECT_EQ(adam.Square()[0], 3);
  // 1 / 0.75 over sqrt(3 / 0.4375) + 0.5.
  EXPECT_NEAR(u[0], -(4.0 / 3) / (std::sqrt(3 / 0.4375) + 0.5), 1e-7);
}

TEST(Adam, FollowsTheRecurrencesInFloat64) {
  constexpr size_t n = 64;
  const Adam::Options options{.beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f};
  Adam adam(n, options);
  const double b1 = static_cast<double>(options.beta1), b2 = static_cast<double>(options.beta2);
  std::vector<double> m(n), v(n);
  Floats g(n), u(n);
  for (int t = 1; t <= 300; ++t) {
    FillNormal({1, static_cast<uint64_t>(t)}, 0, g);
    adam.Next(g, u);
    for (size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(g[i]);
      m[i] = b1 * m[i] + (1 - b1) * x;
      v[i] = b2 * v[i] + (1 - b2) * x * x;
      const double mean = m[i] / (1 - std::pow(b1, t)), square = v[i] / (1 - std::pow(b2, t));
      const double expected = -mean / (std::sqrt(square) + static_cast<double>(options.epsilon));
      ASSERT_NEAR(static_cast<double>(u[i]), expected, 3e-6) << "step " << t << " element " << i;
    }
  }
}

TEST(Adam, RoundsEveryOperation) {
  const float beta = 0.9f, first = 1.0f / 3, g = -0.3f;
  Adam adam(1, {.beta1 = beta, .beta2 = 0.99f});
  Floats u(1);
  adam.Next(Floats{first}, u);
  const float m = adam.Mean()[0];
  adam.Next(Floats{g}, u);
  const float share = 1.0f - beta;
  const auto round = [](double x) { return static_cast<float>(x); };
  const float kept = round(static_cast<double>(beta) * static_cast<double>(m));
  const float added = round(static_cast<double>(share) * static_cast<double>(g));
  EXPECT_EQ(adam.Mean()[0], round(static_cast<double>(kept) + static_cast<double>(added)));
}

TEST(UpdateDirection, MayBeWrittenOverTheGradient) {
  const Floats g = {1, -2, 3};
  Momentum a(3, {}), b(3, {});
  Adam c(3, {}), d(3, {});
  Floats apart(3), over = g;
  a.Next(g, apart);
  b.Next(over, over);
  EXPECT_EQ(apart, over);
  over = g;
  c.Next(g, apart);
  d.Next(over, over);
  EXPECT_EQ(apart, over);
}

TEST(UpdateDirection, SpecialGradientsStayInTheirElement) {
  const float inf = std::numeric_limits<float>::infinity();
  Adam adam(3, {});
  Momentum momentum(3, {});
  Floats u(3), v(3);
  adam.Next(Floats{inf, std::nanf(""), 1}, u);
  momentum.Next(Floats{inf, std::nanf(""), 1}, v);
  adam.Next(Floats{1, 1, 1}, u);
  momentum.Next(Floats{1, 1, 1}, v);
  EXPECT_TRUE(std::isnan(u[0]));
  EXPECT_TRUE(std::isnan(u[1]));
  EXPECT_NEAR(u[2], -1, 1e-6);
  EXPECT_EQ(v[0], -inf);
  EXPECT_TRUE(std::isnan(v[1]));
  EXPECT_NEAR(v[2], -1.9, 1e-6);
}

TEST(UpdateDirection, BadDecayRatesAndLengthsAbort) {
  EXPECT_DEATH(Momentum(1, {.beta = 1}), "beta");
  EXPECT_DEATH(Adam(1, {.beta2 = -0.5f}), "beta2");
  EXPECT_DEATH(Adam(1, {.epsilon = -1}), "-1");
  Adam adam(2, {});
  Floats u(1);
  EXPECT_DEATH(adam.Next(Floats{1, 2}, u), "elements");
}

}  // namespace
}  // namespace numsim
