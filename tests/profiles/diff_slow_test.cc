// Diff against all 2^32 patterns, for one pair; diff_exhaustive_test.cc has more.
#include <gtest/gtest.h>

#include "tests/profiles/differences.h"

namespace numsim {
namespace {

void ExpectBothWaysAgree(const char* a, const char* b, const char* target) {
  const ProfileConversion first = FromFloat32(a, target), second = FromFloat32(b, target);
  const Difference quick = Diff(first, second);
  const Difference all = DiffByBruteForce(first, second);
  EXPECT_EQ(quick, all) << Describe(quick) << "\n" << Describe(all);
}

TEST(DiffByBruteForce, AgreesOnCudaAndHipToE4m3) {
  ExpectBothWaysAgree("cuda-13", "hip-host", "e4m3fn");
}

}  // namespace
}  // namespace numsim
