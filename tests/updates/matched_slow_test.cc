// Many more problems than the other tests of matched steps have, and larger ones.
#include <gtest/gtest.h>

#include <string>

#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/updates/matched_check.h"
#include "tests/updates/matched_large.h"

namespace numsim {
namespace {

class MatchedStepOfFormatAtLength : public testing::TestWithParam<oracle::Format> {};

TEST_P(MatchedStepOfFormatAtLength, EqualsItsDefinition) {
  const oracle::Grid grid(GetParam());
  oracle::TestRandom random(GetParam().name.size() + 1);
  for (uint64_t seed = 10000; seed < 10280; ++seed) {
    const auto weights = static_cast<WeightKind>(random.Below(kWeightKinds));
    const auto update = static_cast<UpdateShape>(random.Below(kUpdateShapes));
    const size_t n = 1 + random.Below(seed % 20 == 0 ? 200 : 40);
    CheckByOracle(DrawCase(GetParam().name, weights, update, n, seed), grid);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats,
                         MatchedStepOfFormatAtLength,
                         testing::ValuesIn(SymmetricFormats()),
                         oracle::ParamName);

TEST(MatchedSlow, LargeArraysOfEveryKind) {
  uint64_t seed = 3000;
  for (LargeKind kind : kLargeKinds) {
    SCOPED_TRACE(ToString(kind));
    for (const char* format : {"e4m3fn", "bf16"}) {
      ++seed;
      MatchedCase c = DrawLarge(format, kind, (size_t{1} << 20) - seed % 9, seed);
      c.learning_rate = seed % 3 == 0 ? 1e-4f : 0.03f;
      c.quantity = seed / 2 % 2 == 0 ? MatchedQuantity::kNorm : MatchedQuantity::kProjection;
      CheckByLibrary(c);
    }
  }
}

// Every second decade for each format, the others for the format after it.
TEST(MatchedSlow, EveryDecadeOfLearningRates) {
  uint64_t seed = 4000;
  float first = 1e-12f;
  for (const char* format : {"e4m3fn", "fp16", "bf16", "fp32", "int8", "e2m1fn"}) {
    for (float lr = first; lr < 20; lr *= 100) {
      ++seed;
      MatchedCase c = DrawLarge(format, kLargeKinds[seed % kLargeKinds.size()], 150001, seed);
      c.learning_rate = lr;
      for (MatchedQuantity quantity : {MatchedQuantity::kNorm, MatchedQuantity::kProjection}) {
        c.quantity = quantity;
        CheckByLibrary(c);
      }
    }
    first = first == 1e-12f ? 1e-11f : 1e-12f;
  }
}

}  // namespace
}  // namespace numsim
