// The oracle of arithmetic itself: against 128-bit integers, hand-worked
// numbers, the oracle of conversions and the processor, whose flags it must
// reproduce too.
#include "tests/reference/arithmetic.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/inputs.h"

namespace oracle {
namespace {

__extension__ using Wide = unsigned __int128;

Natural NaturalOf(Wide x) {
  return (Natural(static_cast<uint64_t>(x >> 64)) << 64) + static_cast<uint64_t>(x);
}

// Random numbers of random length, so that carries and equal limbs occur.
uint64_t RandomLimb(TestRandom& random) {
  const uint64_t limb = random.Next() >> random.Below(64);
  return random.Below(4) == 0 ? ~limb : limb;
}

TEST(Natural, AgreesWithIntegersOf128Bits) {
  TestRandom random(1);
  for (int i = 0; i < 100000; ++i) {
    const Wide a = Wide{RandomLimb(random)} << random.Below(60);
    const Wide b = Wide{RandomLimb(random)} << random.Below(60);
    const Wide low = a < b ? a : b;
    const Wide high = a < b ? b : a;
    const int shift = static_cast<int>(random.Below(3));
    ASSERT_EQ(Compare(NaturalOf(a) + NaturalOf(b), NaturalOf(a + b)), 0);
    ASSERT_EQ(Compare(NaturalOf(high) - NaturalOf(low), NaturalOf(high - low)), 0);
    ASSERT_EQ(Compare(NaturalOf(a) << shift, NaturalOf(a << shift)), 0);
    ASSERT_EQ(Compare(NaturalOf(a), NaturalOf(b)), a < b ? -1 : a > b);
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    ASSERT_EQ(Compare(Natural(x) * y, NaturalOf(Wide{x} * y)), 0);
    if (b == 0) continue;
    const Division division = Divide(NaturalOf(a), NaturalOf(b));
    ASSERT_EQ(Compare(division.rest, NaturalOf(a % b)), 0);
    ASSERT_EQ(division.odd_quotient, a / b % 2 != 0);
  }
}

TEST(Natural, MultipliesAndDividesWideNumbers) {
  TestRandom random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto wide = [&random] {
      Natural x = RandomLimb(random);
      for (uint64_t k = random.Below(6); k > 0; --k) x = (x << 64) + RandomLimb(random);
      return x;
    };
    const Natural a = wide();
    const Natural b = wide();
    const Natural c = wide();
    ASSERT_EQ(Compare((a + b) * c, a * c + b * c), 0);
    ASSERT_EQ(Compare((a + b) - b, a), 0);
    ASSERT_EQ(Compare(a << 77, a * (Natural(1) << 77)), 0);
    if (c.IsZero()) continue;
    const Division division = Divide(a * c + (c - 1), c);
    ASSERT_EQ(Compare(division.rest, c - 1), 0);
    ASSERT_EQ(division.odd_quotient, a.IsOdd());
  }
}

float Float(uint32_t bits) { return std::bit_cast<float>(bits); }

struct Processor {
  uint32_t code;
  Flags flags;
};

Flags ProcessorFlags() {
  Flags flags = 0;
  if (std::fetestexcept(FE_INEXACT)) flags |= kInexactFlag;
  if (std::fetestexcept(FE_UNDERFLOW)) flags |= kUnderflowFlag;
  if (std::fetestexcept(FE_OVERFLOW)) flags |= kOverflowFlag;
  if (std::fetestexcept(FE_DIVBYZERO)) flags |= kDivideByZeroFlag;
  if (std::fetestexcept(FE_INVALID)) flags |= kInvalidFlag;
  return flags;
}

// The processor's float32 result and flags in the given mode.
Processor ByProcessor(Operation operation, const std::array<uint32_t, 3>& codes, int mode) {
  volatile float a = Float(codes[0]);
  volatile float b = Float(codes[1]);
  volatile float c = Float(codes[2]);
  volatile float result = 0;
  std::fesetround(mode);
  std::feclearexcept(FE_ALL_EXCEPT);
  switch (operation) {
    case Operation::kAdd:
      result = a + b;
      break;
    case Operation::kSubtract:
      result = a - b;
      break;
    case Operation::kMultiply:
      result = a * b;
      break;
    case Operation::kDivide:
      result = a / b;
      break;
    case Operation::kFusedMultiplyAdd:
      result = std::fma(a, b, c);
      break;
    case Operation::kSquareRoot:
      result = std::sqrt(a);
      break;
    case Operation::kReciprocal:
      result = 1.0f / a;
      break;
    case Operation::kRemainder:
      result = std::remainder(a, b);
      break;
    default:
      ADD_FAILURE();
  }
  const Flags flags = ProcessorFlags();
  std::fesetround(FE_TONEAREST);
  const float value = result;
  // A NaN of the processor has a payload and any sign.
  return {std::isnan(value) ? 0x7FC00000 : std::bit_cast<uint32_t>(value), flags};
}

// Float32 numbers, with exponents close to that of `near` as often as not.
uint32_t RandomNear(TestRandom& random, uint32_t near) {
  const uint32_t bits = random.Next32();
  switch (random.Below(8)) {
    case 0:
      return bits;
    case 1:
      return near;
    case 2:
      return bits & 0x80000000;
    case 3:
      return bits & 0x807FFFFF;  // a subnormal
    case 4:
      return (bits & 0x80000000) | 0x7F800000 | (random.Below(2) ? bits & 0x7FFFFF : 0);
    case 5:
      return bits & 0xFFFF0000;
    default:
      return (near & 0x7F800000) ^ (bits & 0x81FFFFFF);
  }
}

void ExpectProcessor(Operation operation, const std::array<uint32_t, 3>& codes, const Grid& grid) {
  constexpr std::pair<Mode, int> kModes[] = {{Mode::kNearestEven, FE_TONEAREST},
                                             {Mode::kTowardZero, FE_TOWARDZERO},
                                             {Mode::kUp, FE_UPWARD},
                                             {Mode::kDown, FE_DOWNWARD}};
  const std::array<ExactNumber, 3> operands = {
      ExactOf(grid, codes[0]), ExactOf(grid, codes[1]), ExactOf(grid, codes[2])};
  // inf * 0 + NaN: [IEEE754] leaves it open whether that is invalid.
  const bool open = operation == Operation::kFusedMultiplyAdd && operands[2].IsNan() &&
                    Exact(Operation::kMultiply, operands).IsNan();
  const Placement placement(grid, Exact(operation, operands), Modes::kDeterministic);
  for (const auto& [mode, processor_mode] : kModes) {
    const Processor expected = ByProcessor(operation, codes, processor_mode);
    const Outcome got = placement.Round({.mode = mode}, Tininess::kAfterRounding);
    ASSERT_EQ(got.code, expected.code)
        << ToString(operation) << std::hex << " " << codes[0] << " " << codes[1] << " " << codes[2]
        << " " << Describe({.mode = mode});
    if (open) continue;
    ASSERT_EQ(+got.flags, +expected.flags)
        << ToString(operation) << std::hex << " " << codes[0] << " " << codes[1] << " " << codes[2]
        << " " << Describe({.mode = mode});
  }
}

class OracleAndProcessor : public testing::TestWithParam<Operation> {};

INSTANTIATE_TEST_SUITE_P(,
                         OracleAndProcessor,
                         testing::Values(Operation::kAdd,
                                         Operation::kSubtract,
                                         Operation::kMultiply,
                                         Operation::kDivide,
                                         Operation::kFusedMultiplyAdd,
                                         Operation::kSquareRoot,
                                         Operation::kReciprocal,
                                         Operation::kRemainder),
                         [](const auto& param_info) {
                           return std::string(ToString(param_info.param));
                         });

TEST_P(OracleAndProcessor, GiveTheSameFloat32AndFlagsInFourModes) {
  const Grid grid(FindFormat("fp32"));
  TestRandom random(3);
  for (int i = 0; i < 60000 && !HasFatalFailure(); ++i) {
    const uint32_t a = RandomNear(random, 0x3F800000);
    const uint32_t b = RandomNear(random, a);
    ExpectProcessor(GetParam(), {a, b, RandomNear(random, random.Below(2) ? a : b)}, grid);
  }
}

// The sum that a product nearly cancels, where most of the product's low bits
// decide.
TEST(OracleAndProcessorFusedMultiplyAdd, GiveTheSameWhereItCancels) {
  const Grid grid(FindFormat("fp32"));
  TestRandom random(4);
  for (int i = 0; i < 60000 && !HasFatalFailure(); ++i) {
    const uint32_t a = random.Next32() & 0xBFFFFFFF;
    const uint32_t b = random.Next32() & 0xBFFFFFFF;
    const auto product = std::bit_cast<uint32_t>(Float(a) * Float(b));
    const uint32_t c = (product ^ 0x80000000) + static_cast<uint32_t>(random.Below(3)) - 1;
    ExpectProcessor(Operation::kFusedMultiplyAdd, {a, b, c}, grid);
  }
}

TEST(Placement, OfACodeAgreesWithTheOracleOfConversions) {
  const std::vector<Setting> settings = AllSettings();
  for (const Format& from : AllFormats()) {
    if (from.bits > 8) continue;
    const Grid source(from);
    for (const char* to : {"e4m3fn",
                           "e5m2",
                           "e8m0fnu",
                           "int8",
                           "bnb-e4m3",
                           "binary8p3ue",
                           "fp16",
                           "e7m2:bias=93",
                           "e1m6"}) {
      const Grid target(FindFormat(to));
      for (uint32_t code = 0; code < 1u << from.bits; ++code) {
        const Real real = DecodeCode(source, code);
        if (real.kind == Real::Kind::kUnused) continue;
        const Placement placement(target, ExactOf(source, code), Modes::kAll);
        const uint32_t word = TestRandom(code).Next32();
        for (const Setting& setting : settings) {
          ASSERT_EQ(placement.Round(setting, Tininess::kAfterRounding, word).code,
                    Encode(target, real, setting, word))
              << from.name << " " << code << " to " << to << " " << Describe(setting);
        }
      }
    }
  }
}

TEST(Placement, DecidesAlikeWithAndWithoutStochasticResolution) {
  for (const char* name : {"e4m3fn", "bnb-e5m2", "binary8p1se", "e8m0fnu"}) {
    const Grid grid(FindFormat(name));
    const std::vector<ExactNumber> values = AllExact(grid);
    for (size_t i = 0; i < values.size() * values.size(); i += 7) {
      const ExactNumber pair[] = {values[i % values.size()], values[i / values.size()]};
      for (Operation operation : {Operation::kAdd, Operation::kDivide, Operation::kSquareRoot}) {
        const ExactNumber exact = Exact(operation, pair);
        const Placement coarse(grid, exact, Modes::kDeterministic);
        const Placement fine(grid, exact, Modes::kAll);
        for (const Setting& setting : DeterministicSettings()) {
          for (Tininess tininess : {Tininess::kAfterRounding, Tininess::kBeforeRounding}) {
            ASSERT_EQ(coarse.Round(setting, tininess), fine.Round(setting, tininess))
                << name << " " << ToString(operation) << " " << i << " " << Describe(setting);
          }
        }
      }
    }
  }
}

Placement PlacementOf(const Grid& grid, Operation operation, uint32_t a, uint32_t b) {
  const ExactNumber operands[] = {ExactOf(grid, a), ExactOf(grid, b)};
  return Placement(grid, Exact(operation, operands), Modes::kAll);
}

// 1 / 3 lies between 0x2A = 0.3125 and 0x2B = 0.34375, two thirds of the way:
// floor(2^32 2 / 3).
TEST(Placement, CountsTheWordsOfAThird) {
  const Grid grid(FindFormat("e4m3fn"));
  const Placement third = PlacementOf(grid, Operation::kDivide, 0x38, 0x44);
  EXPECT_EQ(third.Round({}, Tininess::kAfterRounding), (Outcome{0x2B, kInexactFlag}));
  EXPECT_EQ(third.WordsAway(Variant::kA, 32), 2863311530u);
  EXPECT_EQ(third.WordsAway(Variant::kB, 32), 2863311531u);
  EXPECT_EQ(third.WordsAway(Variant::kC, 8), 171u);  // 170.67
  EXPECT_EQ(third.WordsAway(Variant::kA, 1), 1u);
}

// The root of 2 is 1.41421356237309504880: 0.31370849898476 of the way
// from 1.375 to 1.5.
TEST(Placement, CountsTheWordsOfTheRootOfTwo) {
  const Grid grid(FindFormat("e4m3fn"));
  const Placement root = PlacementOf(grid, Operation::kSquareRoot, 0x40, 0);
  EXPECT_EQ(root.Round({}, Tininess::kAfterRounding), (Outcome{0x3B, kInexactFlag}));
  EXPECT_EQ(root.WordsAway(Variant::kA, 32), 1347367743u);
}

// e4m3fn: the smallest normal number is 2^-6, 0x08; the value before it 0.875
// 2^-6, 0x07. Without a lower bound of the exponent it would be 0.9375 2^-6.
TEST(Placement, TellsTinyBeforeFromTinyAfterRounding) {
  const Grid grid(FindFormat("e4m3fn"));
  constexpr Flags kTiny = kInexactFlag | kUnderflowFlag;
  const auto product = [&grid](uint32_t a, uint32_t b, Tininess tininess) {
    return PlacementOf(grid, Operation::kMultiply, a, b).Round({}, tininess);
  };
  // 1.875 2^-6 times 0.5 = 0.9375 2^-6, and 1.375 2^-2 times 1.375 2^-5 =
  // 0.9453125 2^-6, go to 0x08, but to 0.9375 2^-6 without bound: tiny either
  // way.
  EXPECT_EQ(product(0x0F, 0x30, Tininess::kAfterRounding), (Outcome{0x08, kTiny}));
  EXPECT_EQ(product(0x2B, 0x13, Tininess::kAfterRounding), (Outcome{0x08, kTiny}));
  // 1.125 2^-6 times 0.875 = 0.984375 2^-6 goes to 2^-6 without bound: tiny
  // before rounding alone.
  EXPECT_EQ(product(0x09, 0x36, Tininess::kAfterRounding), (Outcome{0x08, kInexactFlag}));
  EXPECT_EQ(product(0x09, 0x36, Tininess::kBeforeRounding), (Outcome{0x08, kTiny}));
}

TEST(Placement, RaisesWhatTheTargetCannotHold) {
  const Grid e2m1(FindFormat("e2m1fn"));
  // 1 / 0: neither infinity nor NaN.
  EXPECT_EQ(PlacementOf(e2m1, Operation::kDivide, 2, 0).Round({}, Tininess::kAfterRounding),
            (Outcome{7, kDivideByZeroFlag | kOverflowFlag | kInexactFlag}));
  EXPECT_EQ(PlacementOf(e2m1, Operation::kDivide, 0, 0).Round({}, Tininess::kAfterRounding),
            (Outcome{7, kInvalidFlag}));
  const Grid e8m0(FindFormat("e8m0fnu"));
  EXPECT_EQ(PlacementOf(e8m0, Operation::kSubtract, 1, 2).Round({}, Tininess::kAfterRounding),
            (Outcome{0xFF, kInvalidFlag}));
  const Grid e5m2(FindFormat("e5m2"));
  // 0x7D is a signalling NaN, 0x7E a quiet one.
  EXPECT_EQ(PlacementOf(e5m2, Operation::kAdd, 0x7D, 0).Round({}, Tininess::kAfterRounding),
            (Outcome{0x7E, kInvalidFlag}));
  EXPECT_EQ(PlacementOf(e5m2, Operation::kAdd, 0xFE, 0).Round({}, Tininess::kAfterRounding),
            (Outcome{0x7E, 0}));
}

}  // namespace
}  // namespace oracle
