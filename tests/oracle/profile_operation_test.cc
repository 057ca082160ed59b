// convert by a profile: the cases of another implementation's conversion.
#include <gtest/gtest.h>

#include <bit>

#include "numsim/oracle/kappa.h"
#include "numsim/profiles/profile.h"
#include "tests/oracle/case_lists.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

uint64_t ResultOf(const OperationRequest& request, const Numbers& inputs) {
  const auto operation = MakeOperation(request);
  Numbers results(1);
  operation->Evaluate(inputs, results);
  return results[0];
}

uint64_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(ProfileOperation, ConvertsAsTheProfile) {
  const auto convert = [](const char* profile, float x) {
    return ResultOf({.op = "convert", .to = "e4m3fn", .profile = profile}, {Bits(x)});
  };
  // HIP's host code tests for overflow before it rounds, CUDA afterwards.
  EXPECT_EQ(convert("cuda-13", 456), 0x7Eu);
  EXPECT_EQ(convert("hip-host", 456), 0x7Fu);
  EXPECT_EQ(convert("cuda-13-satfinite", 1000), 0x7Eu);
  // 2^-71 2^64 = 2^-7.
  EXPECT_EQ(convert("cuda-13", 0x1p-71f), 0x00u);
  EXPECT_EQ(convert("hip-host", 0x1p-71f), 0x04u);
}

TEST(ProfileOperation, HasNoFlagsAndOneColumnOfRandomBitsIfStochastic) {
  const auto plain = MakeOperation({.op = "convert", .to = "e5m2", .profile = "cuda-13"});
  EXPECT_FALSE(plain->has_flags());
  EXPECT_EQ(plain->inputs().size(), 1u);
  EXPECT_EQ(plain->info().name, "convert");
  const OperationRequest stochastic{.op = "convert", .to = "e4m3fn", .profile = "ptx-rs"};
  const auto operation = MakeOperation(stochastic);
  ASSERT_EQ(operation->inputs().size(), 2u);
  EXPECT_EQ(operation->inputs()[1].bits, 16);
  EXPECT_EQ(operation->inputs()[1].kind, ColumnKind::kRandom);
  EXPECT_EQ(operation->operands(), 1u);
  // 1.0625 lies halfway between 1 and 1.125.
  const uint64_t none = ResultOf(stochastic, {Bits(1.0625f), 0});
  const uint64_t all = ResultOf(stochastic, {Bits(1.0625f), 0xFFFF});
  EXPECT_EQ(std::set<uint64_t>({none, all}), (std::set<uint64_t>{0x38, 0x39}));
}

// A code that the implementation reads in its own way is shown and classified in that way.
TEST(ProfileOperation, ResultHasTheMeaningOfTheImplementation) {
  const auto operation = MakeOperation({.op = "convert", .to = "e4m3fn", .profile = "qpytorch"});
  EXPECT_EQ(operation->results()[0].format->spec, ParseFormat("qpytorch-e4m3").spec);
}

// Level edges has numbers that overflow early in HIP, and the ends of the range that comes back.
TEST(ProfileOperation, EdgesFindWhatIsUnusual) {
  const auto right = MakeOperation({.op = "convert", .to = "e4m3fn", .profile = "cuda-13"});
  const auto wrong = MakeOperation({.op = "convert", .to = "e4m3fn", .profile = "hip-host"});
  const CaseGenerator cases(*wrong, ParseCaseLevel("edges"));
  std::set<uint64_t> all;
  size_t overflow = 0, wrapped = 0;
  for (uint64_t i = 0; i < cases.size(); ++i) {
    const Numbers inputs = CaseOf(cases, i, 1);
    all.insert(inputs[0]);
    Numbers a(1), b(1);
    right->Evaluate(inputs, a);
    wrong->Evaluate(inputs, b);
    const float x = std::fabs(std::bit_cast<float>(static_cast<uint32_t>(inputs[0])));
    if (a != b && x > 448) ++overflow;
    if (a != b && x < 1e-20f) ++wrapped;
  }
  EXPECT_GT(overflow, 0u);
  EXPECT_GT(wrapped, 0u);
  for (const uint64_t end : {0x1A800001, 0x1CFFFFFF}) {  // just above 2^-74, just below 2^-69
    EXPECT_TRUE(all.contains(end)) << end;
    EXPECT_TRUE(all.contains(end | 0x80000000)) << end;
  }
}

TEST(ProfileOperation, ConvertsFloat64ByProfilesThatDoSo) {
  const auto cuda = MakeOperation({.op = "from-f64", .format = "e4m3fn", .profile = "cuda-13"});
  EXPECT_FALSE(cuda->has_flags());
  EXPECT_EQ(cuda->inputs()[0].kind, ColumnKind::kFloat64);
  const auto code = [](const Operation& operation, uint64_t bits) {
    uint64_t result = 0;
    operation.Evaluate({&bits, 1}, {&result, 1});
    return result;
  };
  EXPECT_EQ(code(*cuda, 0xFFF8000000000000), 0xFFu);  // from float32 the NaN loses its sign
  EXPECT_EQ(code(*cuda, 0x3FF1000000000001), 0x39u);  // just above the tie 1.0625
  // ml_dtypes rounds to float32 first, so this is the tie itself.
  const auto twice = MakeOperation({.op = "from-f64", .format = "e4m3fn", .profile = "ml-dtypes"});
  EXPECT_EQ(code(*twice, 0x3FF1000000000001), 0x38u);
  ExpectMessage(ErrorOf([&] {
                  MakeOperation({.op = "from-f64", .format = "e4m3fn", .profile = "torch-2.15"});
                }),
                {"float64"});
}

TEST(ProfileOperation, RefusesWhatAProfileDoesNotDefine) {
  const auto error = [](const OperationRequest& request) {
    return ErrorOf([&] { MakeOperation(request); });
  };
  ExpectMessage(error({.op = "add", .format = "e4m3fn", .profile = "cuda-13"}),
                {"--op add does not use --profile"});
  ExpectMessage(error({.op = "convert", .format = "fp16", .to = "e4m3fn", .profile = "cuda-13"}),
                {"--profile converts from fp32, not from --format fp16"});
  ExpectMessage(
      error({.op = "convert", .to = "e4m3fn", .rounding = Rounding{}, .profile = "ptx-rs"}),
      {"--profile excludes --rounding"});
  ExpectMessage(
      error(
          {.op = "convert", .to = "e4m3fn", .overflow = Overflow::kSaturate, .profile = "ptx-rs"}),
      {"--profile excludes --overflow"});
  ExpectMessage(error({.op = "convert",
                       .to = "e4m3fn",
                       .tininess = Tininess::kBeforeRounding,
                       .profile = "ptx-rs"}),
                {"--profile excludes --tininess"});
  ExpectMessage(error({.op = "convert", .to = "e8m0fnu", .profile = "hip-host"}),
                {"hip-host", "e8m0fnu", "it defines"});
  ExpectMessage(error({.op = "convert", .to = "e4m3fn", .profile = "nope"}), {"'nope'"});
}

}  // namespace
}  // namespace numsim
