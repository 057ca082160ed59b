// Every pair of every format of up to 8 bits, every fused multiply-add of two of them, and millions
// of random operands in the wide ones, against the oracle.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/arith/arithmetic_judge.h"
#include "tests/arith/operand_codes.h"
#include "tests/reference/format_param.h"

namespace numsim {
namespace {

using oracle::FindFormat;
using oracle::Format;
using oracle::Operation;

constexpr Operation kPairs[] = {
    Operation::kAdd, Operation::kSubtract, Operation::kMultiply, Operation::kDivide};

std::vector<Format> NarrowFormats() {
  std::vector<Format> formats;
  for (const Format& f : oracle::AllFormats()) {
    if (f.bits <= 8) formats.push_back(f);
  }
  return formats;
}

class EveryPair : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, EveryPair, testing::ValuesIn(NarrowFormats()), oracle::ParamName);

TEST_P(EveryPair, IsRightInEveryDeterministicModeAndPolicy) {
  ArithmeticJudge judge(
      GetParam().name, oracle::DeterministicSettings(), TininessRules::kAfterRounding);
  for (Operation operation : kPairs) judge.CheckAll(operation);
}

TEST_P(EveryPair, RemainderIsRightToNearestEven) {
  ArithmeticJudge(GetParam().name, {{}}).CheckAll(Operation::kRemainder);
}

// One part in four of all 2^24 triples.
class EveryTriple : public testing::TestWithParam<std::tuple<std::string, uint64_t>> {};

INSTANTIATE_TEST_SUITE_P(,
                         EveryTriple,
                         testing::Combine(testing::Values(std::string("e4m3fn"),
                                                          std::string("e5m2")),
                                          testing::Range(uint64_t{0}, uint64_t{4})));

TEST_P(EveryTriple, FusedMultiplyAddIsRightToNearestEven) {
  const auto& [format, part] = GetParam();
  ArithmeticJudge judge(format, {{}}, TininessRules::kAfterRounding);
  judge.CheckAll(Operation::kFusedMultiplyAdd, 4, part);
  EXPECT_EQ(judge.checked(), uint64_t{1} << 22);
}

class MillionsOfOperands : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         MillionsOfOperands,
                         testing::Values(FindFormat("fp16"),
                                         FindFormat("bf16"),
                                         FindFormat("fp32")),
                         oracle::ParamName);

TEST_P(MillionsOfOperands, AreRightToNearestEven) {
  const Format& f = GetParam();
  ArithmeticJudge judge(f.name, {{}}, TininessRules::kAfterRounding);
  oracle::TestRandom random(7);
  const uint32_t one = static_cast<uint32_t>(f.bias) << f.mantissa_bits;
  for (int i = 0; i < 1000000; ++i) {
    const uint32_t a = RandomCode(random, f, one);
    const uint32_t b = RandomCode(random, f, a);
    const OperandCodes codes = {a, b, RandomCode(random, f, i % 2 ? a : one)};
    for (Operation operation : oracle::kOperations) judge.Check(operation, codes);
  }
}

TEST_P(MillionsOfOperands, AreRightInEveryMode) {
  const Format& f = GetParam();
  ArithmeticJudge judge(f.name, oracle::AllSettings());
  oracle::TestRandom random(8);
  const uint32_t one = static_cast<uint32_t>(f.bias) << f.mantissa_bits;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = RandomCode(random, f, one);
    const uint32_t b = RandomCode(random, f, a);
    const OperandCodes codes = {a, b, RandomCode(random, f, i % 2 ? a : one)};
    for (Operation operation : oracle::kOperations) judge.Check(operation, codes);
  }
}

}  // namespace
}  // namespace numsim
