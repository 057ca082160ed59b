// The vector arithmetic against scalar loops, bit by bit, on lengths with every tail.
#include "numsim/optim/optimizer_directions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/random/distributions.h"
#include "numsim/updates/shared/decay_update.h"
#include "tests/support/every_backend.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using optimizer_problem::Floats;

// Normal draws with zeros, subnormals, huge and tiny numbers among them.
Floats Draw(size_t n, uint64_t stream) {
  Floats x(n);
  FillNormal({17, stream}, 0, x);
  const Floats special = {0, -0.0f, 1e-42f, -1e-42f, 3e38f, -1e30f, 1e-25f, 1};
  for (size_t i = 3; i < n; i += 11) x[i] = special[(i + stream) % special.size()];
  return x;
}

template <typename Check>
void WithEachLength(const Check& check) {
  WithEachBackend([&] {
    for (size_t n = 0; n <= 67; ++n) check(n);
    check(4096);
  });
}

TEST(OptimizerDirections, AveragesRoundEveryOperation) {
  const AverageRates rates = {0.9f, 1.0f - 0.9f};
  WithEachLength([&](size_t n) {
    const Floats x = Draw(n, 1);
    Floats m = Draw(n, 2), v = Draw(n, 3), expected_m = m, expected_v = v;
    for (size_t i = 0; i < n; ++i) {
      const float kept = rates.keep * m[i], added = rates.share * x[i];
      expected_m[i] = kept + added;
      const float square = x[i] * x[i];
      const float kept_square = rates.keep * v[i], added_square = rates.share * square;
      expected_v[i] = kept_square + added_square;
    }
    UpdateAverage(x.data(), n, rates, m.data());
    UpdateSquareAverage(x.data(), n, rates, v.data());
    EXPECT_TRUE(SameBits(m, expected_m)) << n;
    EXPECT_TRUE(SameBits(v, expected_v)) << n;
  });
}

TEST(OptimizerDirections, AdamDividesByTheRootAndEpsilon) {
  const AdamDenominator denominator = {0.0975f, 1e-8f};
  WithEachLength([&](size_t n) {
    const Floats m = Draw(n, 1);
    Floats v = Draw(n, 2), d(n), expected(n), r(n), bounded(n), added(n);
    for (float& x : v) x = std::abs(x);
    for (size_t i = 0; i < n; ++i) {
      const float root = std::sqrt(v[i] / denominator.correction);
      const float divisor = root + denominator.epsilon;
      const float mean = m[i] / 0.19f;
      expected[i] = -(mean / divisor);
      bounded[i] = m[i] / std::max(root, denominator.epsilon);
      added[i] = m[i] / divisor;
    }
    AdamDirection(m.data(), v.data(), n, 0.19f, denominator, d.data());
    EXPECT_TRUE(SameBits(d, expected)) << n;
    GradientRatios(m.data(), v.data(), n, denominator, false, r.data());
    EXPECT_TRUE(SameBits(r, bounded)) << n;
    GradientRatios(m.data(), v.data(), n, denominator, true, r.data());
    EXPECT_TRUE(SameBits(r, added)) << n;
  });
}

TEST(OptimizerDirections, RatiosKeepNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  WithEachLength([&](size_t n) {
    const Floats x(n, 1), v(n, nan);
    Floats r(n);
    for (const bool added : {false, true}) {
      GradientRatios(x.data(), v.data(), n, {1, 1e-8f}, added, r.data());
      for (const float ratio : r) EXPECT_TRUE(std::isnan(ratio));
    }
  });
}

TEST(OptimizerDirections, LionHasThreeValues) {
  WithEachLength([&](size_t n) {
    const Floats x = Draw(n, 1), m = Draw(n, 2);
    Floats d(n), expected(n);
    for (size_t i = 0; i < n; ++i) {
      const float kept = 0.75f * m[i], added = 0.25f * x[i];
      const float y = kept + added;
      expected[i] = y > 0 ? -1.0f : y < 0 ? 1.0f : 0.0f;
    }
    LionDirection(x.data(), m.data(), n, {0.75f, 0.25f}, d.data());
    EXPECT_EQ(d, expected) << n;
  });
  const float nan = std::numeric_limits<float>::quiet_NaN(), zero = 0;
  float d = 0;
  LionDirection(&nan, &zero, 1, {0.5f, 0.5f}, &d);
  EXPECT_TRUE(std::isnan(d));
}

TEST(OptimizerDirections, DecayRoundsOnceFromFloat64) {
  const size_t n = 1000;
  const Floats u = Draw(n, 1), w = Draw(n, 2);
  Floats d = u;
  DecayUpdate(u.data(), w.data(), n, 0.1f, d.data());
  Floats in_place = u;
  DecayUpdate(in_place.data(), w.data(), n, 0.1f, in_place.data());
  EXPECT_TRUE(SameBits(d, in_place));
  size_t unlike = 0;
  for (size_t i = 0; i < n; ++i) {
    const long double exact =
        static_cast<long double>(u[i]) - static_cast<long double>(0.1f) * w[i];
    EXPECT_EQ(d[i], static_cast<float>(static_cast<double>(exact)));
    unlike += d[i] != u[i] - 0.1f * w[i] ? 1 : 0;
  }
  EXPECT_GT(unlike, 10u) << "rounding in float32 twice would do as well";
}

}  // namespace
}  // namespace numsim
