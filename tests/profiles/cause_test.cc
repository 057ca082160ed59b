// The causes of differences, against what the sources of the implementations say.
#include "numsim/profiles/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/profiles/differences.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

using Cause = DifferenceCause;

// The number of inputs of each cause.
std::map<Cause, uint64_t> InputsOf(const ProfileConversion& a,
                                   const ProfileConversion& b,
                                   DiffBy by = DiffBy::kCode) {
  std::map<Cause, uint64_t> inputs;
  for (const DifferingInterval& interval : Diff(a, b, 0, by).intervals) {
    inputs[CauseOf(interval, a, b)] += interval.Count();
  }
  return inputs;
}

std::map<Cause, uint64_t> InputsOf(const char* a, const char* b, const char* target) {
  return InputsOf(FromFloat32(a, target), FromFloat32(b, target));
}

using Inputs = std::map<Cause, uint64_t>;

// The numbers are worked out in diff_test.cc: HIP's shift brings back five binades except for one
// pattern, (448, 464] rounds to 448, and CUDA drops the sign of a NaN.
TEST(CauseOf, CudaAndHipHaveThreeCauses) {
  const uint64_t back = 2 * (5 * (uint64_t{1} << 23) - 1), early = uint64_t{1} << 20;
  EXPECT_EQ(InputsOf("cuda-13", "hip-host", "e4m3fn"),
            (Inputs{{Cause::kShiftWrapsB, back},
                    {Cause::kEarlyOverflowB, early},
                    {Cause::kNanCode, kNansOfOneSign}}));
  EXPECT_EQ(InputsOf("hip-host", "cuda-13", "e4m3fn"),
            (Inputs{{Cause::kShiftWrapsA, back},
                    {Cause::kEarlyOverflowA, early},
                    {Cause::kNanCode, kNansOfOneSign}}));
}

TEST(CauseOf, SaturationIsOverflow) {
  const uint64_t beyond_464 = 2 * (uint64_t{0x7F7F'FFFF} - 0x43E8'0000);
  EXPECT_EQ(InputsOf("torch-2.11", "torch-2.12", "e4m3fn"),
            (Inputs{{Cause::kOtherOverflow, beyond_464}}));
  EXPECT_EQ(InputsOf("onnx-cast-23", "onnx-cast-24", "e4m3fnuz"), (Inputs{{Cause::kInfinity, 2}}));
}

TEST(CauseOf, NansWithoutACodeAreLost) {
  EXPECT_EQ(InputsOf("cuda-13", "ml-dtypes", "e2m1fn"),
            (Inputs{{Cause::kNanLost, 2 * kNansOfOneSign}}));
}

// 63 ties of each sign go away from zero instead of to the even code.
TEST(CauseOf, TiesAreInputsHalfway) {
  EXPECT_EQ(InputsOf("rule:rne,saturate", "rule:rna,saturate", "e4m3fn"),
            (Inputs{{Cause::kTie, 2 * 63}}));
}

TEST(CauseOf, OtherDirectionsAreRounding) {
  const Inputs inputs = InputsOf("rule:rne,saturate", "rule:rtz,saturate", "e3m2fn");
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs.begin()->first, Cause::kRounding);
}

TEST(CauseOf, QPyTorchHasItsOwn) {
  const Inputs inputs = InputsOf("cuda-13", "qpytorch", "e4m3fn");
  std::set<Cause> causes;
  for (const auto& [cause, count] : inputs) causes.insert(cause);
  EXPECT_TRUE(causes.contains(Cause::kLargestValue));  // 480 against 448
  EXPECT_TRUE(causes.contains(Cause::kNanLost));       // a NaN becomes 480
  EXPECT_TRUE(causes.contains(Cause::kSignOfZero));    // no negative zero below the normals
  EXPECT_TRUE(causes.contains(Cause::kTie));           // ties go away from zero
  EXPECT_TRUE(causes.contains(Cause::kNearTie));       // subnormal results are rounded twice
  EXPECT_FALSE(causes.contains(Cause::kSpacing));      // the small values are the same
  EXPECT_FALSE(causes.contains(Cause::kRounding));
}

// Zero and the negative numbers, which e8m0fnu does not have.
TEST(CauseOf, NegativeNumbersOfAnUnsignedFormat) {
  EXPECT_EQ(InputsOf("ml-dtypes", "torch-2.11", "e8m0fnu"),
            (Inputs{{Cause::kZero, 1}, {Cause::kNegative, 0x7F40'0000}}));
}

TEST(CauseOf, FormatsOfOtherRangesDifferAtBothEnds) {
  const Inputs inputs = InputsOf(FromFloat32("rule:rne,saturate", "e4m3fn"),
                                 FromFloat32("rule:rne,saturate", "e4m3fnuz"),
                                 DiffBy::kValue);
  std::set<Cause> causes;
  for (const auto& [cause, count] : inputs) causes.insert(cause);
  EXPECT_EQ(causes, (std::set<Cause>{Cause::kLargestValue, Cause::kSpacing}));
}

TEST(Explanation, NamesTheSideAtFault) {
  EXPECT_THAT(Explanation(Cause::kShiftWrapsB, "one", "other"), HasSubstr("shift of other"));
  EXPECT_THAT(Explanation(Cause::kShiftWrapsA, "one", "other"), HasSubstr("shift of one"));
  EXPECT_THAT(Explanation(Cause::kEarlyOverflowB, "one", "other"), HasSubstr("other tests"));
  EXPECT_THAT(Explanation(Cause::kEarlyOverflowA, "one", "other"), HasSubstr("one tests"));
}

TEST(Explanation, EveryCauseHasTextsOfItsOwn) {
  std::set<std::string> names, texts;
  for (int i = 0; i <= static_cast<int>(Cause::kNanResult); ++i) {
    const auto cause = static_cast<Cause>(i);
    EXPECT_TRUE(names.insert(std::string(ToString(cause))).second);
    EXPECT_TRUE(texts.insert(Explanation(cause, "one", "other")).second);
    EXPECT_EQ(ToString(cause).find(','), std::string_view::npos);  // a cell of a CSV file
  }
}

}  // namespace
}  // namespace numsim
