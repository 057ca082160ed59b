// Arithmetic in formats of up to 8 bits against the oracle: code and flags, under both rules of
// tininess. arith_slow_test.cc has every format.
#include "numsim/arith/arith.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/arith/arithmetic_judge.h"
#include "tests/arith/operand_codes.h"
#include "tests/reference/format_param.h"

namespace numsim {
namespace {

using oracle::FindFormat;
using oracle::Format;
using oracle::Operation;

const std::vector<oracle::Setting> kNearestEven = {{}};
constexpr Operation kPairs[] = {
    Operation::kAdd, Operation::kSubtract, Operation::kMultiply, Operation::kDivide};

// Odd, so that strided pairs and triples meet every code of each operand.
constexpr uint64_t kPairStride = 67;
constexpr uint64_t kTripleStride = 10007;

class ArithmeticInFormat : public testing::TestWithParam<Format> {
 protected:
  const std::string& name() const { return GetParam().name; }
};

INSTANTIATE_TEST_SUITE_P(,
                         ArithmeticInFormat,
                         testing::Values(FindFormat("e4m3fn"),
                                         FindFormat("e5m2"),
                                         FindFormat("e4m3fnuz"),
                                         FindFormat("binary8p3se"),
                                         FindFormat("binary8p1se"),
                                         FindFormat("binary8p3ue"),
                                         FindFormat("e2m1fn"),
                                         FindFormat("e2m3fn"),
                                         FindFormat("e8m0fnu"),
                                         FindFormat("int8"),
                                         FindFormat("bnb-e4m3"),
                                         FindFormat("e1m6"),
                                         FindFormat("e2m0:inf=none,nan=none"),
                                         FindFormat("e4m3:nan=all-ones,inf=top")),
                         oracle::ParamName);

TEST_P(ArithmeticInFormat, IsRightForEveryPairToNearestEven) {
  ArithmeticJudge judge(name(), kNearestEven);
  for (Operation operation : kPairs) judge.CheckAll(operation);
}

TEST_P(ArithmeticInFormat, IsRightForSomePairsInEveryModeAndPolicy) {
  ArithmeticJudge judge(name(), oracle::AllSettings());
  uint64_t first = 0;
  for (Operation operation : kPairs) judge.CheckAll(operation, kPairStride, first++);
}

TEST_P(ArithmeticInFormat, IsRightForEveryCodeInEveryModeAndPolicy) {
  ArithmeticJudge judge(name(), oracle::AllSettings());
  for (Operation operation :
       {Operation::kSquareRoot, Operation::kReciprocal, Operation::kConvert}) {
    judge.CheckAll(operation);
  }
}

TEST_P(ArithmeticInFormat, IsRightForSomeTriples) {
  ArithmeticJudge nearest(name(), kNearestEven);
  ArithmeticJudge all(name(), oracle::AllSettings());
  for (Operation operation : {Operation::kFusedMultiplyAdd, Operation::kFusedAddAdd}) {
    nearest.CheckAll(operation, 101);
    all.CheckAll(operation, kTripleStride, 3);
  }
}

TEST_P(ArithmeticInFormat, RemainderIsRightForEveryPair) {
  ArithmeticJudge(name(), kNearestEven).CheckAll(Operation::kRemainder);
  ArithmeticJudge(name(), oracle::DeterministicSettings())
      .CheckAll(Operation::kRemainder, kPairStride);
}

TEST_P(ArithmeticInFormat, ScalesByAnyPowerOfTwo) {
  std::vector<int64_t> powers = {std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int64_t>::min() + 1,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::max() - 1,
                                 -(int64_t{1} << 32),
                                 int64_t{1} << 32,
                                 -65537,
                                 65537,
                                 -65536,
                                 65536};
  for (int64_t n = -300; n <= 300; n += 1) powers.push_back(n);
  ArithmeticJudge nearest(name(), kNearestEven);
  ArithmeticJudge all(name(), oracle::AllSettings());
  for (int64_t n : powers) {
    for (uint32_t code = 0; code < nearest.Count(0); ++code) nearest.CheckScaled(code, n);
    for (uint32_t code = 0; code < all.Count(0); code += 37) all.CheckScaled(code, n);
  }
}

// From every format of up to 8 bits to every such format, and from samples of wider ones.
TEST_P(ArithmeticInFormat, ConvertsFromEveryFormat) {
  for (const Format& from : oracle::AllFormats()) {
    ArithmeticJudge judge({from.name, "e4m3fn", "e4m3fn"}, name(), oracle::AllSettings());
    if (from.bits <= 8) {
      judge.CheckAll(Operation::kConvert);
      continue;
    }
    for (uint32_t code : EdgeCodes(from)) judge.Check(Operation::kConvert, {code});
    oracle::TestRandom random(1);
    for (int i = 0; i < 500; ++i) {
      judge.Check(Operation::kConvert, {RandomCode(random, from, random.Next32())});
    }
  }
}

TEST(ArithmeticInMixedFormats, IsRightForEveryPairOfE4m3fnAndE5m2) {
  ArithmeticJudge to_bf16({"e4m3fn", "e5m2", "fp32"}, "bf16", kNearestEven);
  ArithmeticJudge to_e4m3({"e5m2", "e4m3fn", "fp32"}, "e4m3fn", kNearestEven);
  for (Operation operation : kPairs) {
    to_bf16.CheckAll(operation);
    to_e4m3.CheckAll(operation);
  }
  to_bf16.CheckAll(Operation::kRemainder, 3);
  ArithmeticJudge all({"e4m3fn", "e5m2", "fp32"}, "bf16", oracle::AllSettings());
  for (Operation operation : kPairs) all.CheckAll(operation, kPairStride);
}

// An addend far above, near and far below the product.
TEST(ArithmeticInMixedFormats, IsRightForAFusedMultiplyAddWithAFloat32Addend) {
  const std::vector<uint32_t> addends = EdgeCodes(FindFormat("fp32"));
  for (const char* target : {"fp32", "bf16", "e4m3fn", "e8m0fnu"}) {
    ArithmeticJudge nearest({"e4m3fn", "e5m2", "fp32"}, target, kNearestEven);
    ArithmeticJudge all({"e4m3fn", "e5m2", "fp32"}, target, oracle::AllSettings());
    oracle::TestRandom random(2);
    for (uint32_t pair = 0; pair < 65536; pair += 5) {
      const uint32_t a = pair & 0xFF;
      const uint32_t b = pair >> 8;
      const uint32_t edge = addends[random.Below(addends.size())];
      // An exponent within 40 of 1, so that the addend meets the product's bits.
      const uint32_t close =
          (random.Next32() & 0x807FFFFF) + (static_cast<uint32_t>(87 + random.Below(80)) << 23);
      for (Operation operation : {Operation::kFusedMultiplyAdd, Operation::kFusedAddAdd}) {
        nearest.Check(operation, {a, b, edge});
        nearest.Check(operation, {a, b, close});
        if (pair % 35 == 0) all.Check(operation, {a, b, close});
      }
    }
  }
}

TEST(ArithmeticInMixedFormats, IsRightForFp16OperandsDeliveredInE5m2) {
  ArithmeticJudge judge({"fp16", "fp16", "fp16"}, "e5m2", oracle::AllSettings());
  const Format& fp16 = FindFormat("fp16");
  oracle::TestRandom random(3);
  for (int i = 0; i < 3000; ++i) {
    const uint32_t a = RandomCode(random, fp16, 0x3C00);
    const uint32_t b = RandomCode(random, fp16, a);
    for (Operation operation : oracle::kOperations) {
      judge.Check(operation, {a, b, RandomCode(random, fp16, b)});
    }
  }
}

TEST(ArithmeticInMixedFormats, IsRightFromEveryFormatToEveryFormatOfTheTable) {
  for (const Format& from : oracle::NamedFormats()) {
    for (const Format& to : oracle::NamedFormats()) {
      ArithmeticJudge judge({from.name, to.name, from.name}, to.name, kNearestEven);
      oracle::TestRandom random(4);
      for (int i = 0; i < 40; ++i) {
        const OperandCodes codes = {RandomCode(random, from, random.Next32()),
                                    RandomCode(random, to, random.Next32()),
                                    RandomCode(random, from, random.Next32())};
        for (Operation operation : oracle::kOperations) judge.Check(operation, codes);
      }
    }
  }
}

}  // namespace
}  // namespace numsim
