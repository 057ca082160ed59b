// Elementary functions of arrays against the scalar functions, codes and flags bit for bit.
#include "numsim/cast/elementary.h"

#include <gtest/gtest.h>

#include <vector>

#include "numsim/random/streams.h"
#include "tests/cast/arithmetic_problem.h"
#include "tests/support/every_backend.h"
#include "tests/support/misuse.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

using F = ElementaryFunction;

constexpr size_t kFew = 2000;  // longer arrays are computed once

std::vector<EncodePlan> SomePlans(const FormatSpec& to) {
  EncodePlan before = MakeEncodePlan(to, {RoundingMode::kUp}, Overflow::kSaturate);
  before.tininess = Tininess::kBeforeRounding;
  return {MakeEncodePlan(to),
          before,
          MakeEncodePlan(to, {RoundingMode::kStochastic, StochasticVariant::kA, 32}),
          MakeEncodePlan(to, {RoundingMode::kStochastic, StochasticVariant::kC, 7})};
}

// Codes from first on, with bits above the format set in every third.
std::vector<uint32_t> CodesFrom(const FormatSpec& format, uint32_t first, size_t n, int bytes) {
  std::vector<uint32_t> codes(n);
  const bool wider = bytes * 8 > format.Bits();
  for (size_t i = 0; i < n; ++i) {
    codes[i] = (first + static_cast<uint32_t>(i)) & format.CodeMask();
    if (wider && i % 3 == 0) codes[i] |= format.CodeMask() + 1;
  }
  return codes;
}

Results ScalarResultsOf(F function,
                        const FormatSpec& from,
                        const std::vector<uint32_t>& codes,
                        const EncodePlan& to,
                        const ArrayRandom& random) {
  Results results;
  for (size_t i = 0; i < codes.size(); ++i) {
    uint32_t r = 0;
    if (to.rounding.mode == RoundingMode::kStochastic) {
      r = RandomBits(random.stream, random.first_index + i, to.rounding.random_bits);
    }
    const Rounded got = Elementary(function, {from, codes[i] & from.CodeMask()}, to, r);
    results.codes.push_back(got.code);
    results.flags.push_back(got.flags);
    results.all |= got.flags;
  }
  return results;
}

// Compares the array function, with and without flags, with the scalar one.
void ExpectArrayAsScalar(F function,
                         const FormatSpec& from,
                         const std::vector<uint32_t>& codes,
                         int bytes,
                         const EncodePlan& to) {
  const ArrayRandom random = {kStream, 77};
  const Results want = ScalarResultsOf(function, from, codes, to, random);
  const Stored in(bytes, codes, 1);
  const std::string what = fmt::format("{} {} to {}", ToString(function), ToString(from), Text(to));
  Stored out(to.format.StorageBytes(), std::vector<uint32_t>(codes.size(), 7), 0);
  std::vector<uint8_t> flags(codes.size(), 0x80);
  const ArrayOperand a = {from, in.Get()};
  ASSERT_EQ(Elementary(function, a, to, out.Out(), random, false, flags), want.all) << what;
  ASSERT_EQ(out.Words(), want.codes) << what;
  ASSERT_EQ(flags, want.flags) << what;
  if (codes.size() > kFew) return;
  Stored again(4, std::vector<uint32_t>(codes.size(), 7), 0);
  ASSERT_EQ(Elementary(function, a, to, again.Out(), random), 0) << what;
  ASSERT_EQ(again.Words(), want.codes) << what;
  ASSERT_EQ(Elementary(function, a, to, again.Out(), random, true), want.all) << what;
}

TEST(ElementaryArray, EqualsTheScalarFunctionInLongAndShortArrays) {
  size_t i = 0;
  for (const auto& [from, to] : {std::pair{"e4m3fn", "e4m3fn"},
                                 std::pair{"e5m2", "fp16"},
                                 std::pair{"int8", "bf16"},
                                 std::pair{"e2m1fn", "e8m0fnu"},
                                 std::pair{"binary8p3se", "bnb-e4m3"},
                                 std::pair{"fp32", "fp32"}}) {
    const FormatSpec format = Spec(from);
    for (F function : kElementaryFunctions) {
      for (const EncodePlan& plan : SomePlans(Spec(to))) {
        if (i++ % SampleEvery(5) != 0) continue;
        for (size_t n : {size_t{0}, size_t{1}, size_t{255}, size_t{1000}}) {
          const int bytes = format.StorageBytes() << (format.StorageBytes() < 4 ? i % 2 : 0);
          ExpectArrayAsScalar(function, format, CodesFrom(format, 250, n, bytes), bytes, plan);
        }
      }
    }
    if (HasFailure()) return;
  }
}

