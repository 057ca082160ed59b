// The functions against the C library's in long double, which has eleven bits more.
#include "numsim/base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace numsim {
namespace {

constexpr double kUlps = 4;  // what the header promises
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kLargest = std::numeric_limits<double>::max();

static_assert(std::numeric_limits<long double>::digits >= 64, "no wider type to compare with");

// Distance from the exact value in units of its last place in double.
double UlpError(double got, long double want) {
  if (want == 0) return got == 0 ? 0 : std::numeric_limits<double>::infinity();
  // Subnormal doubles have the spacing of the smallest normal one.
  const int exponent = std::max(std::ilogb(want), -1022);
  return static_cast<double>(
      std::scalbn(std::abs(static_cast<long double>(got) - want), 52 - exponent));
}

// A small generator: 53 random bits as a number in [0, 1).
class Uniform {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 1;
};

void ExpectLog(double x) {
  EXPECT_LT(UlpError(Log(x), std::log(static_cast<long double>(x))), kUlps) << "ln " << x;
}

void ExpectExp(double x) {
  EXPECT_LT(UlpError(Exp(x), std::exp(static_cast<long double>(x))), kUlps) << "exp " << x;
}

// The quarter turns are taken off before the multiplication by pi: 4u and the difference are exact.
void ExpectSinCos(double u) {
  const long double turns = static_cast<long double>(u);
  const long double quarters = std::nearbyint(4 * turns);
  const long double angle = (turns - quarters / 4) * 2 * std::numbers::pi_v<long double>;
  const long double sin = std::sin(angle), cos = std::cos(angle);
  const long double sins[] = {sin, cos, -sin, -cos};
  const int quadrant = static_cast<int>(quarters) % 4;
  const SinCos got = SinCos2Pi(u);
  EXPECT_LT(UlpError(got.sin, sins[quadrant]), kUlps) << "sin 2 pi " << u;
  EXPECT_LT(UlpError(got.cos, sins[(quadrant + 1) % 4]), kUlps) << "cos 2 pi " << u;
}

TEST(Log, IsRightInEveryBinade) {
  Uniform uniform;
  for (int e = -1022; e <= 1023; ++e) {
    for (int i = 0; i < 20; ++i) ExpectLog(std::ldexp(1 + uniform.Next(), e));
    ExpectLog(std::ldexp(1.0, e));
  }
}

TEST(Log, IsRightNearOne) {
  Uniform uniform;
  for (int e = -52; e <= -1; ++e) {
    for (int i = 0; i < 200; ++i) {
      const double d = std::ldexp(1 + uniform.Next(), e);
      ExpectLog(1 + d);
      if (d < 1) ExpectLog(1 - d);
    }
  }
  ExpectLog(std::nextafter(1.0, 0.0));
  ExpectLog(std::nextafter(1.0, 2.0));
}

// Where the mantissa's range folds over.
TEST(Log, IsRightAroundTheRootOfTwo) {
  for (double root : {std::numbers::sqrt2, std::numbers::sqrt2 / 2, 2 * std::numbers::sqrt2}) {
    for (int i = -200; i <= 200; ++i) {
      ExpectLog(std::bit_cast<double>(std::bit_cast<int64_t>(root) + i));
    }
  }
}

TEST(Log, OfOneIsPlusZero) { EXPECT_EQ(std::bit_cast<uint64_t>(Log(1.0)), 0u); }

TEST(Log, IsRightForSubnormalNumbers) {
  Uniform uniform;
  for (int e = -1074; e <= -1023; ++e) {
    ExpectLog(std::ldexp(1.0, e));
    for (int i = 0; i < 20; ++i) ExpectLog(std::ldexp(1 + uniform.Next(), e));
  }
}

TEST(Log, OfWhatHasNone) {
  EXPECT_EQ(Log(0.0), -kInfinity);
  EXPECT_EQ(Log(-0.0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  for (const double x : {kNaN, -kNaN, -kInfinity, -1.0, -kLeast, -kLargest}) {
    EXPECT_TRUE(std::isnan(Log(x))) << x;
  }
  // Signalling, and with other payloads.
  for (const uint64_t bits : {0x7FF0000000000001u, 0x7FFFFFFFFFFFFFFFu, 0xFFF8000000000001u}) {
    EXPECT_TRUE(std::isnan(Log(std::bit_cast<double>(bits)))) << bits;
  }
}

TEST(Exp, OfWhatOverflowsOrVanishes) {
  const double last = std::log(kLargest), first = std::log(kLeast);
  for (const double x : {last - 1e-12, 701.0, first + 1e-9, -709.0, -740.0}) ExpectExp(x);
  for (const double x : {last + 1e-12, 710.0, 711.0, 1e300, kLargest, kInfinity}) {
    EXPECT_EQ(Exp(x), kInfinity) << x;
  }
  for (const double x : {first - 1, -746.0, -747.0, -1e300, -kLargest, -kInfinity}) {
    EXPECT_EQ(Exp(x), 0) << x;
  }
  for (const double x : {kNaN, -kNaN}) EXPECT_TRUE(std::isnan(Exp(x)));
}

TEST(Exp, IsRightOverItsWholeRange) {
  Uniform uniform;
  for (int i = 0; i < 40000; ++i) ExpectExp(-745 + 1454 * uniform.Next());
  for (int i = 0; i < 40000; ++i) ExpectExp(1399.98 * (uniform.Next() - 0.5));
  ExpectExp(std::nextafter(700.0, 0.0));
  ExpectExp(-std::nextafter(700.0, 0.0));
}

TEST(Exp, IsRightNearZero) {
  Uniform uniform;
  for (int e = -70; e <= 2; ++e) {
    for (int i = 0; i < 100; ++i) {
      const double x = std::ldexp(1 + uniform.Next(), e);
      ExpectExp(x);
      ExpectExp(-x);
    }
  }
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-0.0), 1.0);
}

TEST(Exp, IsRightAroundHalfMultiplesOfLnTwo) {
  for (int k = -2019; k <= 2019; k += 2) {
    const double x = k * std::numbers::ln2 / 2;
    if (std::abs(x) >= 700) continue;
    for (double at : {std::nextafter(x, -1000.0), x, std::nextafter(x, 1000.0)}) ExpectExp(at);
  }
}

TEST(SinCos2Pi, IsRightOverTheWholeTurn) {
  Uniform uniform;
  for (int i = 0; i < 40000; ++i) ExpectSinCos(uniform.Next());
  for (int i = 0; i <= 4096; ++i) ExpectSinCos(i / 4096.0);
}

TEST(SinCos2Pi, IsRightNearItsZeros) {
  Uniform uniform;
  for (double zero : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    for (int e = -60; e <= -4; ++e) {
      const double d = std::ldexp(1 + uniform.Next(), e);
      if (zero < 1) ExpectSinCos(zero + d);
      if (zero > 0) ExpectSinCos(zero - d);
    }
  }
}

TEST(SinCos2Pi, IsNaNOutsideTheTurn) {
  for (const double u : {kNaN, kInfinity, -kInfinity, -kLeast, std::nextafter(1.0, 2.0), 1e300}) {
    EXPECT_TRUE(std::isnan(SinCos2Pi(u).sin) && std::isnan(SinCos2Pi(u).cos)) << u;
  }
}

TEST(SinCos2Pi, IsExactAtQuarterTurns) {
  const double sins[] = {0, 1, 0, -1, 0};
  const double coss[] = {1, 0, -1, 0, 1};
  for (int quarter = 0; quarter <= 4; ++quarter) {
    EXPECT_EQ(SinCos2Pi(0.25 * quarter).sin, sins[quarter]) << quarter;
    EXPECT_EQ(SinCos2Pi(0.25 * quarter).cos, coss[quarter]) << quarter;
  }
}

}  // namespace
}  // namespace numsim
