// Conversions from and to integers and rounding to an integral value, against exact computations
// with 128-bit integers and with float64 numbers that are exact.
#include <gtest/gtest.h>

#include <bit>
#include <iterator>
#include <utility>

#include "numsim/arith/arith.h"
#include "tests/support/codes.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

__extension__ using Int128 = __int128;

constexpr int kWidths[] = {1, 4, 8, 16, 32, 64};

// Whether the magnitude goes to the next integer: `fraction` is the part cut off, in [0, 1), and
// `odd` tells of the integer below. `random` is R.
bool GoesAway(const Rounding& rounding, bool negative, double fraction, bool odd, uint32_t random) {
  const double words = std::ldexp(1.0, rounding.random_bits);
  const double r = static_cast<double>(random);
  switch (rounding.mode) {
    case RoundingMode::kNearestEven:
      return fraction > 0.5 || (fraction == 0.5 && odd);
    case RoundingMode::kNearestAway:
      return fraction >= 0.5;
    case RoundingMode::kTowardZero:
      return false;
    case RoundingMode::kUp:
      return fraction > 0 && !negative;
    case RoundingMode::kDown:
      return fraction > 0 && negative;
    case RoundingMode::kToOdd:
      return fraction > 0 && !odd;
    case RoundingMode::kStochastic:
      break;
  }
  switch (rounding.variant) {
    case StochasticVariant::kA:
      return std::floor(fraction * words) + r >= words;
    case StochasticVariant::kB:
      return std::floor(fraction * 2 * words) + 2 * r + 1 >= 2 * words;
    case StochasticVariant::kC:
      break;
  }
  return std::nearbyint(fraction * words) + r >= words;  // ties to even
}

// |x| rounded to an integer. Requires |x| < 2^126.
Int128 RoundedMagnitude(double x, const Rounding& rounding, uint32_t random) {
  const double magnitude = std::abs(x), floor = std::floor(magnitude);
  const auto below = static_cast<Int128>(floor);
  const bool away =
      GoesAway(rounding, std::signbit(x), magnitude - floor, (below & 1) != 0, random);
  return below + (away ? 1 : 0);
}

RoundedInteger ExpectedInteger(
    double x, IntegerType type, const Rounding& rounding, uint32_t random, InvalidInteger invalid) {
  const Int128 one = 1;
  const Int128 highest = (one << (type.bits - (type.is_signed ? 1 : 0))) - 1;
  const Int128 lowest = type.is_signed ? -highest - 1 : 0;
  const uint64_t mask = type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1;
  const auto give = [mask](Int128 value, Flags flags) {
    return RoundedInteger{static_cast<uint64_t>(value) & mask, flags};
  };
  // Above the range, below it, NaN.
  Int128 stands_for[] = {highest, lowest, highest};
  if (invalid == InvalidInteger::kArm) stands_for[2] = 0;
  if (invalid == InvalidInteger::kX86) {
    for (Int128& integer : stands_for) integer = type.is_signed ? lowest : highest;
  }
  if (std::isnan(x)) return give(stands_for[2], kInvalid);
  if (std::abs(x) >= 0x1p70) return give(stands_for[x > 0 ? 0 : 1], kInvalid);
  const Int128 magnitude = RoundedMagnitude(x, rounding, random);
  const Int128 value = x < 0 ? -magnitude : magnitude;
  if (value > highest) return give(stands_for[0], kInvalid);
  if (value < lowest) return give(stands_for[1], kInvalid);
  return give(value, static_cast<double>(value) == x ? Flags{0} : kInexact);
}

