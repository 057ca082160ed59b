// Elementary functions against MPFR: all operands of all formats of up to 16 bits, in every
// deterministic mode, and the exact probabilities of stochastic rounding.
#include <gtest/gtest.h>

#include <vector>

#include "numsim/arith/internal/ball_circle.h"
#include "tests/arith/elementary_judge.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

constexpr const char* kNoMpfr = "MPFR was not found when this was built (libmpfr-dev)";

std::vector<oracle::Format> FormatsOfUpTo16Bits() {
  std::vector<oracle::Format> formats;
  for (const oracle::Format& format : oracle::AllFormats()) {
    if (format.bits <= 16) formats.push_back(format);
  }
  return formats;
}

std::vector<oracle::Setting> ModesWithoutSaturation() {
  std::vector<oracle::Setting> settings;
  for (const oracle::Setting& setting : oracle::DeterministicSettings()) {
    if (setting.policy == oracle::Policy::kNonsaturate) settings.push_back(setting);
  }
  return settings;
}

// The first functions are compared at every code of every format; of the others, every 13th code of a
// format of 16 bits, because all of them take minutes (elementary_exhaustive_test.cc has them).
uint32_t StrideOf(ElementaryFunction function, const oracle::Format& format, uint32_t small) {
  if (function <= ElementaryFunction::kGeluTanh) return 1;
  return format.bits <= 8 ? small : 13;
}

class ElementaryMpfr : public testing::TestWithParam<oracle::Format> {
 protected:
  void SetUp() override {
    if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  }
};

INSTANTIATE_TEST_SUITE_P(,
                         ElementaryMpfr,
                         testing::ValuesIn(FormatsOfUpTo16Bits()),
                         oracle::ParamName);

TEST_P(ElementaryMpfr, EqualsMpfrOnEveryCode) {
  const oracle::Format& format = GetParam();
  const bool small = format.bits <= 8;
  ElementaryJudge judge(format.name,
                        {format.name},
                        small ? oracle::DeterministicSettings() : ModesWithoutSaturation());
  for (ElementaryFunction function : kElementaryFunctions) {
    judge.CheckAll(function, SampleEvery(small ? 5 : 1201) * StrideOf(function, format, 1));
  }
}

TEST_P(ElementaryMpfr, EqualsMpfrInOtherTargets) {
  const oracle::Format& format = GetParam();
  const bool small = format.bits <= 8;
  ElementaryJudge judge(format.name,
                        {"fp16", "bf16", "e4m3fn", "e5m2", "e8m0fnu", "int8", "bnb-e4m3", "fp32"},
                        ModesWithoutSaturation());
  for (ElementaryFunction function : kElementaryFunctions) {
    const uint32_t stride = SampleEvery(15) * StrideOf(function, format, 5);
    judge.CheckAll(function, small ? stride : SampleEvery(15) * 61);
  }
}

TEST_P(ElementaryMpfr, RoundsAwayForTheExactNumberOfWords) {
  std::vector<oracle::Setting> settings;
  for (oracle::Variant variant : {oracle::Variant::kA, oracle::Variant::kB, oracle::Variant::kC}) {
    for (int bits : {1, 8, 32}) {
      settings.push_back({oracle::Mode::kStochastic, oracle::Policy::kNonsaturate, variant, bits});
    }
  }
  const oracle::Format& format = GetParam();
  ElementaryJudge judge(format.name, {format.name, "e4m3fn"}, settings);
  for (ElementaryFunction function : kElementaryFunctions) {
    const uint32_t part = format.bits <= 8 ? 3 * StrideOf(function, format, 7) : 509;
    const uint32_t stride = part * SampleEvery(11);
    for (uint64_t code = 0; code < judge.Codes(); code += stride) {
      judge.CheckWords(function, static_cast<uint32_t>(code));
    }
  }
}

// More bits than the proof by exhaustion covers.
TEST(ElementaryMpfrOfWideFormats, EqualsMpfrOnRandomCodes) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  for (const char* name : {"fp32", "tf32"}) {
    ElementaryJudge judge(name, {name, "fp16"}, ModesWithoutSaturation());
    oracle::TestRandom random(5);
    const uint32_t one = name[0] == 'f' ? 0x3F800000 : 0x1FC00;
    for (unsigned i = 0; i < 3000 / SampleEvery(15); ++i) {
      const auto any = static_cast<uint32_t>(random.Next32() % judge.Codes());
      // Every second operand is between 2^-8 and 2^8 in magnitude.
      const uint32_t near_one = one - one / 16 + random.Next32() % (one / 8);
      const auto sign = static_cast<uint32_t>(judge.Codes() / 2 * (random.Next32() % 2));
      for (ElementaryFunction function : kElementaryFunctions) {
        judge.Check(function, i % 2 == 0 ? any : near_one | sign);
      }
    }
  }
}

TEST(ElementaryConstants, AreRightToTheLastOf512Bits) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  uint64_t words[8];
  oracle::LeadingWords(oracle::Constant::kLn2, words);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ball::kLn2Limbs[i], words[i]) << i;
  oracle::LeadingWords(oracle::Constant::kInverseRootTwoPi, words);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ball::kInverseRootTwoPiLimbs[i], words[i]) << i;
  oracle::LeadingWords(oracle::Constant::kPi, words);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ball::kQuarterPiLimbs[i], words[i]) << i;
  oracle::LeadingWords(oracle::Constant::kTwoOverPi, words);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ball::kTwoOverPiLimbs[i], words[i]) << i;
}

}  // namespace
}  // namespace numsim
