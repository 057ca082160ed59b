// The value type against the functions of arith.h, against float, and as a C++ type.
#include "numsim/arith/soft_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <sstream>
#include <type_traits>

#include "numsim/formats/format_table.h"

namespace numsim {
namespace {

using E4M3 = SoftFloat<kE4M3fn>;
using E5M2 = SoftFloat<kE5M2>;
using Bf16 = SoftFloat<kBf16>;
using Fp16 = SoftFloat<kFp16>;
using Fp32 = SoftFloat<kFp32>;
using E2M1 = SoftFloat<kE2M1fn>;
using E8M0 = SoftFloat<kE8M0fnu>;
using Int8 = SoftFloat<kInt8>;

static_assert(sizeof(E2M1) == 1 && sizeof(E4M3) == 1 && sizeof(Bf16) == 2 && sizeof(Fp32) == 4);
static_assert(sizeof(SoftFloat<kTf32>) == 4);
static_assert(std::is_trivially_copyable_v<E4M3> && std::is_nothrow_default_constructible_v<E4M3>);
static_assert(!std::same_as<E4M3, SoftFloat<kE4M3fnuz>>);
static_assert(std::same_as<Bf16, SoftFloat<NamedFormat("bf16")>>);
// Conversions are explicit, and there is no mixed arithmetic.
static_assert(std::constructible_from<E4M3, float> && !std::convertible_to<float, E4M3>);
static_assert(std::constructible_from<float, E4M3> && !std::convertible_to<E4M3, float>);
static_assert(std::constructible_from<E4M3, Bf16> && !std::convertible_to<Bf16, E4M3>);
static_assert(std::constructible_from<E4M3, int> && !std::convertible_to<int, E4M3>);
template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<E4M3, E4M3> && !Addable<E4M3, float> && !Addable<E4M3, E5M2>);
// Codes, classes and limits are constants.
static_assert(E4M3().code() == 0 && E4M3::FromCode(0x38).code() == 0x38);
static_assert(isnan(E4M3::FromCode(0x7F)) && isinf(E5M2::FromCode(0xFC)));
static_assert(std::numeric_limits<E4M3>::max().code() == 0x7E);

template <typename T>
T FromCode(uint32_t code) {
  return T::FromCode(code);
}

template <typename T>
class EveryCode : public testing::Test {};
using SmallTypes = testing::Types<E4M3,
                                  E5M2,
                                  SoftFloat<kE4M3fnuz>,
                                  SoftFloat<kE5M2fnuz>,
                                  SoftFloat<kE3M4>,
                                  SoftFloat<kE2M3fn>,
                                  SoftFloat<kE3M2fn>,
                                  E2M1,
                                  E8M0,
                                  Int8,
                                  SoftFloat<kBinary8p4se>,
                                  SoftFloat<kBinary8p1uf>>;
TYPED_TEST_SUITE(EveryCode, SmallTypes, );

// Whether two floats are the same number, zeros told apart by sign, or both NaN.
bool Same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(NamedFormats, AreThoseOfTheTable) {
  EXPECT_EQ(FindFormat("e4m3fn")->spec, kE4M3fn);
  EXPECT_EQ(FindFormat("e5m2")->spec, kE5M2);
  EXPECT_EQ(FindFormat("e4m3fnuz")->spec, kE4M3fnuz);
  EXPECT_EQ(FindFormat("e5m2fnuz")->spec, kE5M2fnuz);
  EXPECT_EQ(FindFormat("e4m3b11fnuz")->spec, kE4M3b11fnuz);
  EXPECT_EQ(FindFormat("e4m3")->spec, kE4M3);
  EXPECT_EQ(FindFormat("e3m4")->spec, kE3M4);
  EXPECT_EQ(FindFormat("e8m0fnu")->spec, kE8M0fnu);
  EXPECT_EQ(FindFormat("e3m2fn")->spec, kE3M2fn);
  EXPECT_EQ(FindFormat("e2m3fn")->spec, kE2M3fn);
  EXPECT_EQ(FindFormat("e2m1fn")->spec, kE2M1fn);
  EXPECT_EQ(FindFormat("fp32")->spec, kFp32);
  EXPECT_EQ(FindFormat("tf32")->spec, kTf32);
  EXPECT_EQ(FindFormat("bf16")->spec, kBf16);
  EXPECT_EQ(FindFormat("fp16")->spec, kFp16);
  EXPECT_EQ(FindFormat("int8")->spec, kInt8);
  EXPECT_EQ(FindFormat("binary8p3se")->spec, kBinary8p3se);
  EXPECT_EQ(FindFormat("binary8p4se")->spec, kBinary8p4se);
  EXPECT_EQ(FindFormat("binary8p3sf")->spec, kBinary8p3sf);
  EXPECT_EQ(FindFormat("binary8p4sf")->spec, kBinary8p4sf);
  EXPECT_EQ(FindFormat("binary8p1uf")->spec, kBinary8p1uf);
}

TEST(SoftFloat, OperatorsEqualTheFunctionsOfArithOnAllPairsOfE4M3) {
  const EncodePlan plan = MakeEncodePlan(kE4M3fn);
  for (uint32_t i = 0; i < 256; ++i) {
    for (uint32_t j = 0; j < 256; ++j) {
      const E4M3 a = E4M3::FromCode(i), b = E4M3::FromCode(j);
      const Operand x{kE4M3fn, i}, y{kE4M3fn, j};
      ASSERT_EQ((a + b).code(), Add(x, y, plan).code) << i << " " << j;
      ASSERT_EQ((a - b).code(), Subtract(x, y, plan).code) << i << " " << j;
      ASSERT_EQ((a * b).code(), Multiply(x, y, plan).code) << i << " " << j;
      ASSERT_EQ((a / b).code(), Divide(x, y, plan).code) << i << " " << j;
      ASSERT_EQ(min(a, b).code(), Choose(Extremum::kMinimum, x, y, plan).code) << i << " " << j;
      ASSERT_EQ(max(a, b).code(), Choose(Extremum::kMaximum, x, y, plan).code) << i << " " << j;
      ASSERT_EQ(fmin(a, b).code(), Choose(Extremum::kMinimumNumber, x, y, plan).code)
          << i << " " << j;
      ASSERT_EQ(fmax(a, b).code(), Choose(Extremum::kMaximumNumber, x, y, plan).code)
          << i << " " << j;
      ASSERT_EQ(fma(a, b, a).code(), FusedMultiplyAdd(x, y, x, plan).code) << i << " " << j;
    }
  }
}

// Sums and products of two small numbers are exact in double; a quotient rounded to 53 bits rounds
// on to 4 as if it were exact.
TEST(SoftFloat, OperatorsEqualDoubleArithmeticRoundedOnceOnAllPairsOfE4M3) {
  for (uint32_t i = 0; i < 256; ++i) {
    for (uint32_t j = 0; j < 256; ++j) {
      const E4M3 a = E4M3::FromCode(i), b = E4M3::FromCode(j);
      const double x = static_cast<double>(a), y = static_cast<double>(b);
      const auto expect = [&](E4M3 got, double exact) {
        return Same(static_cast<float>(got), static_cast<float>(E4M3(exact)));
      };
      ASSERT_TRUE(expect(a + b, x + y)) << i << " " << j;
      ASSERT_TRUE(expect(a - b, x - y)) << i << " " << j;
      ASSERT_TRUE(expect(a * b, x * y)) << i << " " << j;
      ASSERT_TRUE(expect(a / b, x / y)) << i << " " << j;
    }
    const E4M3 a = E4M3::FromCode(i);
    ASSERT_TRUE(Same(static_cast<float>(sqrt(a)),
                     static_cast<float>(E4M3(std::sqrt(static_cast<double>(a))))));
  }
}

// No value of these functions of E4M3 numbers is close enough to a tie for float64 to miss it.
TEST(SoftFloat, ElementaryFunctionsEqualThoseOfDoubleRounded) {
  using std::exp, std::exp2, std::log, std::log2, std::tanh;
  for (uint32_t i = 0; i < 256; ++i) {
    const E4M3 a = E4M3::FromCode(i);
    const double x = static_cast<double>(a);
    const auto expect = [](E4M3 got, double want) {
      return Same(static_cast<float>(got), static_cast<float>(E4M3(want)));
    };
    ASSERT_TRUE(expect(exp(a), exp(x))) << i;
    ASSERT_TRUE(expect(exp2(a), exp2(x))) << i;
    ASSERT_TRUE(expect(log(a), log(x))) << i;
    ASSERT_TRUE(expect(log2(a), log2(x))) << i;
    ASSERT_TRUE(expect(tanh(a), tanh(x))) << i;
  }
}

TEST(SoftFloat, CompoundAssignmentEqualsTheOperator) {
  const E4M3 a(2.5f), b(0.75f);
  E4M3 x = a;
  EXPECT_EQ((x += b).code(), (a + b).code());
  EXPECT_EQ((x -= b).code(), ((a + b) - b).code());
  x = a;
  EXPECT_EQ((x *= b).code(), (a * b).code());
  x = a;
  EXPECT_EQ((x /= b).code(), (a / b).code());
  EXPECT_EQ(&(x += b), &x);
}

TYPED_TEST(EveryCode, ComparesAsTheFloatsOfItsValues) {
  const uint32_t codes = uint32_t{1} << TypeParam::kFormat.Bits();
  for (uint32_t i = 0; i < codes; ++i) {
    for (uint32_t j = 0; j < codes; ++j) {
      const TypeParam a = FromCode<TypeParam>(i), b = FromCode<TypeParam>(j);
      const float x = static_cast<float>(a), y = static_cast<float>(b);
      ASSERT_EQ(a == b, x == y) << i << " " << j;
      ASSERT_EQ(a != b, x != y) << i << " " << j;
      ASSERT_EQ(a < b, x < y) << i << " " << j;
      ASSERT_EQ(a <= b, x <= y) << i << " " << j;
      ASSERT_EQ(a > b, x > y) << i << " " << j;
      ASSERT_EQ(a >= b, x >= y) << i << " " << j;
    }
  }
}

TYPED_TEST(EveryCode, ClassifiesAndConvertsAsItsFloat) {
  const uint32_t codes = uint32_t{1} << TypeParam::kFormat.Bits();
  for (uint32_t i = 0; i < codes; ++i) {
    const TypeParam a = FromCode<TypeParam>(i);
    const float x = static_cast<float>(a);
    ASSERT_EQ(isnan(a), std::isnan(x)) << i;
    ASSERT_EQ(isinf(a), std::isinf(x)) << i;
    ASSERT_EQ(isfinite(a), std::isfinite(x)) << i;
    ASSERT_EQ(signbit(a), std::signbit(x)) << i;
    ASSERT_TRUE(Same(static_cast<float>(static_cast<double>(a)), x)) << i;
    if (Classify(TypeParam::kFormat, i) == ValueClass::kUnused) continue;
    // Values survive the way through float and double and back.
    ASSERT_TRUE(Same(static_cast<float>(TypeParam(x)), x)) << i;
    ASSERT_TRUE(Same(static_cast<float>(TypeParam(static_cast<double>(x))), x)) << i;
  }
}

TYPED_TEST(EveryCode, AbsAndMinusActOnTheSign) {
  const FormatSpec& format = TypeParam::kFormat;
  const uint32_t codes = uint32_t{1} << format.Bits();
  for (uint32_t i = 0; i < codes; ++i) {
    if (Classify(format, i) == ValueClass::kUnused) continue;
    const TypeParam a = FromCode<TypeParam>(i);
    const float x = static_cast<float>(a);
    ASSERT_TRUE(Same(static_cast<float>(abs(a)), std::fabs(x))) << i;
    ASSERT_EQ((+a).code(), i);
    if (!format.IsSigned()) continue;
    const bool keeps = x == 0 && format.zero != Zero::kSigned;
    ASSERT_TRUE(Same(static_cast<float>(-a), keeps ? x : -x)) << i;
    ASSERT_EQ((-(-a)).code(), i);
  }
}

TEST(SoftFloat, MinusOfAnUnsignedNumberIsNan) {
  EXPECT_TRUE(isnan(-E8M0(2)));
  EXPECT_TRUE(isnan(-SoftFloat<kBinary8p1uf>(2)));
  EXPECT_EQ((-SoftFloat<kBinary8p1uf>(0)).code(), 0);
}

TEST(SoftFloat, ZerosAreEqualAndNanEqualsNothing) {
  const E4M3 plus(0.0f), minus(-0.0f), nan = std::numeric_limits<E4M3>::quiet_NaN();
  EXPECT_NE(plus.code(), minus.code());
  EXPECT_TRUE(plus == minus && plus <= minus && plus >= minus && !(minus < plus));
  EXPECT_FALSE(nan == nan);
  EXPECT_TRUE(nan != nan);
  EXPECT_FALSE(nan < plus || nan > plus || nan <= plus || nan >= plus);
  EXPECT_EQ(nan <=> plus, std::partial_ordering::unordered);
  EXPECT_EQ(minus <=> plus, std::partial_ordering::equivalent);
}

TEST(SoftFloat, MinimumTellsZerosApartAndPropagatesNan) {
  const E4M3 plus(0.0f), minus(-0.0f), one(1), nan = std::numeric_limits<E4M3>::quiet_NaN();
  EXPECT_EQ(min(plus, minus).code(), minus.code());
  EXPECT_EQ(min(minus, plus).code(), minus.code());
  EXPECT_EQ(max(minus, plus).code(), plus.code());
  EXPECT_TRUE(isnan(min(nan, one)) && isnan(max(one, nan)));
  EXPECT_EQ(fmin(nan, one).code(), one.code());
  EXPECT_EQ(fmax(one, nan).code(), one.code());
}

// The function that an unqualified call in generic code picks.
template <typename T>
T GenericHypotenuse(T a, T b) {
  using std::abs;
  using std::fma;
  using std::max;
  using std::sqrt;
  return max(sqrt(fma(a, a, b * b)), abs(a));
}

TEST(SoftFloat, GenericCodeFindsTheFunctions) {
  EXPECT_EQ(static_cast<float>(GenericHypotenuse(E4M3(3), E4M3(4))), 5);
  EXPECT_EQ(GenericHypotenuse(3.0f, 4.0f), 5);
}

TEST(SoftFloat, FmaRoundsOnce) {
  // 1.125 * 1.125 = 1.265625: rounded to 1.25 before the subtraction, 0.015625 is lost.
  const E4M3 a(1.125f), c(-1.25f);
  EXPECT_EQ(static_cast<float>(fma(a, a, c)), 0.015625f);
  EXPECT_EQ(static_cast<float>(a * a + c), 0);
}

TEST(SoftFloat, DoubleIsRoundedOnce) {
  // As float this is 1.0625, the middle between 1 and 1.125.
  const double above = 1.0625 + 0x1p-40;
  EXPECT_EQ(static_cast<float>(E4M3(above)), 1.125f);
  EXPECT_EQ(static_cast<float>(E4M3(static_cast<float>(above))), 1);
}

TEST(SoftFloat, IntegersAreRoundedOnce) {
  EXPECT_EQ(static_cast<float>(E4M3(-7)), -7);
  EXPECT_EQ(static_cast<float>(E4M3(17u)), 16);
  EXPECT_EQ(static_cast<float>(E4M3(19)), 20);
  EXPECT_EQ(static_cast<float>(E4M3(size_t{3})), 3);
  EXPECT_EQ(static_cast<float>(E4M3(true)), 1);
  EXPECT_EQ(static_cast<float>(Fp32(std::numeric_limits<int64_t>::min())), -0x1p63f);
  EXPECT_EQ(static_cast<float>(Fp32(std::numeric_limits<uint64_t>::max())), 0x1p64f);
  // Just above the middle of two neighbours, which float and double would round it to first.
  EXPECT_EQ(static_cast<float>(Bf16((int64_t{1} << 30) + (1 << 22) + 1)), 0x1.02p30f);
  EXPECT_EQ(static_cast<float>(Bf16((int64_t{1} << 60) + (int64_t{1} << 52) + 1)), 0x1.02p60f);
  EXPECT_EQ(static_cast<float>(Bf16((uint64_t{1} << 63) + (uint64_t{1} << 55) + 1)), 0x1.02p63f);
}

TEST(SoftFloat, ConvertsBetweenFormats) {
  EXPECT_EQ(static_cast<float>(E4M3(E5M2(448.0f))), 448);
  EXPECT_TRUE(isnan(E4M3(E5M2(57344.0f))));
  EXPECT_TRUE(isnan(E4M3(std::numeric_limits<E5M2>::infinity())));
  EXPECT_EQ(static_cast<float>(E5M2(E4M3(1.125f))), 1);
  EXPECT_EQ(static_cast<float>(Bf16(Fp32(1.00390625f))), 1);
  EXPECT_TRUE(signbit(E5M2(E4M3::FromCode(0xFF))));
}

TEST(SoftFloat, OverflowFollowsTheFormat) {
  EXPECT_TRUE(isnan(E4M3(448) + E4M3(448)));
  EXPECT_TRUE(isinf(E5M2(57344) * E5M2(2)));
  EXPECT_EQ(static_cast<float>(E2M1(6) * E2M1(6)), 6);
  EXPECT_EQ(static_cast<float>(Int8(100) + Int8(100)), 127);
  EXPECT_EQ(static_cast<float>(-Int8(127) - Int8(100)), -127);
  EXPECT_TRUE(isnan(sqrt(E4M3(-1))));
  EXPECT_TRUE(isinf(E5M2(1) / E5M2(0)));
}

TEST(SoftFloat, PrintsItsValue) {
  std::ostringstream text;
  text << E4M3(0.1f) << " " << -E4M3(448);
  EXPECT_EQ(text.str(), "0.101562 -448");
}

TEST(SoftFloatLimits, OfFp32AreThoseOfFloat) {
  using Ours = std::numeric_limits<Fp32>;
  using Float = std::numeric_limits<float>;
  EXPECT_TRUE(Ours::is_specialized && Ours::is_signed && Ours::is_bounded);
  EXPECT_FALSE(Ours::is_integer || Ours::is_exact || Ours::is_modulo || Ours::traps);
  EXPECT_EQ(Ours::has_infinity, Float::has_infinity);
  EXPECT_EQ(Ours::has_quiet_NaN, Float::has_quiet_NaN);
  EXPECT_EQ(Ours::has_signaling_NaN, Float::has_signaling_NaN);
  EXPECT_EQ(Ours::round_style, Float::round_style);
  EXPECT_EQ(Ours::radix, Float::radix);
  EXPECT_EQ(Ours::digits, Float::digits);
  EXPECT_EQ(Ours::digits10, Float::digits10);
  EXPECT_EQ(Ours::max_digits10, Float::max_digits10);
  EXPECT_EQ(Ours::min_exponent, Float::min_exponent);
  EXPECT_EQ(Ours::max_exponent, Float::max_exponent);
  EXPECT_EQ(Ours::min_exponent10, Float::min_exponent10);
  EXPECT_EQ(Ours::max_exponent10, Float::max_exponent10);
  EXPECT_EQ(static_cast<float>(Ours::min()), Float::min());
  EXPECT_EQ(static_cast<float>(Ours::max()), Float::max());
  EXPECT_EQ(static_cast<float>(Ours::lowest()), Float::lowest());
  EXPECT_EQ(static_cast<float>(Ours::epsilon()), Float::epsilon());
  EXPECT_EQ(static_cast<float>(Ours::round_error()), Float::round_error());
  EXPECT_EQ(static_cast<float>(Ours::denorm_min()), Float::denorm_min());
  EXPECT_EQ(static_cast<float>(Ours::infinity()), Float::infinity());
  EXPECT_EQ(Ours::quiet_NaN().code(), 0x7FC00000u);
  EXPECT_TRUE(IsSignalingNan(Ours::signaling_NaN().ToOperand()));
}

TEST(SoftFloatLimits, OfE4M3AreThoseOfTheSpecification) {
  using Limits = std::numeric_limits<E4M3>;
  EXPECT_EQ(static_cast<float>(Limits::max()), 448);
  EXPECT_EQ(static_cast<float>(Limits::lowest()), -448);
  EXPECT_EQ(static_cast<float>(Limits::min()), 0x1p-6f);
  EXPECT_EQ(static_cast<float>(Limits::denorm_min()), 0x1p-9f);
  EXPECT_EQ(static_cast<float>(Limits::epsilon()), 0.125f);
  EXPECT_FALSE(Limits::has_infinity || Limits::has_signaling_NaN);
  EXPECT_TRUE(Limits::has_quiet_NaN && Limits::has_denorm == std::denorm_present);
  EXPECT_EQ(Limits::digits, 4);
  EXPECT_EQ(Limits::max_exponent, 9);
  EXPECT_EQ(Limits::min_exponent, -5);
  EXPECT_EQ(Limits::max_exponent10, 2);
  EXPECT_EQ(Limits::min_exponent10, -1);
}

TEST(SoftFloatLimits, OfFormatsWithoutSignZeroOrExponent) {
  EXPECT_EQ(static_cast<float>(std::numeric_limits<E8M0>::min()), 0x1p-127f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<E8M0>::lowest()), 0x1p-127f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<E8M0>::max()), 0x1p127f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<E8M0>::epsilon()), 1);
  EXPECT_EQ(std::numeric_limits<E8M0>::has_denorm, std::denorm_absent);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Int8>::lowest()), -127);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Int8>::max()), 127);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Int8>::epsilon()), 1);
  EXPECT_EQ(std::numeric_limits<Int8>::round_error().code(), 0);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<E2M1>::max()), 6);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Fp16>::max()), 65504);
  EXPECT_EQ(std::numeric_limits<Fp16>::max_exponent10, 4);
  EXPECT_EQ(std::numeric_limits<Fp16>::min_exponent10, -4);
  EXPECT_EQ(std::numeric_limits<Fp16>::digits10, 3);
}