void ExpectIntegers(const Operand& a, const Rounding& rounding, uint32_t random) {
  constexpr InvalidInteger kConventions[] = {
      InvalidInteger::kRiscv, InvalidInteger::kArm, InvalidInteger::kX86};
  for (int i = 0; i < 6 * static_cast<int>(std::size(kWidths)); ++i) {
    const IntegerType type = {kWidths[i / 6], i % 2 == 0};
    const InvalidInteger invalid = kConventions[i / 2 % 3];
    const RoundedInteger got = ToInteger(a, type, rounding, random, invalid);
    const RoundedInteger want = ExpectedInteger(Value(a), type, rounding, random, invalid);
    const auto where = [&a = a, &type = type, &rounding = rounding] {
      const char* sign = type.is_signed ? "signed" : "unsigned";
      return fmt::format("{} to {} {} bits, {}", Text(a), type.bits, sign, ToString(rounding.mode));
    };
    ASSERT_EQ(got.bits, want.bits) << where();
    ASSERT_EQ(got.flags, want.flags) << where();
  }
}

// Every deterministic mode, every stochastic variant with a draw near a boundary.
template <typename Check>
void ForRoundings(const Check& check) {
  for (RoundingMode mode : kDeterministicModes) check(Rounding{.mode = mode}, 0u);
  for (StochasticVariant v :
       {StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC}) {
    check(Rounding{RoundingMode::kStochastic, v, 3}, 5u);
    check(Rounding{RoundingMode::kStochastic, v, 32}, 0xFFFFFFFFu);
  }
}

TEST(ToInteger, RoundsAllCodesOfNarrowAnd16BitFormatsInEveryMode) {
  std::vector<Format> formats = NarrowFormats();
  for (const char* name : {"fp16", "bf16"}) formats.push_back(ParseFormat(name));
  for (const Format& format : formats) {
    const std::vector<Operand> codes = AllCodes(format.spec);
    for (size_t i = 0; i < codes.size(); i += SampleEvery(11)) {
      ForRoundings(
          [&](const Rounding& r, uint32_t random) { ExpectIntegers(codes[i], r, random); });
      if (HasFailure()) return;
    }
  }
}

TEST(ToInteger, RoundsRandomAndBoundaryCodesOfFp32) {
  const FormatSpec fp32 = Spec("fp32");
  std::vector<Operand> codes = RandomCodes(fp32, 3000, 21);
  for (double edge : {0.5,
                      1.5,
                      7.5,
                      8.0,
                      127.5,
                      128.0,
                      255.5,
                      32767.5,
                      65535.5,
                      0x1p31,
                      0x1p32,
                      0x1p53,
                      0x1p62,
                      0x1p63,
                      0x1p64,
                      0x1p65}) {
    for (uint32_t code = CodeOf(fp32, edge) - 2; code <= CodeOf(fp32, edge) + 2; ++code) {
      codes.push_back({fp32, code});
      codes.push_back({fp32, code | fp32.SignBit()});
    }
  }
  for (const Operand& a : codes) {
    ForRoundings([&](const Rounding& r, uint32_t random) { ExpectIntegers(a, r, random); });
    if (HasFailure()) return;
  }
}

// Worked by hand.
TEST(ToInteger, SaturatesWithInvalidAloneAndRoundsTiesToEven) {
  const FormatSpec fp16 = Spec("fp16");
  const auto integer = [&](double x, IntegerType type, RoundingMode mode) {
    return ToInteger({fp16, Encode(fp16, x)}, type, {.mode = mode});
  };
  const auto expect = [](const RoundedInteger& got, uint64_t bits, Flags flags) {
    EXPECT_EQ(got.bits, bits);
    EXPECT_EQ(got.flags, flags);
  };
  const RoundingMode rne = RoundingMode::kNearestEven;
  expect(integer(2.5, {8, true}, rne), 2, kInexact);
  expect(integer(-3.5, {8, true}, rne), 0xFC, kInexact);
  expect(integer(127.5, {8, true}, rne), 127, kInvalid);
  expect(integer(127.5, {8, true}, RoundingMode::kTowardZero), 127, kInexact);
  expect(integer(-128.5, {8, true}, rne), 0x80, kInexact);
  expect(integer(-129, {8, true}, rne), 0x80, kInvalid);
  expect(integer(-0.25, {8, false}, rne), 0, kInexact);
  expect(integer(-0.25, {8, false}, RoundingMode::kDown), 0, kInvalid);
  expect(integer(-0.0, {8, false}, rne), 0, 0);
  expect(integer(2.25, {8, true}, RoundingMode::kToOdd), 3, kInexact);
  expect(integer(kInfinity, {32, true}, rne), 0x7FFFFFFF, kInvalid);
  expect(integer(-kInfinity, {32, true}, rne), 0x80000000, kInvalid);
  expect(integer(-kInfinity, {64, false}, rne), 0, kInvalid);
  expect(integer(std::nan(""), {64, true}, rne), 0x7FFFFFFFFFFFFFFF, kInvalid);
  expect(integer(std::nan(""), {64, false}, rne), ~uint64_t{0}, kInvalid);
}

