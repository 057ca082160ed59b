#include "numsim/quantize/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

FormatSpec Spec(std::string_view name) { return ParseFormat(name).spec; }

float Up(float x) { return std::nextafter(x, std::numeric_limits<float>::infinity()); }
float Down(float x) { return std::nextafter(x, 0.0f); }

// log2 of a power of two. Fails the test for any other number.
int ExponentOf(float x) {
  int exponent = 0;
  EXPECT_EQ(std::frexp(x, &exponent), 0.5f) << x << " is no power of two";
  return exponent - 1;
}

// m * 2^exponent, exact.
double Times(float m, int exponent) { return std::ldexp(static_cast<double>(m), exponent); }

// Absolute maxima at and around powers of two times M, and over the range of float32.
std::vector<float> Maxima(float m) {
  std::vector<float> maxima;
  for (int e = -120; e <= 120; e += 8) {
    for (float at : {std::ldexp(1.0f, e), std::ldexp(m, e), std::ldexp(1.5f, e)}) {
      if (!std::isfinite(at) || at < kSmallestNormal) continue;
      for (float a : {Down(at), at, Up(at)}) {
        const double ratio = static_cast<double>(a) / static_cast<double>(m);
        if (ratio >= 0x1p-126 && ratio < 0x1p127 && std::isfinite(a)) maxima.push_back(a);
      }
    }
  }
  return maxima;
}

TEST(MakeScale, OfZeroIsOneUnderEveryRule) {
  for (const char* rule : {"absmax", "pow2-floor", "pow2-ceil", "e8m0", "none"}) {
    for (const FormatEntry& entry : FormatTable()) {
      const Scale scale = MakeScale(entry.spec, 0.0f, ParseScaleRule(rule));
      EXPECT_EQ(scale.scale, 1.0f) << entry.name << " " << rule;
      EXPECT_EQ(scale.inv_scale, 1.0f) << entry.name << " " << rule;
    }
  }
}

TEST(MakeScale, NoneIsAPlainCast) {
  for (float absmax : {kSmallest, 3.0f, kLargest}) {
    EXPECT_EQ(MakeScale(Spec("e4m3fn"), absmax, ScaleRule::kNone).scale, 1.0f);
    EXPECT_EQ(MakeScale(Spec("e4m3fn"), absmax, ScaleRule::kNone).inv_scale, 1.0f);
  }
}

TEST(MakeScale, AbsmaxIsTheRoundedQuotientAndTheRoundedInverseQuotient) {
  for (const char* name : {"int8", "e4m3fn", "e5m2", "e2m1fn", "e3m2fn", "fp16"}) {
    const float m = MaxFinite(Spec(name));
    for (float a : Maxima(m)) {
      const Scale scale = MakeScale(Spec(name), a, ScaleRule::kAbsmax);
      EXPECT_EQ(scale.scale, a / m) << name << " " << a;
      EXPECT_EQ(scale.inv_scale, m / a) << name << " " << a;
    }
  }
}

TEST(MakeScale, AbsmaxMapsTheLargestElementToTheLargestValue) {
  for (const FormatEntry& entry : FormatTable()) {
    if (entry.spec.Bits() > 8 || entry.spec.zero == Zero::kNone) continue;
    const float m = MaxFinite(entry.spec);
    for (float a : Maxima(m)) {
      const Scale scale = MakeScale(entry.spec, a, ScaleRule::kAbsmax);
      const uint32_t code = Encode(entry.spec, a * scale.inv_scale, {}, Overflow::kSaturate);
      EXPECT_EQ(code, entry.spec.MaxFiniteCode()) << entry.name << " " << a;
      if (entry.spec.IsSigned()) {
        const uint32_t negative = Encode(entry.spec, -a * scale.inv_scale, {}, Overflow::kSaturate);
        EXPECT_EQ(Decode(entry.spec, negative), -m) << entry.name << " " << a;
      }
    }
  }
}

TEST(MakeScale, Pow2FloorIsThePowerOfTwoAtOrBelowTheQuotient) {
  for (const FormatEntry& entry : FormatTable()) {
    const float m = MaxFinite(entry.spec);
    for (float a : Maxima(m)) {
      const Scale scale = MakeScale(entry.spec, a, ScaleRule::kPow2Floor);
      const int e = ExponentOf(scale.scale);
      EXPECT_LE(Times(m, e), static_cast<double>(a)) << entry.name;
      EXPECT_GT(Times(m, e + 1), static_cast<double>(a)) << entry.name;
      EXPECT_EQ(scale.inv_scale, std::ldexp(1.0f, -e)) << entry.name;
    }
  }
}

TEST(MakeScale, Pow2CeilIsThePowerOfTwoAtOrAboveTheQuotientAndNothingSaturates) {
  for (const FormatEntry& entry : FormatTable()) {
    const float m = MaxFinite(entry.spec);
    for (float a : Maxima(m)) {
      const Scale scale = MakeScale(entry.spec, a, ScaleRule::kPow2Ceil);
      const int e = ExponentOf(scale.scale);
      EXPECT_GE(Times(m, e), static_cast<double>(a)) << entry.name;
      EXPECT_LT(Times(m, e - 1), static_cast<double>(a)) << entry.name;
      EXPECT_LE(a * scale.inv_scale, m) << entry.name;
    }
  }
}

