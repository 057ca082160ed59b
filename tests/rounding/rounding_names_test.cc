#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "numsim/base/error.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RoundingNames, AreThoseOfTheCommandLine) {
  EXPECT_EQ(ToString(RoundingMode::kNearestEven), "rne");
  EXPECT_EQ(ToString(RoundingMode::kNearestAway), "rna");
  EXPECT_EQ(ToString(RoundingMode::kTowardZero), "rtz");
  EXPECT_EQ(ToString(RoundingMode::kUp), "rtp");
  EXPECT_EQ(ToString(RoundingMode::kDown), "rtn");
  EXPECT_EQ(ToString(RoundingMode::kToOdd), "odd");
  EXPECT_EQ(ToString(RoundingMode::kStochastic), "sr");
  EXPECT_EQ(ToString(StochasticVariant::kA), "a");
  EXPECT_EQ(ToString(StochasticVariant::kB), "b");
  EXPECT_EQ(ToString(StochasticVariant::kC), "c");
  EXPECT_EQ(ToString(Overflow::kNonsaturate), "nonsaturate");
  EXPECT_EQ(ToString(Overflow::kSaturate), "saturate");
  EXPECT_EQ(ToString(Overflow::kPropagate), "propagate");
}

TEST(RoundingNames, ParseReturnsWhatNameWrote) {
  for (const RoundingModeRow& row : kRoundingModes) {
    EXPECT_EQ(ToString(row.mode), row.name);
    EXPECT_EQ(ParseRoundingMode(row.name), row.mode);
  }
  for (StochasticVariant variant :
       {StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC}) {
    EXPECT_EQ(ParseStochasticVariant(ToString(variant)), variant);
  }
  for (Overflow policy : {Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate}) {
    EXPECT_EQ(ParseOverflow(ToString(policy)), policy);
  }
}

TEST(RoundingNames, ErrorNamesTheValueAndListsTheValidOnes) {
  for (const char* text : {"nearest", "", "rn", "rnee", "rne ", "sr,"}) {
    const std::string message = ErrorOf([&] { ParseRoundingMode(text); });
    EXPECT_THAT(message, HasSubstr(text));
    for (const RoundingModeRow& row : kRoundingModes) {
      EXPECT_THAT(message, HasSubstr(std::string(row.name)));
    }
  }
  const std::string variant = ErrorOf([] { ParseStochasticVariant("z9"); });
  EXPECT_THAT(variant, AllOf(HasSubstr("z9"), HasSubstr("a")));
  const std::string policy = ErrorOf([] { ParseOverflow("clamp"); });
  EXPECT_THAT(policy, AllOf(HasSubstr("clamp"), HasSubstr("saturate")));
  EXPECT_THAT(policy, HasSubstr("propagate"));
}

TEST(RoundingNames, ErrorIsOneLine) {
  const std::string message = ErrorOf([] { ParseOverflow("two\nlines"); });
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(Rounding, DefaultIsNearestEvenWithThirtyTwoRandomBitsOfVariantA) {
  const Rounding rounding;
  EXPECT_EQ(rounding.mode, RoundingMode::kNearestEven);
  EXPECT_EQ(rounding.variant, StochasticVariant::kA);
  EXPECT_EQ(rounding.random_bits, 32);
}

}  // namespace
}  // namespace numsim
