// Arithmetic in fp16, bf16, tf32, fp32 and some custom formats against the oracle, and roots and
// reciprocals of every code of every format of 9 to 16 bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/arith/arithmetic_judge.h"
#include "tests/arith/operand_codes.h"
#include "tests/reference/format_param.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

using oracle::FindFormat;
using oracle::Format;
using oracle::Operation;

std::vector<Format> FormatsOf9To16Bits() {
  std::vector<Format> formats;
  for (const Format& f : oracle::AllFormats()) {
    if (f.bits > 8 && f.bits <= 16) formats.push_back(f);
  }
  return formats;
}

class ArithmeticInWideFormat : public testing::TestWithParam<Format> {
 protected:
  const std::string& name() const { return GetParam().name; }
};

INSTANTIATE_TEST_SUITE_P(,
                         ArithmeticInWideFormat,
                         testing::Values(FindFormat("fp32"),
                                         FindFormat("tf32"),
                                         FindFormat("bf16"),
                                         FindFormat("fp16"),
                                         FindFormat("e8m3:bias=146"),
                                         FindFormat("e5m10:bias=-90"),
                                         FindFormat("e3m14:bias=40")),
                         oracle::ParamName);

TEST_P(ArithmeticInWideFormat, IsRightForEdgesByEdges) {
  const std::vector<uint32_t> edges = EdgeCodes(GetParam());
  ArithmeticJudge nearest(name(), {{}});
  ArithmeticJudge all(name(), oracle::AllSettings());
  size_t number = 0;
  for (uint32_t a : edges) {
    for (size_t i = number % SampleEvery(11); i < edges.size(); i += SampleEvery(11)) {
      for (Operation operation : oracle::kOperations) {
        const OperandCodes codes = {a, edges[i], edges[(number * 31) % edges.size()]};
        nearest.Check(operation, codes);
        if (++number % 29 == 0) all.Check(operation, codes);
      }
    }
  }
}

TEST_P(ArithmeticInWideFormat, IsRightForRandomOperands) {
  ArithmeticJudge(name(), {{}, {.mode = oracle::Mode::kDown}}).CheckRandom(1, 30000);
}

TEST_P(ArithmeticInWideFormat, ScalesByAnyPowerOfTwo) {
  ArithmeticJudge judge(name(), oracle::AllSettings());
  const std::vector<uint32_t> edges = EdgeCodes(GetParam());
  for (int64_t n = -300; n <= 300; n += SampleEvery(10)) {
    for (size_t i = static_cast<size_t>(n + 300) % 11; i < edges.size(); i += 11) {
      judge.CheckScaled(edges[i], n);
    }
  }
}

// The exact sum of a + b c, or of a + b + c, has hundreds of bits; the last decides.
TEST_P(ArithmeticInWideFormat, IsRightWhereATinyAddendBreaksATie) {
  const Format& f = GetParam();
  ArithmeticJudge judge(name(), oracle::DeterministicSettings());
  const uint32_t one = static_cast<uint32_t>(f.bias) << f.mantissa_bits;
  const uint32_t sign = uint32_t{1} << (f.bits - 1);
  const uint32_t binade = uint32_t{1} << f.mantissa_bits;
  if (one > f.max_code || one < (static_cast<uint32_t>(f.mantissa_bits) + 1) * binade) {
    GTEST_SKIP() << "1 is not a normal number with its half ulp";
  }
  const uint32_t half_ulp = one - (static_cast<uint32_t>(f.mantissa_bits) + 1) * binade;
  for (uint32_t base : {one, one + 1}) {
    for (uint32_t tiny : {0u, 1u, 3u, sign, sign | 1u, sign | 2u}) {
      for (uint32_t flip : {0u, sign}) {
        judge.Check(Operation::kFusedAddAdd, {base ^ flip, half_ulp ^ flip, tiny});
        judge.Check(Operation::kFusedAddAdd, {tiny, base ^ flip, half_ulp ^ flip});
        judge.Check(Operation::kFusedMultiplyAdd, {base, tiny, base ^ flip});
      }
    }
  }
}

class UnaryOfEveryCode : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         UnaryOfEveryCode,
                         testing::ValuesIn(FormatsOf9To16Bits()),
                         oracle::ParamName);

TEST_P(UnaryOfEveryCode, RootsAndReciprocalsAreRight) {
  ArithmeticJudge judge(GetParam().name,
                        {{},
                         {.mode = oracle::Mode::kTowardZero},
                         {.mode = oracle::Mode::kUp, .policy = oracle::Policy::kSaturate}});
  ArithmeticJudge all(GetParam().name, oracle::AllSettings());
  for (Operation operation : {Operation::kSquareRoot, Operation::kReciprocal}) {
    judge.CheckAll(operation);
    all.CheckAll(operation, 13);
  }
}

}  // namespace
}  // namespace numsim
