// No setting of the caller's floating-point unit changes a step.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "tests/updates/update_cases.h"

namespace update_cases {
namespace {

using numsim::UpdateKind;

#if defined(__SSE2__)
// A step like any other, one with weight decay, and one whose updates are subnormal.
Case Variant(const std::string& rule, int variant) {
  Case c = WithHistory(rule.c_str(), 3000);
  if (variant == 1) c.weight_decay = 0.1f;
  if (variant == 2) {
    for (float& u : c.arrays.update) u *= 0x1p-130f;
    c.arrays.weights.assign(c.arrays.update.size(), 0.0f);
    Restart(c);
    c.learning_rate = 1;
  }
  return c;
}

// Flush to zero, subnormals are zero, round up; the previous setting in the end.
class ForeignEnvironment {
 public:
  ForeignEnvironment() : before_(_mm_getcsr()) { _mm_setcsr((before_ & ~0x3Fu) | 0xC040u); }
  ~ForeignEnvironment() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};

TEST(UpdateEnvironment, ForeignSettingsChangeNothing) {
  for (const UpdateKind kind : numsim::UpdateKinds()) {
    for (int variant = 0; variant < 3; ++variant) {
      SCOPED_TRACE(std::string(numsim::ToString(kind)) + " " + std::to_string(variant));
      Case c = Variant(std::string(numsim::ToString(kind)), variant);
      const auto want = Apply(c);
      const auto step = StepOf(c);
      auto got = want;
      got.groups.clear();
      numsim::UpdateState state = update_cases::ToUpdateState(c.state, c.Shape());
      const numsim::MatrixSpan<float> moved = numsim::HostMatrix(got.weights, c.Shape());
      {
        const ForeignEnvironment environment;
        got.outcome = numsim::ApplyUpdate(c.rule, step, c.random, state, moved, &got.groups);
      }
      got.state = update_cases::FromUpdateState(state);
      ExpectSameBits(got.weights, want.weights);
      ExpectSameState(got.state, want.state);
      ExpectIdenticalOutcome(got.outcome, want.outcome);
    }
  }
}
#else
TEST(UpdateEnvironment, ForeignSettingsChangeNothing) {
  GTEST_SKIP() << "only x86 has the settings that this test makes";
}
#endif

}  // namespace
}  // namespace update_cases