TEST(MakeScale, PowersOfTwoStepExactlyAtTheLargestValueTimesAPowerOfTwo) {
  const FormatSpec e4m3 = Spec("e4m3fn");  // largest value 448
  const auto floor = [&](float a) { return MakeScale(e4m3, a, ScaleRule::kPow2Floor).scale; };
  const auto ceil = [&](float a) { return MakeScale(e4m3, a, ScaleRule::kPow2Ceil).scale; };
  EXPECT_EQ(floor(448.0f), 1.0f);
  EXPECT_EQ(ceil(448.0f), 1.0f);
  EXPECT_EQ(floor(Down(448.0f)), 0.5f);
  EXPECT_EQ(ceil(Down(448.0f)), 1.0f);
  EXPECT_EQ(floor(Up(448.0f)), 1.0f);
  EXPECT_EQ(ceil(Up(448.0f)), 2.0f);
  EXPECT_EQ(floor(7.0f), 0x1p-6f);
  EXPECT_EQ(ceil(7.0f), 0x1p-6f);
  EXPECT_EQ(floor(8.0f), 0x1p-6f);
  EXPECT_EQ(ceil(8.0f), 0x1p-5f);
}

TEST(MakeScale, E8m0TakesTheExponentsOfMaximumAndLargestValue) {
  const FormatSpec e2m1 = Spec("e2m1fn");  // largest value 6 = 1.5 * 2^2
  const auto scale = [&](float a) { return MakeScale(e2m1, a, ScaleRule::kE8m0).scale; };
  EXPECT_EQ(scale(4.0f), 1.0f);
  EXPECT_EQ(scale(Down(4.0f)), 0.5f);
  EXPECT_EQ(scale(Up(4.0f)), 1.0f);
  EXPECT_EQ(scale(6.0f), 1.0f);
  EXPECT_EQ(scale(Down(8.0f)), 1.0f);  // and saturates
  EXPECT_EQ(scale(8.0f), 2.0f);
  EXPECT_EQ(scale(1.0f), 0.25f);
}

TEST(MakeScale, E8m0StopsAtItsOwnSmallestAndLargestExponent) {
  for (const char* name : {"e2m1fn", "e4m3fn", "e5m2", "int8"}) {
    for (float tiny : {kSmallest, 0x1p-140f, 0x1p-127f, 0x1p-126f}) {
      EXPECT_EQ(MakeScale(Spec(name), tiny, ScaleRule::kE8m0).scale, 0x1p-127f) << name;
      EXPECT_EQ(MakeScale(Spec(name), tiny, ScaleRule::kE8m0).inv_scale, 0x1p127f) << name;
    }
  }
  EXPECT_EQ(MakeScale(Spec("e2m1fn"), 0x1p-124f, ScaleRule::kE8m0).scale, 0x1p-126f);
  EXPECT_EQ(MakeScale(Spec("e2m1fn"), kLargest, ScaleRule::kE8m0).scale, 0x1p125f);
  // A format whose largest value is far below 1.
  EXPECT_EQ(MakeScale(Spec("e4m3:bias=30"), kLargest, ScaleRule::kE8m0).scale, 0x1p127f);
  EXPECT_EQ(MakeScale(Spec("e4m3:bias=30"), kLargest, ScaleRule::kE8m0).inv_scale, 0x1p-127f);
}

TEST(MakeScale, AbsmaxStaysFiniteWhereTheLargestValueIsBelowOne) {
  const FormatSpec small = Spec("e4m3:bias=30");
  ASSERT_LT(MaxFinite(small), 1.0f);
  const Scale scale = MakeScale(small, kLargest, ScaleRule::kAbsmax);
  EXPECT_EQ(scale.scale, kLargest);
  EXPECT_GT(scale.inv_scale, 0.0f);
}

TEST(MakeScale, TheTiniestAndTheHugestMaximaGiveFiniteInverses) {
  for (const FormatEntry& entry : FormatTable()) {
    for (const char* rule : {"absmax", "pow2-floor", "pow2-ceil", "e8m0"}) {
      for (float a : {kSmallest,
                      3 * kSmallest,
                      Down(kSmallestNormal),
                      kSmallestNormal,
                      0x1p-120f,
                      0x1p126f,
                      0x1p127f,
                      Down(kLargest),
                      kLargest}) {
        SCOPED_TRACE(fmt::format("{} {} {}", entry.name, rule, a));
        const Scale scale = MakeScale(entry.spec, a, ParseScaleRule(rule));
        ASSERT_TRUE(std::isfinite(scale.scale) && scale.scale > 0) << scale.scale;
        ASSERT_TRUE(std::isfinite(scale.inv_scale) && scale.inv_scale > 0) << scale.inv_scale;
        EXPECT_NEAR(
            static_cast<double>(scale.scale) * static_cast<double>(scale.inv_scale), 1.0, 0x1p-22);
      }
    }
  }
}

TEST(MakeScale, BelowTheBoundTheMaximumCountsAsTheBound) {
  for (const char* rule : {"absmax", "pow2-floor", "pow2-ceil"}) {
    for (const char* name : {"int8", "e4m3fn", "bf16", "e2m1fn"}) {
      const float bound = MaxFinite(Spec(name)) * 0x1p-126f;
      for (float a : {kSmallest, Down(bound), bound}) {
        const Scale scale = MakeScale(Spec(name), a, ParseScaleRule(rule));
        EXPECT_EQ(scale.scale, 0x1p-126f) << rule << " " << name << " " << a;
        EXPECT_EQ(scale.inv_scale, 0x1p126f) << rule << " " << name << " " << a;
      }
    }
  }
}

TEST(ScaleRule, NamesParseBackAndOthersAreRefusedWithTheList) {
  for (const char* text : {"absmax", "pow2-floor", "pow2-ceil", "e8m0", "none", "nvfp4"}) {
    EXPECT_EQ(ToString(ParseScaleRule(text)), text);
  }
  EXPECT_EQ(ErrorOf([] { ParseScaleRule("mean"); }),
            "scale rule 'mean' is not one of absmax, pow2-floor, pow2-ceil, e8m0, none, nvfp4");
}

}  // namespace
}  // namespace numsim