// The macros of Berkeley SoftFloat's specialize.h for the three processors.
TEST(ToInteger, AnInvalidConversionGivesTheIntegerOfTheConvention) {
  const FormatSpec fp16 = Spec("fp16");
  struct Row {
    InvalidInteger invalid;
    bool is_signed;
    uint32_t above, below, nan;
  };
  for (const Row& row : {Row{InvalidInteger::kRiscv, true, 0x7F, 0x80, 0x7F},
                         Row{InvalidInteger::kRiscv, false, 0xFF, 0, 0xFF},
                         Row{InvalidInteger::kArm, true, 0x7F, 0x80, 0},
                         Row{InvalidInteger::kArm, false, 0xFF, 0, 0},
                         Row{InvalidInteger::kX86, true, 0x80, 0x80, 0x80},
                         Row{InvalidInteger::kX86, false, 0xFF, 0xFF, 0xFF}}) {
    const auto integer = [&](double x) {
      const RoundedInteger got =
          ToInteger({fp16, Encode(fp16, x)}, {8, row.is_signed}, {}, 0, row.invalid);
      EXPECT_EQ(got.flags, kInvalid);
      return got.bits;
    };
    EXPECT_EQ(integer(256), row.above);
    EXPECT_EQ(integer(kInfinity), row.above);
    EXPECT_EQ(integer(-129), row.below);
    EXPECT_EQ(integer(-kInfinity), row.below);
    EXPECT_EQ(integer(std::nan("")), row.nan);
  }
}

// Counted over all words of 8 bits: P(away) is as the variant says, for every fraction of fp16.
TEST(ToInteger, StochasticProbabilitiesAreExactCounts) {
  const FormatSpec fp16 = Spec("fp16");
  for (double x : {0.0009765625,
                   0.0029296875,
                   0.25,
                   0.5,
                   0.50048828125,
                   0.998046875,
                   5.00390625,
                   5.75,
                   100.0625,
                   6.103515625e-5,
                   5.9604644775390625e-8,
                   0.00390625}) {
    const double scaled = (x - std::floor(x)) * 256;
    const std::pair<StochasticVariant, double> counts[] = {
        {StochasticVariant::kA, std::floor(scaled)},
        {StochasticVariant::kB, std::floor(scaled + 0.5)},
        {StochasticVariant::kC, std::nearbyint(scaled)}};
    for (const auto& [variant, count] : counts) {
      for (double sign : {1.0, -1.0}) {
        const Operand a = {fp16, CodeOf(fp16, sign * x)};
        int away = 0;
        for (uint32_t random = 0; random < 256; ++random) {
          const Rounding rounding = {RoundingMode::kStochastic, variant, 8};
          const RoundedInteger got = ToInteger(a, {16, true}, rounding, random);
          const auto value = static_cast<int16_t>(static_cast<uint16_t>(got.bits));
          if (std::abs(value) > std::floor(x)) ++away;
        }
        EXPECT_EQ(away, count) << x << " variant " << ToString(variant);
      }
    }
  }
}

