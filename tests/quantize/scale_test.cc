#include "numsim/quantize/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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
  for (const char* rule : {"absmax", "pow2-floor", "pow2-ceil", "e8m0", "none", "e8m0-ceil"}) {
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

// The rules that round the maximum before its exponent is taken, with the part of an ulp that they add.
struct BiasedRule {
  const char* name;
  double part;
};
constexpr BiasedRule kBiasedRules[] = {
    {"e8m0", 0}, {"e8m0-three-eighths", 0.375}, {"e8m0-even", 0.5}, {"e8m0-ulp", 1}};

// pytorch/ao: FP4 blocks with these maxima have these scales under EVEN and CEIL.
TEST(MakeScale, E8m0RulesGiveTheScalesOfTorchaoForFp4) {
  const FormatSpec e2m1 = Spec("e2m1fn");
  const float maxima[] = {4.5f, 5.5f, 6.5f, 7.2f};
  const auto scales = [&](const char* rule) {
    std::vector<float> result;
    for (const float a : maxima) result.push_back(MakeScale(e2m1, a, ParseScaleRule(rule)).scale);
    return result;
  };
  EXPECT_EQ(scales("e8m0"), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(scales("e8m0-even"), (std::vector<float>{1, 1, 1, 2}));
  EXPECT_EQ(scales("e8m0-ulp"), (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(scales("e8m0-three-eighths"), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(scales("e8m0-ceil"), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(scales("pow2-ceil"), (std::vector<float>{1, 1, 2, 2}));
  // 7.25 = 4 (2 - 3/16): the first maximum that three eighths of an ulp of 0.5 carry over.
  EXPECT_EQ(MakeScale(e2m1, 7.25f, ScaleRule::kE8m0ThreeEighths).scale, 2);
  EXPECT_EQ(MakeScale(e2m1, Down(7.25f), ScaleRule::kE8m0ThreeEighths).scale, 1);
}

// Every significand of float32 (2^23) at the exponent 0 and every exponent at the edges: the scale is
// that of a sum in float64, which holds it exactly.
TEST(MakeScale, BiasedE8m0IsTheExponentOfTheIncreasedMaximum) {
  for (const char* format : {"e2m1fn", "e2m3fn", "e3m2fn", "e4m3fn", "e5m2", "int8", "bf16"}) {
    const FormatSpec spec = Spec(format);
    for (const BiasedRule& rule : kBiasedRules) {
      const ScaleFactory maker(spec, ParseScaleRule(rule.name));
      const double bias = rule.part * std::ldexp(1.0, -spec.mantissa_bits);
      for (uint32_t bits = 0; bits < 1u << 23; bits += bits % 4096 < 3 ? 1 : 61) {
        const float a = std::bit_cast<float>(0x3F800000u | bits);
        const int expected = (a + bias >= 2 ? 1 : 0) - spec.MaxExponent();
        ASSERT_EQ(maker(a).scale, std::ldexp(1.0f, expected))
            << format << " " << rule.name << " " << a;
      }
      for (int e = -126; e < 128; ++e) {
        for (const float at : {1.0f, Down(2.0f), static_cast<float>(2 - bias), 1.5f}) {
          for (const float a : {Down(at), at, Up(at)}) {
            if (a >= 2 || a < 1) continue;
            const int exponent = e + (a + bias >= 2 ? 1 : 0) - spec.MaxExponent();
            const float expected = std::ldexp(1.0f, std::clamp(exponent, -127, 127));
            const Scale scale = maker(std::ldexp(a, e));
            ASSERT_EQ(scale.scale, expected) << format << " " << rule.name << " " << a << " " << e;
            ASSERT_EQ(static_cast<double>(scale.scale) * scale.inv_scale, 1);
          }
        }
      }
    }
  }
}

// torchao adds an integer to the bits of the maximum.
TEST(MakeScale, EvenIsTorchaosIntegerRule) {
  for (const char* format : {"e2m1fn", "e2m3fn", "e3m2fn", "e4m3fn", "e5m2"}) {
    const FormatSpec spec = Spec(format);
    for (uint32_t bits = 0; bits < 0x7F800000u; bits += 10007) {
      const uint32_t rounded = bits + (1u << (22 - spec.mantissa_bits));
      const int exponent = static_cast<int>(rounded >> 23) - 127 - spec.MaxExponent();
      const float a = std::bit_cast<float>(bits);
      if (a == 0) continue;
      ASSERT_EQ(MakeScale(spec, a, ScaleRule::kE8m0Even).scale,
                std::ldexp(1.0f, std::clamp(exponent, -127, 127)))
          << format << " " << a;
    }
  }
}

// Every significand of float32: RCEIL of torchao and TransformerEngine multiplies the maximum by the
// rounded inverse of the largest value, rounds to float32 and takes the next power of two.
TEST(MakeScale, Pow2CeilIsRceilOfMxFormats) {
  for (const char* format : {"e2m1fn", "e2m3fn", "e3m2fn", "e4m3fn", "e5m2"}) {
    const ScaleFactory maker(Spec(format), ScaleRule::kPow2Ceil);
    const float inverse = static_cast<float>(1.0 / static_cast<double>(MaxFinite(Spec(format))));
    size_t different = 0;
    for (uint32_t bits = 0x3F800000u; bits < 0x40000000u; ++bits) {
      const float a = std::bit_cast<float>(bits);
      const uint32_t scaled = std::bit_cast<uint32_t>(a * inverse);
      const uint32_t up = (scaled >> 23) + ((scaled & 0x7FFFFFu) != 0 ? 1 : 0);
      different += maker(a).scale == std::bit_cast<float>(up << 23) ? 0 : 1;
    }
    EXPECT_EQ(different, 0u) << format;
  }
}

TEST(MakeScale, E8m0CeilRoundsTheMaximumUpToAPowerOfTwo) {
  for (const FormatEntry& entry : FormatTable()) {
    const int emax = entry.spec.MaxExponent();
    for (int e = -100; e <= 100; ++e) {
      const float power = std::ldexp(1.0f, e);
      const auto scale = [&](float a) {
        return ExponentOf(MakeScale(entry.spec, a, ScaleRule::kE8m0Ceil).scale);
      };
      if (std::abs(e - emax) > 120) continue;
      EXPECT_EQ(scale(power), e - emax) << entry.name;
      EXPECT_EQ(scale(Up(power)), e + 1 - emax) << entry.name;
      EXPECT_EQ(scale(Down(2 * power)), e + 1 - emax) << entry.name;
    }
  }
}

// All 2^31 quotients cannot be tried; every midpoint of two numbers of e4m3fn, and what is beside it,
// can.
TEST(MakeScale, E4m3IsTheQuotientRoundedToE4m3) {
  const FormatSpec e2m1 = Spec("e2m1fn"), e4m3 = Spec("e4m3fn");
  const auto expect = [&](float a) {
    const float quotient = a / 6;
    const float expected = Decode(e4m3, Encode(e4m3, quotient, {}, Overflow::kSaturate));
    const Scale scale = MakeScale(e2m1, a, ScaleRule::kE4m3);
    ASSERT_EQ(scale.scale, expected) << a;
    ASSERT_EQ(scale.inv_scale, expected == 0 ? 0 : 1 / expected) << a;
  };
  for (uint32_t code = 0; code < 0x7E; ++code) {
    const float low = Decode(e4m3, code), high = Decode(e4m3, code + 1);
    for (const float s : {low, (low + high) / 2, high}) {
      for (const float a : {Down(6 * s), 6 * s, Up(6 * s)}) expect(a);
    }
  }
  for (const float a : {0.0f, kSmallest, kSmallestNormal, 448.0f * 6, 464.0f * 6, kLargest})
    expect(a);
  EXPECT_EQ(MakeScale(e2m1, 0, ScaleRule::kE4m3).scale, 0);
  EXPECT_EQ(MakeScale(e2m1, 3, ScaleRule::kE4m3).scale, 0.5f);
}

TEST(MakeScale, E8m0StopsAtItsOwnSmallestAndLargestExponent) {
  for (const char* name : {"e2m1fn", "e4m3fn", "e5m2", "int8"}) {
    for (float tiny : {kSmallest, 0x1p-140f, 0x1p-127f, 0x1p-126f}) {
      for (const BiasedRule& rule : kBiasedRules) {
        EXPECT_EQ(MakeScale(Spec(name), tiny, ParseScaleRule(rule.name)).scale, 0x1p-127f) << name;
      }
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
    for (const char* rule :
         {"absmax", "pow2-floor", "pow2-ceil", "e8m0", "e8m0-even", "e8m0-ceil"}) {
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
  for (const char* name : {"int8", "e4m3fn", "bf16", "e2m1fn"}) {
    const float bound = MaxFinite(Spec(name)) * 0x1p-126f;
    for (float a : {kSmallest, Down(bound), bound}) {
      const Scale scale = MakeScale(Spec(name), a, ScaleRule::kAbsmax);
      EXPECT_EQ(scale.scale, 0x1p-126f) << name << " " << a;
      EXPECT_EQ(scale.inv_scale, 0x1p126f) << name << " " << a;
    }
  }
}

// 2^-127 is the smallest number of e8m0fnu, and the nearest power of two at or above A / M of all
// that are smaller.
TEST(MakeScale, PowersOfTwoEndAtThoseOfE8m0) {
  for (const char* name : {"int8", "e4m3fn", "bf16", "e2m1fn"}) {
    const float max = MaxFinite(Spec(name));
    const auto scale = [&](ScaleRule rule, float a) { return MakeScale(Spec(name), a, rule); };
    for (const ScaleRule rule : {ScaleRule::kPow2Floor, ScaleRule::kPow2Ceil}) {
      for (float a : {kSmallest, 0x1p-140f, max * 0x1p-127f}) {
        EXPECT_EQ(scale(rule, a).scale, 0x1p-127f) << name << " " << a;
        EXPECT_EQ(scale(rule, a).inv_scale, 0x1p127f) << name << " " << a;
      }
      EXPECT_EQ(scale(rule, max * 0x1p-126f).scale, 0x1p-126f) << name;
    }
    EXPECT_EQ(scale(ScaleRule::kPow2Floor, Down(max * 0x1p-126f)).scale, 0x1p-127f) << name;
    EXPECT_EQ(scale(ScaleRule::kPow2Ceil, Up(max * 0x1p-127f)).scale, 0x1p-126f) << name;
  }
}

// The conversion of [TransformerEngine] takes the exponent field of the product, one more if it has a
// significand, except that of subnormals up to 2^-127.
TEST(MakeScale, Pow2CeilIsRceilOfSmallMaxima) {
  for (const char* format : {"e2m1fn", "e4m3fn", "e5m2"}) {
    const ScaleFactory maker(Spec(format), ScaleRule::kPow2Ceil);
    const float inverse = static_cast<float>(1.0 / static_cast<double>(MaxFinite(Spec(format))));
    for (uint32_t bits = 1; bits < 0x10000000u; bits += 4099) {
      const float a = std::bit_cast<float>(bits);
      const uint32_t scaled = std::bit_cast<uint32_t>(a * inverse);
      const uint32_t field = scaled >> 23, fraction = scaled & 0x7FFFFFu;
      const bool up = fraction != 0 && !(field == 0 && fraction <= 0x400000u);
      const int exponent = static_cast<int>(field + (up ? 1 : 0)) - 127;
      ASSERT_EQ(maker(a).scale, std::ldexp(1.0f, exponent)) << format << " " << a;
    }
  }
}

TEST(ScaleRule, NamesParseBackAndOthersAreRefusedWithTheList) {
  for (const char* text : {"absmax",
                           "pow2-floor",
                           "pow2-ceil",
                           "e8m0",
                           "none",
                           "nvfp4",
                           "e8m0-even",
                           "e8m0-ulp",
                           "e8m0-three-eighths",
                           "e8m0-ceil",
                           "e4m3",
                           "4over6-mae",
                           "4over6-mse",
                           "nvfp4-inverse",
                           "nvfp4-row",
                           "ms-eden"}) {
    EXPECT_EQ(ToString(ParseScaleRule(text)), text);
  }
  EXPECT_EQ(ErrorOf([] { ParseScaleRule("mean"); }),
            "scale rule 'mean' is not one of absmax, pow2-floor, pow2-ceil, e8m0, none, nvfp4, "
            "e8m0-even, e8m0-ulp, e8m0-three-eighths, e8m0-ceil, e4m3, 4over6-mae, 4over6-mse, "
            "nvfp4-inverse, nvfp4-row, ms-eden");
}

}  // namespace
}  // namespace numsim