TYPED_TEST(EveryCode, LimitsAreTheExtremesOfItsValues) {
  using Limits = std::numeric_limits<TypeParam>;
  const FormatSpec& format = TypeParam::kFormat;
  float max = -INFINITY, lowest = INFINITY, least = INFINITY, normal = INFINITY,
        above_one = INFINITY;
  bool infinity = false, nan = false;
  const uint32_t codes = uint32_t{1} << format.Bits();
  for (uint32_t i = 0; i < codes; ++i) {
    const float x = Decode(format, i);
    const ValueClass value_class = Classify(format, i);
    infinity = infinity || value_class == ValueClass::kInfinity;
    nan = nan || value_class == ValueClass::kNan;
    if (value_class == ValueClass::kUnused || !std::isfinite(x)) continue;
    max = std::max(max, x);
    lowest = std::min(lowest, x);
    if (x > 0) least = std::min(least, x);
    if (x > 0 && value_class == ValueClass::kNormal) normal = std::min(normal, x);
    if (x > 1) above_one = std::min(above_one, x);
  }
  EXPECT_EQ(static_cast<float>(Limits::max()), max);
  EXPECT_EQ(static_cast<float>(Limits::lowest()), lowest);
  EXPECT_EQ(static_cast<float>(Limits::denorm_min()), least);
  EXPECT_EQ(static_cast<float>(Limits::min()), normal);
  EXPECT_EQ(static_cast<float>(Limits::epsilon()), above_one - 1);
  EXPECT_EQ(Limits::has_infinity, infinity);
  EXPECT_EQ(Limits::has_quiet_NaN, nan);
  EXPECT_EQ(isinf(Limits::infinity()), infinity);
  EXPECT_EQ(isnan(Limits::quiet_NaN()), nan);
  EXPECT_EQ(std::ilogb(max) + 1, Limits::max_exponent);
  EXPECT_EQ(std::ilogb(normal) + 1, Limits::min_exponent);
  EXPECT_EQ(static_cast<int>(std::floor(std::log10(max))), Limits::max_exponent10);
  EXPECT_EQ(static_cast<int>(std::ceil(std::log10(normal))), Limits::min_exponent10);
}

}  // namespace
}  // namespace numsim
