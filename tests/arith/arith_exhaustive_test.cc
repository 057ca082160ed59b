// Everything that can be counted through: all operations of all narrow formats in all modes, all
// triples of some, and all 2^32 pairs of fp16 and bf16. Millions of random operands in wide
// formats.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/formats/format_table.h"
#include "tests/arith/arithmetic_judge.h"
#include "tests/reference/arith/hardware_judge.h"
#include "tests/reference/format_param.h"

namespace numsim {
namespace {

using oracle::Format;
using oracle::Operation;

std::vector<Format> NarrowFormats() {
  std::vector<Format> formats;
  for (const Format& f : oracle::AllFormats()) {
    if (f.bits <= 8) formats.push_back(f);
  }
  return formats;
}

class EveryOperand : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, EveryOperand, testing::ValuesIn(NarrowFormats()), oracle::ParamName);

TEST_P(EveryOperand, IsRightInEveryModeAndPolicy) {
  ArithmeticJudge judge(GetParam().name, oracle::AllSettings());
  for (Operation operation : oracle::kOperations) {
    judge.CheckAll(operation, oracle::Arity(operation) == 3 ? 101 : 1);
  }
}

TEST_P(EveryOperand, FusedMultiplyAddIsRightToNearestEven) {
  ArithmeticJudge judge(GetParam().name, {{}}, TininessRules::kAfterRounding);
  judge.CheckAll(Operation::kFusedMultiplyAdd);
  judge.CheckAll(Operation::kFusedAddAdd, 3);
}

class MillionsOfOperands : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         MillionsOfOperands,
                         testing::Values(oracle::FindFormat("fp16"),
                                         oracle::FindFormat("bf16"),
                                         oracle::FindFormat("fp32")),
                         oracle::ParamName);

TEST_P(MillionsOfOperands, AreRightToNearestEven) {
  ArithmeticJudge(GetParam().name, {{}}, TininessRules::kAfterRounding).CheckRandom(17, 4000000);
}

TEST_P(MillionsOfOperands, AreRightInEveryMode) {
  ArithmeticJudge(GetParam().name, oracle::AllSettings()).CheckRandom(18, 200000);
}

// Every result of all 2^32 pairs, by the array kernel, which the scalar functions equal.
class EveryPairOf16Bits
    : public testing::TestWithParam<std::tuple<const char*, HardwareOperation>> {};

std::string NameOf(const testing::TestParamInfo<EveryPairOf16Bits::ParamType>& info) {
  constexpr const char* kNames[] = {"Add", "Multiply", "Divide"};
  return std::string(std::get<0>(info.param)) + "_" +
         kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(,
                         EveryPairOf16Bits,
                         testing::Combine(testing::Values("fp16", "bf16"),
                                          testing::Values(HardwareOperation::kAdd,
                                                          HardwareOperation::kMultiply,
                                                          HardwareOperation::kDivide)),
                         NameOf);

ArithmeticOp KernelOf(HardwareOperation operation) {
  switch (operation) {
    case HardwareOperation::kAdd:
      return ArithmeticOp::kAdd;
    case HardwareOperation::kMultiply:
      return ArithmeticOp::kMultiply;
    case HardwareOperation::kDivide:
      break;
  }
  return ArithmeticOp::kDivide;
}

TEST_P(EveryPairOf16Bits, EqualsTheProcessor) {
  const HardwareOperation operation = std::get<1>(GetParam());
  const HardwareJudge judge(std::get<0>(GetParam()));
  const FormatSpec format = FindFormat(std::get<0>(GetParam()))->spec;
  const EncodePlan plan = MakeEncodePlan(format);
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> example = 0;
  ParallelTasks(all.size(), [&](size_t a) {
    const std::vector<uint16_t> same(all.size(), static_cast<uint16_t>(a));
    std::vector<uint16_t> codes(all.size());
    std::vector<uint8_t> flags(all.size());
    Arithmetic(KernelOf(operation),
               {format, std::span<const uint16_t>(same)},
               {format, std::span<const uint16_t>(all)},
               {},
               plan,
               std::span<uint16_t>(codes),
               {},
               true,
               flags);
    for (uint32_t b = 0; b < all.size(); ++b) {
      if (judge.IsRight(operation, static_cast<uint32_t>(a), b, {codes[b], flags[b]})) continue;
      ++wrong;
      example = a << 16 | b;
    }
  });
  EXPECT_EQ(wrong, 0u) << "one of them: 0x" << std::hex << example;
}

// The judge above and the oracle, on some of those pairs, through the scalar functions.
class SomePairsOf16Bits : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, SomePairsOf16Bits, testing::Values("fp16", "bf16"));

TEST_P(SomePairsOf16Bits, AreRightInEveryModeByTheOracle) {
  ArithmeticJudge nearest(GetParam(), {{}});
  ArithmeticJudge all(GetParam(), oracle::AllSettings());
  for (Operation operation :
       {Operation::kAdd, Operation::kMultiply, Operation::kDivide, Operation::kRemainder}) {
    nearest.CheckAll(operation, 331);
    all.CheckAll(operation, 10007);
  }
}

}  // namespace
}  // namespace numsim
