// The shortcuts of the device's casts against the scalar rule, on the host.
#include "numsim/cast/shared/cast_shortcut.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/inputs.h"

namespace numsim {
namespace {

using Kind = EncodeShortcutKind;

// The ordinal with R in field kField of a word, the other bits of the word set.
template <int kBits, int kField>
uint32_t StochasticOrdinal(const EncodeShortcut& s, uint32_t bits, uint32_t top) {
  const uint32_t field = top >> (32 - kBits) << (kBits * kField);
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << kBits) - 1) << (kBits * kField);
  if (s.kind == Kind::kStochasticSame) {
    return OrdinalStochasticSame<kBits, kField>(s, bits, field | ~(mask & s.random_mask));
  }
  return OrdinalStochasticNarrower<HostFloats, kBits, kField>(
      s, bits, field | ~(mask & s.random_mask));
}

uint32_t Ordinal(const EncodeShortcut& s, const EncodePlan& plan, uint32_t bits, uint32_t random) {
  const int n = plan.rounding.random_bits;
  switch (s.kind) {
    case Kind::kNearestNarrower:
      return OrdinalNearestNarrower<HostFloats>(s, bits);
    case Kind::kNearestSame:
      return OrdinalNearestSame(s, bits);
    default:
      break;
  }
  const uint32_t top = random << (32 - n);
  if (n > 16) return StochasticOrdinal<32, 0>(s, bits, top);
  if (n > 8) {
    return bits & 1 ? StochasticOrdinal<16, 1>(s, bits, top)
                    : StochasticOrdinal<16, 0>(s, bits, top);
  }
  switch (bits & 3) {
    case 0:
      return StochasticOrdinal<8, 0>(s, bits, top);
    case 1:
      return StochasticOrdinal<8, 1>(s, bits, top);
    case 2:
      return StochasticOrdinal<8, 2>(s, bits, top);
    default:
      return StochasticOrdinal<8, 3>(s, bits, top);
  }
}

uint32_t Code(const EncodeShortcut& s, const EncodePlan& plan, uint32_t bits, uint32_t random) {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return NanOf(s, bits);
  const uint32_t ordinal = Ordinal(s, plan, bits, random);
  return s.unsigned_zero && ordinal == 0 ? 0 : SignedCode(s, bits, ordinal);
}

// The upper halves of all float32 with lower halves near a tie, none and random ones.
std::vector<uint32_t> Inputs() {
  std::vector<uint32_t> inputs;
  oracle::TestRandom random(3);
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0u, high & 1 ? 1u : 0x8000u, random.Next32() & 0xFFFFu}) {
      inputs.push_back(high << 16 | low);
    }
  }
  return inputs;
}

struct Names : testing::TestWithParam<std::string> {
  const FormatSpec format = ParseFormat(GetParam()).spec;

  // The first input whose code is another than the rule's, if any; R runs through all values for
  // few bits and is random beyond.
  void ExpectTheRule(const Rounding& rounding, Overflow overflow) {
    const EncodePlan plan = MakeEncodePlan(format, rounding, overflow);
    const EncodeShortcut s = MakeEncodeShortcut(plan);
    if (s.kind == Kind::kNone) return;
    oracle::TestRandom draws(5);
    for (uint32_t bits : inputs) {
      const uint32_t random = draws.Next32() >> (32 - rounding.random_bits);
      const uint32_t want = EncodeF32(plan, bits, random);
      ASSERT_EQ(Code(s, plan, bits, random), want)
          << GetParam() << fmt::format(" {:#x} R {:#x} of {}", bits, random, rounding.random_bits);
    }
  }

  static const std::vector<uint32_t> inputs;
};
const std::vector<uint32_t> Names::inputs = Inputs();

struct EncodeShortcuts : Names {};
struct DecodeShortcuts : Names {};

constexpr Overflow kPolicies[] = {
    Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate};

TEST_P(EncodeShortcuts, NearestEvenEqualsTheRule) {
  for (Overflow overflow : kPolicies) ExpectTheRule({}, overflow);
}