// An integer cut to `precision` bits by the mode, exact as a float64 where precision <= 53.
double RoundedToPrecision(Int128 value, int precision, const Rounding& rounding, uint32_t random) {
  const bool negative = value < 0;
  const Int128 magnitude = negative ? -value : value;
  int width = 0;
  while ((magnitude >> width) != 0) ++width;
  const int cut = width > precision ? width - precision : 0;
  const Int128 below = magnitude >> cut;
  const Int128 rest = magnitude - (below << cut);
  // At most 63 bits are cut; of those a float64 need hold 33 and whether any other is set.
  const Int128 sticky = cut > 40 && (rest & ((Int128{1} << (cut - 40)) - 1)) != 0 ? 1 : 0;
  const Int128 kept = cut > 40 ? (rest >> (cut - 40)) * 2 + sticky : rest * 2;
  const double fraction = std::ldexp(static_cast<double>(kept), -1 - (cut > 40 ? 40 : cut));
  const bool away = GoesAway(rounding, negative, fraction, (below & 1) != 0, random);
  const double rounded = std::ldexp(static_cast<double>(below + (away ? 1 : 0)), cut);
  return negative ? -rounded : rounded;
}

void ExpectFromInteger(Int128 value, const EncodePlan& to, uint32_t random, const Rounded& got) {
  const FormatSpec& format = to.format;
  const double rounded = RoundedToPrecision(value, format.mantissa_bits + 1, to.rounding, random);
  const auto where = [&value = value, &to = to] {
    return fmt::format("{} to {}", static_cast<int64_t>(value), Text(to));
  };
  if (value < 0 && !format.IsSigned()) {
    ASSERT_EQ(got.flags & kInvalid, kInvalid) << where();
    ASSERT_EQ(got.code, Encode(format, rounded, to.rounding, to.overflow, random)) << where();
    return;
  }
  const bool overflow = std::abs(rounded) > static_cast<double>(MaxFinite(format));
  Flags flags = static_cast<Int128>(rounded) == value ? 0 : kInexact;
  if (overflow) flags = kInexact | kOverflow;
  ASSERT_EQ(got.code, Encode(format, rounded, to.rounding, to.overflow, random)) << where();
  ASSERT_EQ(got.flags, flags) << where();
}

std::vector<int64_t> AwkwardIntegers() {
  std::vector<int64_t> values = {0, INT64_MAX, INT64_MIN, INT64_MIN + 1, 464, 465, 449, 61440};
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    for (int64_t near : {-2, -1, 0, 1, 2}) values.push_back(power + near);
    for (int p : {3, 4, 8, 11, 24, 53}) {  // ties of that precision and their neighbours
      if (bit < p) continue;
      const int64_t half = int64_t{1} << (bit - p);
      for (int64_t near : {-1, 0, 1}) values.push_back(power + half + near);
      for (int64_t near : {-1, 0, 1}) values.push_back(power + 3 * half + near);
    }
  }
  oracle::TestRandom random(17);
  for (int i = 0; i < 500; ++i) {
    values.push_back(static_cast<int64_t>(random.Next() >> random.Below(64)));
  }
  return values;
}

constexpr const char* kTargets[] = {"fp32",
                                    "bf16",
                                    "fp16",
                                    "tf32",
                                    "e5m2",
                                    "e4m3fn",
                                    "e4m3fnuz",
                                    "e2m1fn",
                                    "int8",
                                    "binary8p3se",
                                    "binary8p8ue"};