TEST(ElementaryArray, EqualsTheScalarFunctionByTablesOf16BitCodes) {
  const std::vector<EncodePlan> plans = SomePlans(Spec("bf16"));
  for (size_t i = 0; i < plans.size(); i += SampleEvery(3)) {
    const F function = kElementaryFunctions[2 * i];
    ExpectArrayAsScalar(function, Spec("fp16"), CodesFrom(Spec("fp16"), 5, 66001, 2), 2, plans[i]);
  }
}

// The scalar backend takes no table.
TEST(ElementaryArray, GivesTheSameOnEveryBackend) {
  const FormatSpec format = Spec("e4m3fn");
  WithEachBackend([&] {
    for (F function : kElementaryFunctions) {
      for (const EncodePlan& plan : SomePlans(format)) {
        ExpectArrayAsScalar(function, format, CodesFrom(format, 0, 300, 1), 1, plan);
      }
    }
  });
}

TEST(ElementaryArray, OutputMayBeTheMemoryOfTheOperand) {
  const FormatSpec format = Spec("e4m3fn");
  const EncodePlan to = MakeEncodePlan(format);
  std::vector<uint8_t> codes(5000), apart(5000);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 7);
  Elementary(F::kGelu, {format, std::span<const uint8_t>(codes)}, to, std::span(apart));
  Elementary(F::kGelu, {format, std::span<const uint8_t>(codes)}, to, std::span(codes));
  EXPECT_EQ(codes, apart);
}

TEST(ElementaryTable, ServesManyArrays) {
  const FormatSpec from = Spec("bf16");
  const EncodePlan to = MakeEncodePlan(Spec("e5m2"));
  const ElementaryTable table(F::kSigmoid, from, to);
  for (uint32_t first : {0u, 0x3F00u, 0xC000u}) {
    const std::vector<uint32_t> codes = CodesFrom(from, first, 300, 2);
    const Results want = ScalarResultsOf(F::kSigmoid, from, codes, to, {});
    const Stored in(2, codes, 0);
    Stored out(1, std::vector<uint32_t>(300, 7), 0);
    EXPECT_EQ(table.Apply(in.Get(), out.Out(), {}, true), want.all);
    EXPECT_EQ(out.Words(), want.codes);
  }
}

TEST(ElementaryArray, ArraysThatDoNotFitThrow) {
  const EncodePlan to = MakeEncodePlan(Spec("fp16"));
  const FormatSpec e4m3fn = Spec("e4m3fn"), fp16 = Spec("fp16");
  const std::vector<uint8_t> a(3);
  std::vector<uint16_t> out(3), longer(4);
  std::vector<uint8_t> narrow(3), flags(2);
  const ArrayOperand operand = {e4m3fn, std::span(a)}, wide = {fp16, std::span(a)};
  ExpectErrors({
      {[&] { Elementary(F::kExp, operand, to, std::span(longer)); },
       "Elementary: 'a' has 3 elements, expected 4"},
      {[&] { Elementary(F::kExp, wide, to, std::span(out)); },
       "Elementary: 'a' has codes of 8 bits, and the format has 16"},
      {[&] { Elementary(F::kExp, operand, to, std::span(narrow)); },
       "Elementary: 'out' has codes of 8 bits, and the format has 16"},
      {[&] { Elementary(F::kExp, operand, to, std::span(out), {}, false, flags); },
       "Elementary: 'flags' has 2 elements, expected 3"},
      {[&] { ElementaryTable(F::kExp, Spec("fp32"), to); },
       "ElementaryTable: 'from' has 32 bits, expected a format of up to 16 bits"},
  });
}

}  // namespace
}  // namespace numsim
