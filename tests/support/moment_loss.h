// Comparison of what storing moments lost.
#pragma once

#include <gtest/gtest.h>

#include "numsim/moments/moment_loss.h"

namespace numsim {

inline void ExpectSameLoss(const MomentLoss& actual, const MomentLoss& expected) {
  EXPECT_EQ(actual.nonzero, expected.nonzero);
  EXPECT_EQ(actual.flushed, expected.flushed);
  EXPECT_EQ(actual.saturated, expected.saturated);
  EXPECT_EQ(actual.signal_square, expected.signal_square);
  EXPECT_EQ(actual.error_square, expected.error_square);
}

}  // namespace numsim
