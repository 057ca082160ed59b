// The proof that elementary functions of operands of up to 16 significant bits are always decided:
// every such number that float32 holds, so every operand of every format of up to 16 bits.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/base/parallel.h"
#include "tests/arith/elementary_judge.h"

namespace numsim {
namespace {

// A function that is not decided aborts the program.
TEST(ElementaryExhaustive, EveryNumberOf16BitsIsDecided) {
  constexpr size_t kOdd = size_t{1} << 15, kExponents = 127 + 149 + 1;
  for (ElementaryFunction function : kElementaryFunctions) {
    std::atomic<uint64_t> finite{0}, nan{0};
    ParallelFor(kOdd * kExponents * 2, 1 << 12, [&](size_t begin, size_t end) {
      uint64_t finite_here = 0, nan_here = 0;
      for (size_t i = begin; i < end; ++i) {
        const uint64_t significand = 2 * (i / 2 % kOdd) + 1;
        const int binade = static_cast<int>(i / (2 * kOdd)) - 149;
        const int exponent = binade - static_cast<int>(std::bit_width(significand)) + 1;
        if (exponent < -149) continue;  // not in float32
        const Unrounded x = {NumberKind::kFinite, i % 2 != 0, exponent, significand};
        const Unrounded y = exact::Elementary(function, x).value;
        ++(y.kind == NumberKind::kNan ? nan_here : finite_here);
      }
      finite += finite_here;
      nan += nan_here;
    });
    // Logarithms and reciprocal roots have no value below zero, and other functions at large numbers.
    const bool halves = function == ElementaryFunction::kLog ||
                        function == ElementaryFunction::kLog2 ||
                        function == ElementaryFunction::kRsqrt;
    const bool bounded = function >= ElementaryFunction::kExpMinusOne && !halves;
    if (!bounded) {
      EXPECT_EQ(nan.load(), halves ? finite.load() : 0) << ToString(function);
    }
    EXPECT_GT(finite.load(), uint64_t{4'000'000}) << ToString(function);
    RecordProperty(std::string(ToString(function)), std::to_string(finite.load()));
  }
}

// Every code of bf16 and fp16 against MPFR, for the functions of which elementary_mpfr_test.cc takes
// every 13th.
TEST(ElementaryExhaustive, EqualsMpfrOnEveryCodeOf16Bits) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << "MPFR was not found when this was built";
  for (const char* format : {"bf16", "fp16"}) {
    ElementaryJudge judge(format, {format}, oracle::DeterministicSettings());
    for (ElementaryFunction function : kElementaryFunctions) judge.CheckAll(function);
  }
}

}  // namespace
}  // namespace numsim
