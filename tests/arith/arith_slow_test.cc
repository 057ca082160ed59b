// Pairs of every format of up to 8 bits, triples of two of them, and random operands in the wide
// ones, against the oracle. arith_exhaustive_test.cc has every pair and triple, and more operands.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
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

// Odd, so that strided pairs and triples meet every code of each operand.
constexpr uint64_t kPairStride = 5;
constexpr uint64_t kTripleStride = 15;

class PairsOfFormat : public testing::TestWithParam<Format> {
 protected:
  // All pairs of formats of up to 6 bits.
  uint64_t Stride() const { return GetParam().bits > 6 ? kPairStride : 1; }
};

INSTANTIATE_TEST_SUITE_P(, PairsOfFormat, testing::ValuesIn(NarrowFormats()), oracle::ParamName);

TEST_P(PairsOfFormat, AreRightInEveryDeterministicModeAndPolicy) {
  ArithmeticJudge judge(
      GetParam().name, oracle::DeterministicSettings(), TininessRules::kAfterRounding);
  uint64_t first = 0;
  for (Operation operation : kPairs) judge.CheckAll(operation, Stride(), first++ % Stride());
}

TEST_P(PairsOfFormat, HaveTheRightRemainderToNearestEven) {
  ArithmeticJudge(GetParam().name, {{}}).CheckAll(Operation::kRemainder, Stride());
}

class TriplesOfFormat : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, TriplesOfFormat, testing::Values("e4m3fn", "e5m2"));

TEST_P(TriplesOfFormat, AreRightInAFusedMultiplyAddToNearestEven) {
  ArithmeticJudge judge(GetParam(), {{}}, TininessRules::kAfterRounding);
  judge.CheckAll(Operation::kFusedMultiplyAdd, kTripleStride);
  EXPECT_EQ(judge.checked(), (uint64_t{1} << 24) / kTripleStride + 1);
}

class RandomOperands : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         RandomOperands,
                         testing::Values(FindFormat("fp16"),
                                         FindFormat("bf16"),
                                         FindFormat("fp32")),
                         oracle::ParamName);

TEST_P(RandomOperands, AreRightToNearestEven) {
  ArithmeticJudge(GetParam().name, {{}}, TininessRules::kAfterRounding).CheckRandom(7, 150000);
}

TEST_P(RandomOperands, AreRightInEveryMode) {
  ArithmeticJudge(GetParam().name, oracle::AllSettings()).CheckRandom(8, 10000);
}

}  // namespace
}  // namespace numsim
