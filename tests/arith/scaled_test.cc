// Scaled operations against double arithmetic, which is exact here; what P3109 defines otherwise.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "numsim/arith/arith.h"
#include "numsim/arith/p3109.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

constexpr FormatSpec kScale = kBinary8p1uf;    // code c is worth 2^(c - 128), code 0 is zero
constexpr FormatSpec kElement = kBinary8p4se;  // NaN 0x80, infinity 0x7F, one 0x40
constexpr uint32_t kOne = 0x40, kInfinityCode = 0x7F, kNanCode = 0x80;

ScaledOperand Scaled(uint32_t scale, uint32_t element) {
  return {{kScale, scale}, {kElement, element}};
}

double Value(const ScaledOperand& a) {
  return static_cast<double>(Decode(a.scale.format, a.scale.code)) *
         static_cast<double>(Decode(a.element.format, a.element.code));
}

bool IsZeroTimesInfinity(const ScaledOperand& a) {
  return Decode(kScale, a.scale.code) == 0 && std::isinf(Decode(kElement, a.element.code));
}

// The code of `exact` and whether an operation on numbers made the NaN.
void ExpectResult(const Rounded& got,
                  const EncodePlan& to,
                  double exact,
                  const ScaledOperand& a,
                  const ScaledOperand& b) {
  const float result = Decode(to.format, got.code);
  if (std::isnan(exact)) {
    ASSERT_TRUE(std::isnan(result));
    const bool operand_nan = (std::isnan(Value(a)) && !IsZeroTimesInfinity(a)) ||
                             (std::isnan(Value(b)) && !IsZeroTimesInfinity(b));
    const bool invalid = IsZeroTimesInfinity(a) || IsZeroTimesInfinity(b) || !operand_nan;
    ASSERT_EQ((got.flags & kInvalid) != 0, invalid);
    return;
  }
  ASSERT_EQ(got.code, EncodeF64(to, std::bit_cast<uint64_t>(exact), 0)) << exact;
  ASSERT_EQ((got.flags & kInvalid) != 0, false);
  if (std::isfinite(exact)) {
    ASSERT_EQ((got.flags & kInexact) != 0, static_cast<double>(result) != exact) << exact;
  }
}

// Scales near one so that double holds every sum; zero, NaN and far scales besides.
TEST(Scaled, EqualsDoubleArithmeticRoundedOnce) {
  constexpr uint32_t kScales[] = {0, 120, 127, 128, 133, 255};
  for (const FormatSpec& format : {kBinary8p4se, kBinary8p3se, kBf16}) {
    const EncodePlan to = MakeEncodePlan(format);
    for (const uint32_t scale_a : kScales) {
      for (const uint32_t scale_b : {0u, 126u, 131u}) {
        for (uint32_t i = 0; i < 256; ++i) {
          for (uint32_t j = i % SampleEvery(16); j < 256; j += SampleEvery(16)) {
            const ScaledOperand a = Scaled(scale_a, i), b = Scaled(scale_b, j);
            ExpectResult(ScaledAdd(a, b, to), to, Value(a) + Value(b), a, b);
            ExpectResult(ScaledSubtract(a, b, to), to, Value(a) - Value(b), a, b);
            ExpectResult(ScaledMultiply(a, b, to), to, Value(a) * Value(b), a, b);
            if (HasFatalFailure()) FAIL() << scale_a << " " << i << " " << scale_b << " " << j;
          }
        }
      }
    }
  }
}

TEST(Scaled, ProductsAreNotRoundedBeforeTheSum) {
  // 1.125 * 1.125 = 1.265625, in four bits 1.25.
  const EncodePlan to = MakeEncodePlan(kE4M3fn);
  const Operand one = {kE4M3fn, Encode(kE4M3fn, 1.0f)}, x = {kE4M3fn, Encode(kE4M3fn, 1.125f)};
  const Operand y = {kE4M3fn, Encode(kE4M3fn, -1.25f)};
  EXPECT_EQ(Decode(kE4M3fn, ScaledAdd({x, x}, {one, y}, to).code), 0.015625f);
  EXPECT_EQ(Decode(kE4M3fn, ScaledSubtract({one, y}, {x, x}, to).code), -2.5f);
}

TEST(Scaled, ScalesFarBeyondTheFormatStayExact) {
  const EncodePlan to = MakeEncodePlan(kElement);
  // 2^126 * 2^-127: neither the scales nor their product overflow or underflow on the way.
  EXPECT_EQ(ScaledMultiply(Scaled(254, kOne), Scaled(1, kOne), to).code, Encode(kElement, 0.5f));
  EXPECT_EQ(ScaledSubtract(Scaled(254, kOne), Scaled(254, kOne), to), (Rounded{0, 0}));
  EXPECT_EQ(ScaledAdd(Scaled(254, kOne), Scaled(1, kOne), to).code, kInfinityCode);
}

TEST(Scaled, ScalesMayHaveSignificandsAndSigns) {
  const EncodePlan to = MakeEncodePlan(kFp32);
  const ScaledOperand a = {{kE4M3fn, Encode(kE4M3fn, -1.75f)}, {kE2M1fn, Encode(kE2M1fn, 6.0f)}};
  const ScaledOperand b = {{kBf16, Encode(kBf16, 3.015625f)}, {kE4M3fn, Encode(kE4M3fn, 0.9375f)}};
  EXPECT_EQ(Decode(kFp32, ScaledAdd(a, b, to).code), -1.75f * 6 + 3.015625f * 0.9375f);
  EXPECT_EQ(Decode(kFp32, ScaledMultiply(a, b, to).code), -10.5f * (3.015625f * 0.9375f));
}

TEST(P3109, ZeroDivisorGivesNan) {
  const EncodePlan to = MakeEncodePlan(kElement);
  const Rounded invalid{kNanCode, kInvalid};
  EXPECT_EQ(p3109::Reciprocal({kElement, 0}, to), invalid);
  EXPECT_EQ(p3109::Divide({kElement, kOne}, {kElement, 0}, to), invalid);
  EXPECT_EQ(p3109::Divide({kElement, 0}, {kElement, 0}, to), invalid);
  EXPECT_EQ(p3109::Divide({kElement, kInfinityCode}, {kElement, 0}, to), invalid);
  EXPECT_EQ(p3109::Divide({kElement, kNanCode}, {kElement, 0}, to), (Rounded{kNanCode, 0}));
}

TEST(P3109, OtherQuotientsAreThoseOfArith) {
  const EncodePlan to = MakeEncodePlan(kElement);
  for (uint32_t i = 0; i < 256; ++i) {
    for (uint32_t j = 1; j < 256; ++j) {
      const Operand a{kElement, i}, b{kElement, j};
      ASSERT_EQ(p3109::Divide(a, b, to), Divide(a, b, to)) << i << " " << j;
      ASSERT_EQ(p3109::Reciprocal(b, to), Reciprocal(b, to)) << j;
    }
  }
}

}  // namespace
}  // namespace numsim
