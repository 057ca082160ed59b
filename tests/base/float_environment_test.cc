// Within a scope arithmetic is that of the default environment; after it everything is as before.
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "numsim/base/shared/float_environment.h"

namespace numsim {
namespace {

// Volatile, so that the sums are computed here and now.
volatile float g_one = 1, g_tiny = 0x1p-30f, g_smallest = std::numeric_limits<float>::min();
volatile double g_one64 = 1, g_tiny64 = 0x1p-60;

[[gnu::noinline]] bool RoundsUp() { return g_one + g_tiny > 1 || g_one64 + g_tiny64 > 1; }
[[gnu::noinline]] bool FlushesToZero() { return g_smallest / 2 == 0; }

class FloatEnvironment : public testing::Test {
 protected:
  FloatEnvironment() { std::fegetenv(&before_); }
  ~FloatEnvironment() override { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

TEST_F(FloatEnvironment, RoundsToNearestWithinTheScopeOnly) {
  std::fesetround(FE_UPWARD);
  ASSERT_TRUE(RoundsUp());
  {
    const DefaultFloatEnvironment environment;
    EXPECT_FALSE(RoundsUp());
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
  EXPECT_TRUE(RoundsUp());
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(FloatEnvironment, KeepsTheExceptionFlags) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  {
    const DefaultFloatEnvironment environment;
    ASSERT_FALSE(RoundsUp());  // raises FE_INEXACT
  }
  EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO | FE_INEXACT), FE_DIVBYZERO);
}

TEST_F(FloatEnvironment, ComputesWithSubnormals) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, of results and of operands
  ASSERT_TRUE(FlushesToZero());
  {
    const DefaultFloatEnvironment environment;
    EXPECT_FALSE(FlushesToZero());
  }
  EXPECT_TRUE(FlushesToZero());
#else
  GTEST_SKIP() << "no standard function flushes subnormals to zero";
#endif
}

}  // namespace
}  // namespace numsim