TEST(FromInt64AndFromUint64, AreRoundedOnceInEveryModeUnderEveryPolicy) {
  const std::vector<int64_t> values = AwkwardIntegers();
  for (const char* name : kTargets) {
    const FormatSpec format = Spec(name);
    int calls = 0;
    ForRoundings([&](const Rounding& rounding, uint32_t random) {
      const EncodePlan to = MakeEncodePlan(format, rounding, kPolicies[calls++ % 3]);
      for (int64_t v : values) {
        const int64_t minus = static_cast<int64_t>(0 - static_cast<uint64_t>(v));
        const uint64_t bits = static_cast<uint64_t>(v), inverted = ~bits;
        ExpectFromInteger(v, to, random, FromInt64(v, to, random));
        ExpectFromInteger(minus, to, random, FromInt64(minus, to, random));
        ExpectFromInteger(static_cast<Int128>(bits), to, random, FromUint64(bits, to, random));
        ExpectFromInteger(
            static_cast<Int128>(inverted), to, random, FromUint64(inverted, to, random));
      }
    });
    if (HasFailure()) return;
  }
}

// Worked by hand.
TEST(FromInt64AndFromUint64, ExtremesAndTies) {
  const EncodePlan fp32 = MakeEncodePlan(Spec("fp32"));
  const EncodePlan bf16 = MakeEncodePlan(Spec("bf16"));
  const EncodePlan e5m2 = MakeEncodePlan(Spec("e5m2"));
  const EncodePlan e5m2_down = MakeEncodePlan(Spec("e5m2"), {.mode = RoundingMode::kTowardZero});
  EXPECT_EQ(FromInt64(INT64_MIN, fp32), (Rounded{0xDF000000, 0}));
  EXPECT_EQ(FromInt64(INT64_MAX, fp32), (Rounded{0x5F000000, kInexact}));
  EXPECT_EQ(FromUint64(UINT64_MAX, fp32), (Rounded{0x5F800000, kInexact}));
  EXPECT_EQ(FromUint64(UINT64_MAX, bf16), (Rounded{0x5F80, kInexact}));
  EXPECT_EQ(FromInt64((1 << 24) + 1, fp32), (Rounded{0x4B800000, kInexact}));  // tie to even
  EXPECT_EQ(FromInt64((1 << 24) + 3, fp32), (Rounded{0x4B800002, kInexact}));
  EXPECT_EQ(FromInt64((int64_t{1} << 53) + 1, fp32), (Rounded{0x5A000000, kInexact}));
  // Above a tie by one unit that a float64 would drop.
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 38);
  EXPECT_EQ(FromInt64(tie, fp32), (Rounded{0x5E800000, kInexact}));
  EXPECT_EQ(FromInt64(tie + 1, fp32), (Rounded{0x5E800001, kInexact}));
  EXPECT_EQ(FromInt64(-tie - 1, fp32), (Rounded{0xDE800001, kInexact}));
  EXPECT_EQ(FromInt64((int64_t{1} << 62) + (int64_t{1} << 54) + 1, bf16),
            (Rounded{0x5E81, kInexact}));
  EXPECT_EQ(FromInt64((int64_t{1} << 62) + 1, e5m2), (Rounded{0x7C, kOverflow | kInexact}));
  EXPECT_EQ(FromInt64((int64_t{1} << 62) + 1, e5m2_down), (Rounded{0x7B, kOverflow | kInexact}));
  EXPECT_EQ(FromInt64(61439, e5m2), (Rounded{0x7B, kInexact}));
  EXPECT_EQ(FromInt64(61440, e5m2), (Rounded{0x7C, kOverflow | kInexact}));
  EXPECT_EQ(FromInt64(0, fp32), (Rounded{0, 0}));
  EXPECT_EQ(FromUint64(0, MakeEncodePlan(Spec("fp32"), {.mode = RoundingMode::kDown})),
            (Rounded{0, 0}));
}

TEST(FromInt64AndFromUint64, FormatWithoutZeroGivesItsSmallestValueInexactly) {
  const Rounded zero = FromInt64(0, MakeEncodePlan(Spec("e8m0fnu")));
  EXPECT_EQ(zero.code, 0u);
  EXPECT_EQ(zero.flags & kInexact, kInexact);
  EXPECT_EQ(FromInt64(-1, MakeEncodePlan(Spec("e8m0fnu"))).flags & kInvalid, kInvalid);
}

