// The operation from-f64, judged by sums of powers of two that are computed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

struct Result {
  uint64_t code;
  Flags flags;
};

Result FromFloat64(const char* format, uint64_t bits, Rounding rounding = {}) {
  const auto operation = MakeOperation({.op = "from-f64", .format = format, .rounding = rounding});
  uint64_t code = 0;
  const Flags flags = operation->Evaluate(std::span(&bits, 1), std::span(&code, 1));
  return {code, flags};
}

TEST(FromFloat64, RoundsOnceWithTheFlagsOfTheExactValue) {
  // Rounds up to the smallest normal of float32, from below it: inexact, and tiny before rounding
  // with 24 bits alone.
  const Result cvfpu = FromFloat64("fp32", 0x380F'FFFF'E000'0000);
  EXPECT_EQ(cvfpu.code, 0x0080'0000u);
  EXPECT_EQ(cvfpu.flags, kInexact | kUnderflow);
  // Through float32 this would be a tie that goes to even, 1.0.
  EXPECT_EQ(FromFloat64("bf16", std::bit_cast<uint64_t>(1.00390625 + 0x1p-40)).code, 0x3F81u);
  EXPECT_EQ(FromFloat64("bf16", std::bit_cast<uint64_t>(1.00390625)).code, 0x3F80u);
  EXPECT_EQ(FromFloat64("e4m3fn", 0x7FF0'0000'0000'0001).flags, kInvalid);
  EXPECT_EQ(FromFloat64("e4m3fn", 0x7FF8'0000'0000'0000).flags, 0);
  EXPECT_EQ(FromFloat64("e5m2", std::bit_cast<uint64_t>(1e300)).flags, kOverflow | kInexact);
  EXPECT_EQ(FromFloat64("e4m3fn", 1).code, 0u);
  EXPECT_EQ(FromFloat64("e4m3fn", 1, {.mode = RoundingMode::kUp}).code, 1u);
}

// Nearest even by comparing distances; every value of the format is tried.
TEST(FromFloat64, EdgesAreRoundedToTheNearestValue) {
  const auto operation = MakeOperation({.op = "from-f64", .format = "e4m3fn"});
  const CaseGenerator cases(*operation, ParseCaseLevel("edges", 0));
  std::set<double> tried;
  for (uint64_t i = 0; i < cases.size(); ++i) {
    uint64_t bits = 0, code = 0;
    cases.Case(i, std::span(&bits, 1));
    operation->Evaluate(std::span(&bits, 1), std::span(&code, 1));
    const auto x = std::bit_cast<double>(bits);
    tried.insert(x);
    if (std::isnan(x) || std::abs(x) >= 464) continue;
    uint64_t best = 0;
    for (uint64_t candidate = 1; candidate < 0x7F; ++candidate) {
      const auto distance = [&](uint64_t c) {
        return std::abs(double{Decode(kE4M3fn, static_cast<uint32_t>(c))} - std::abs(x));
      };
      const bool closer = distance(candidate) < distance(best);
      if (closer || (distance(candidate) == distance(best) && candidate % 2 == 0)) best = candidate;
    }
    EXPECT_EQ(code, best | (std::signbit(x) ? 0x80 : 0)) << x;
  }
  // Ties, and the numbers next to them, that float32 does not have.
  for (const double tie : {0x1p-10, 1.0625, 464.0}) {
    for (const double x : {tie, -tie, std::nextafter(tie, 0), std::nextafter(tie, 1e9)}) {
      EXPECT_TRUE(tried.contains(x)) << x;
    }
  }
}

TEST(FromFloat64, RandomCasesAreInTheRangeOfTheFormat) {
  for (const char* const format : {"e4m3fn", "e8m0fnu", "fp32"}) {
    const auto operation = MakeOperation({.op = "from-f64", .format = format});
    const CaseGenerator cases(*operation, ParseCaseLevel("random:1000", 3));
    size_t finite = 0;
    for (uint64_t i = 0; i < cases.size(); ++i) {
      uint64_t bits = 0, code = 0;
      cases.Case(i, std::span(&bits, 1));
      const Flags flags = operation->Evaluate(std::span(&bits, 1), std::span(&code, 1));
      finite += (flags & (kOverflow | kInvalid)) == 0 && code != 0;
    }
    EXPECT_GT(finite, 200u) << format;
  }
}

}  // namespace
}  // namespace numsim
