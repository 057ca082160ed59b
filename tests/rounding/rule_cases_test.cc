// The rule's cheaper cases, which only kernels take, against the oracle: the scalar functions take
// the general case for every format. Also the decoding rule that kernels use.
#include <gtest/gtest.h>

#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/decode_range.h"
#include "numsim/rounding/shared/lanes_scalar.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/reference/oracle.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

using oracle::Format;
using oracle::Grid;
using oracle::Real;
using scalar::F32Lanes;

template <RuleMode kMode>
uint32_t EncodeInRange(const EncodePlan& plan, uint32_t bits, uint32_t random) {
  constexpr F32Lanes lanes;
  switch (plan.range_f32) {
    case ExponentRange::kSame:
      return scalar::EncodeWord<kMode, ExponentRange::kSame>(lanes, plan, bits, random);
    case ExponentRange::kNarrower:
      return scalar::EncodeWord<kMode, ExponentRange::kNarrower>(lanes, plan, bits, random);
    case ExponentRange::kGeneral:
      break;
  }
  return scalar::EncodeWord<kMode, ExponentRange::kGeneral>(lanes, plan, bits, random);
}

// As a kernel does: the case that the plan names.
uint32_t EncodeAsPlanned(const EncodePlan& plan, uint32_t bits, uint32_t random) {
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return EncodeInRange<RuleMode::kNearestEven>(plan, bits, 0);
    case RuleMode::kStochastic:
      return EncodeInRange<RuleMode::kStochastic>(
          plan, bits, random << (32 - plan.rounding.random_bits));
    case RuleMode::kOther:
      break;
  }
  return EncodeInRange<RuleMode::kOther>(plan, bits, 0);
}

// The rule needs mantissa bits to cut and a format without a subnormal gap.
std::vector<Format> EncodedByTheRule() {
  std::vector<Format> formats;
  for (const Format& f : oracle::AllFormats()) {
    if (f.mantissa_bits < F32Lanes::kMantissaBits && f.finer == 0) formats.push_back(f);
  }
  return formats;
}

class EncodeRule : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, EncodeRule, testing::ValuesIn(EncodedByTheRule()), oracle::ParamName);

std::vector<uint32_t> Inputs(const Grid& grid) {
  std::vector<uint32_t> inputs = oracle::SpecialF32();
  for (double x : oracle::Landmarks(grid, 1 + grid.end() / 512)) {
    for (uint32_t bits : oracle::NearF32(x)) inputs.push_back(bits);
  }
  oracle::TestRandom random(41);
  for (int i = 0; i < 2000; ++i) inputs.push_back(random.Next32());
  return inputs;
}

TEST_P(EncodeRule, CaseThatThePlanNamesIsRight) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  const std::vector<uint32_t> inputs = Inputs(grid);
  for (const oracle::Setting& s : oracle::AllSettings()) {
    const EncodePlan plan = MakeEncodePlan(spec, RoundingOf(s), ToLibrary(s.policy));
    for (uint32_t magnitude : inputs) {
      const uint32_t word = oracle::TestRandom(magnitude).Next32();
      for (uint32_t bits : {magnitude, magnitude ^ 0x80000000u}) {
        ASSERT_EQ(EncodeAsPlanned(plan, bits, word),
                  oracle::Encode(grid, oracle::FromFloat32(bits), s, word))
            << f.name << " " << oracle::Describe(s) << " float32 0x" << std::hex << bits
            << " word 0x" << word << " case " << static_cast<int>(plan.range_f32);
      }
    }
  }
}

// Numbers so far below the smallest value that the rule caps its shift.
TEST_P(EncodeRule, CaseThatThePlanNamesIsRightForExtremeRandomWords) {
  const Format& f = GetParam();
  const Grid grid(f);
  const FormatSpec spec = ParseFormat(f.name).spec;
  for (const oracle::Setting& s : oracle::StochasticSettings()) {
    const EncodePlan plan = MakeEncodePlan(spec, RoundingOf(s), ToLibrary(s.policy));
    for (uint32_t bits : oracle::SpecialF32()) {
      for (uint32_t word : {0xFFFFFFFFu, 0xFFFFFFFEu, 0xFFFFFFF0u, 0u, 1u}) {
        ASSERT_EQ(EncodeAsPlanned(plan, bits, word),
                  oracle::Encode(grid, oracle::FromFloat32(bits), s, word))
            << f.name << " " << oracle::Describe(s) << " float32 0x" << std::hex << bits
            << " word 0x" << word;
      }
    }
  }
}

std::vector<Format> DecodedInLanes() {
  std::vector<Format> formats;
  for (const Format& f : oracle::AllFormats()) {
    if (DecodesInLanes(ParseFormat(f.name).spec)) formats.push_back(f);
  }
  return formats;
}

class DecodeRule : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, DecodeRule, testing::ValuesIn(DecodedInLanes()), oracle::ParamName);

TEST_P(DecodeRule, IsRightForEveryCode) {
  const Format& f = GetParam();
  const FormatSpec spec = ParseFormat(f.name).spec;
  const Grid grid(f);
  constexpr F32Lanes lanes;
  for (uint32_t code = 0; code < uint32_t{1} << f.bits; ++code) {
    const Real expected = oracle::DecodeCode(grid, code);
    if (expected.kind == Real::Kind::kUnused) continue;
    const Real got = oracle::FromFloat32(scalar::DecodeWord(lanes, spec, code));
    ASSERT_EQ(got.kind, expected.kind) << "code " << code;
    ASSERT_EQ(got.negative, expected.negative) << "code " << code;
    ASSERT_EQ(got.magnitude, expected.magnitude) << "code " << code;
  }
}

}  // namespace
}  // namespace numsim