TEST_P(EncodeShortcuts, StochasticRoundingEqualsTheRule) {
  for (int bits : {1, 5, 8, 11, 16, 17, 24, 32}) {
    ExpectTheRule({RoundingMode::kStochastic, StochasticVariant::kA, bits},
                  kPolicies[static_cast<size_t>(bits) % 3]);
  }
}

// R near both ends, where one unit decides about numbers next to a value of the format.
TEST_P(EncodeShortcuts, TheLastUnitOfThirtyTwoRandomBitsDecides) {
  const EncodePlan plan =
      MakeEncodePlan(format, {RoundingMode::kStochastic, StochasticVariant::kA, 32});
  const EncodeShortcut s = MakeEncodeShortcut(plan);
  if (s.kind == Kind::kNone) return;
  for (uint32_t bits : inputs) {
    for (uint32_t random : {0u, 1u, 0xFFFFu, 0x10000u, 0xFFFF0000u, 0xFFFFFFFEu, 0xFFFFFFFFu}) {
      ASSERT_EQ(Code(s, plan, bits, random), EncodeF32(plan, bits, random))
          << GetParam() << fmt::format(" {:#x} R {:#x}", bits, random);
    }
  }
}

TEST_P(DecodeShortcuts, EqualDecodeForEveryCodeAndIgnoreBitsAboveIt) {
  const DecodeShortcut s = MakeDecodeShortcut(format);
  if (!s.usable) return;
  const uint64_t codes = uint64_t{1} << std::min(format.Bits(), 20);
  for (uint64_t i = 0; i < codes; ++i) {
    const uint32_t code = static_cast<uint32_t>(i);
    const uint32_t above = format.Bits() < 32 ? ~format.CodeMask() : 0;
    const uint32_t want = std::bit_cast<uint32_t>(Decode(format, code));
    ASSERT_EQ(DecodeByShortcut<HostFloats>(s, code), want) << GetParam() << " " << code;
    ASSERT_EQ(DecodeByShortcut<HostFloats>(s, code | above), want) << GetParam() << " " << code;
  }
}

std::vector<std::string> TestedFormats() {
  std::vector<std::string> names;
  for (const FormatEntry& entry : FormatTable()) names.emplace_back(entry.name);
  for (const char* custom : {"e5m10:bias=20",
                             "e4m3:nan=negative-zero,inf=top",
                             "e5m6",
                             "e8m12",
                             "e2m0:inf=none,nan=none",
                             "e7m16",
                             "e6m21",
                             "e8m21",
                             "e1m6"}) {
    names.emplace_back(custom);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(, EncodeShortcuts, testing::ValuesIn(TestedFormats()));
INSTANTIATE_TEST_SUITE_P(, DecodeShortcuts, testing::ValuesIn(TestedFormats()));

TEST(EncodeShortcut, CommonConversionsHaveOne) {
  const Rounding stochastic = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  for (const FormatSpec& format : {kE4M3fn, kE5M2, kFp16, kE4M3fnuz, kE2M1fn}) {
    EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(format)).kind, Kind::kNearestNarrower);
    EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(format, stochastic)).kind,
              Kind::kStochasticNarrower);
  }
  EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(kBf16)).kind, Kind::kNearestSame);
  EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(kBf16, stochastic)).kind, Kind::kStochasticSame);
}

TEST(EncodeShortcut, WhatNeedsTheRuleHasNone) {
  const Rounding variant_b = {RoundingMode::kStochastic, StochasticVariant::kB, 16};
  EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(kE4M3fn, variant_b)).kind, Kind::kNone);
  EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(kE4M3fn, {RoundingMode::kUp})).kind, Kind::kNone);
  EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(kE5M2, {}, Overflow::kPropagate)).kind, Kind::kNone);
  for (const FormatSpec& format : {kInt8, kE8M0fnu, kFp32}) {
    EXPECT_EQ(MakeEncodeShortcut(MakeEncodePlan(format)).kind, Kind::kNone);
  }
}

}  // namespace
}  // namespace numsim
