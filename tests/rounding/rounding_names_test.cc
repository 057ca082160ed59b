#include <gtest/gtest.h>

#include <string>

#include "numsim/base/error.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

// The message of the Error that `call` throws; a failure when it throws none.
template <typename Call>
std::string MessageOf(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

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
    const std::string message = MessageOf([&] { ParseRoundingMode(text); });
    EXPECT_TRUE(Contains(message, text)) << message;
    for (const RoundingModeRow& row : kRoundingModes) {
      EXPECT_TRUE(Contains(message, std::string(row.name))) << message;
    }
  }
  const std::string variant = MessageOf([] { ParseStochasticVariant("z9"); });
  EXPECT_TRUE(Contains(variant, "z9") && Contains(variant, "a")) << variant;
  const std::string policy = MessageOf([] { ParseOverflow("clamp"); });
  EXPECT_TRUE(Contains(policy, "clamp") && Contains(policy, "saturate")) << policy;
  EXPECT_TRUE(Contains(policy, "propagate")) << policy;
}

TEST(RoundingNames, ErrorIsOneLine) {
  const std::string message = MessageOf([] { ParseOverflow("two\nlines"); });
  EXPECT_FALSE(Contains(message, "\n")) << message;
}

TEST(Rounding, DefaultIsNearestEvenWithThirtyTwoRandomBitsOfVariantA) {
  const Rounding rounding;
  EXPECT_EQ(rounding.mode, RoundingMode::kNearestEven);
  EXPECT_EQ(rounding.variant, StochasticVariant::kA);
  EXPECT_EQ(rounding.random_bits, 32);
}

}  // namespace
}  // namespace numsim