void ExpectIntegral(const Operand& a, const Rounding& rounding, uint32_t random) {
  for (Overflow overflow : kPolicies) {
    const EncodePlan to = MakeEncodePlan(a.format, rounding, overflow);
    const Rounded got = RoundToIntegral(a, rounding, to, random);
    const double x = Value(a);
    if (std::isnan(x)) {
      ASSERT_EQ(got, (Rounded{a.format.NanCode(), Signals(a) ? kInvalid : Flags{0}})) << Text(a);
      continue;
    }
    double integral = x;
    if (std::abs(x) < 0x1p60) {
      const Int128 magnitude = RoundedMagnitude(x, rounding, random);
      integral = std::copysign(static_cast<double>(magnitude), x);
    }
    const bool fits = std::abs(integral) <= static_cast<double>(MaxFinite(a.format));
    ASSERT_EQ(got.code, Encode(a.format, integral, rounding, overflow, random))
        << Text(a) << " to " << Text(to);
    if (fits) {
      // e8m0fnu lacks zero: what rounds to it is changed once more.
      const bool changed = Value(a.format, got.code) != x || integral != x;
      ASSERT_EQ((got.flags & kInexact) != 0, changed) << Text(a) << " to " << Text(to);
      if (integral == 0) continue;
      ASSERT_EQ(got.flags & ~kInexact, 0) << Text(a) << " to " << Text(to);
    }
  }
}

TEST(RoundToIntegral, GivesTheIntegralValueOfAllCodesInEveryMode) {
  std::vector<Format> formats = NarrowFormats();
  formats.push_back(ParseFormat("fp16"));
  for (const Format& format : formats) {
    for (const Operand& a : AllCodes(format.spec)) {
      ForRoundings([&](const Rounding& r, uint32_t random) { ExpectIntegral(a, r, random); });
      if (HasFailure()) return;
    }
  }
}

TEST(RoundToIntegral, KeepsTheSignOfZeroAndOfInfinity) {
  const FormatSpec fp16 = Spec("fp16");
  const EncodePlan to = MakeEncodePlan(fp16);
  for (RoundingMode mode : kDeterministicModes) {
    const Rounding rounding = {.mode = mode};
    EXPECT_EQ(RoundToIntegral({fp16, 0x8000}, rounding, to), (Rounded{0x8000, 0}));
    EXPECT_EQ(RoundToIntegral({fp16, 0x0000}, rounding, to), (Rounded{0x0000, 0}));
    EXPECT_EQ(RoundToIntegral({fp16, 0xFC00}, rounding, to), (Rounded{0xFC00, 0}));
  }
  const Rounding toward_zero = {.mode = RoundingMode::kTowardZero};
  EXPECT_EQ(RoundToIntegral({fp16, 0xB800}, toward_zero, to), (Rounded{0x8000, kInexact}));  // -0.5
}

TEST(RoundToIntegral, DeliversInANarrowerFormatRoundedAgain) {
  // 18.25 -> 18, which e4m3fn holds; 19.25 -> 19, a tie there: to 20.
  const FormatSpec fp16 = Spec("fp16");
  const EncodePlan to = MakeEncodePlan(Spec("e4m3fn"));
  const Rounded eighteen = RoundToIntegral({fp16, CodeOf(fp16, 18.25)}, {}, to);
  const Rounded nineteen = RoundToIntegral({fp16, CodeOf(fp16, 19.25)}, {}, to);
  EXPECT_EQ(eighteen, (Rounded{CodeOf(to.format, 18), kInexact}));
  EXPECT_EQ(nineteen, (Rounded{CodeOf(to.format, 20), kInexact}));
}

}  // namespace
}  // namespace numsim
