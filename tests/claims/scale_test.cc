// The words and sizes that stand beside a verdict.
#include "experiments/claims/scale.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace numsim::experiments {
namespace {

TEST(ScaleWord, OfATrainingIsToyBelowATenthOfThePapersParametersOrTokens) {
  const auto word = [](double parameters, double tokens) {
    return ScaleWord({parameters, tokens, 1e9, 1e12});
  };
  EXPECT_EQ(word(1e8, 1e11), "paper scale");
  EXPECT_EQ(word(0.99e8, 1e11), "toy");  // too small
  EXPECT_EQ(word(1e8, 0.99e11), "toy");  // too short
  EXPECT_EQ(word(1e10, 1e6), "toy");
  EXPECT_EQ(word(1e4, 1e13), "toy");
  EXPECT_EQ(word(2e9, 2e12), "paper scale");
}

TEST(ScaleWord, WithoutATrainingIsMechanism) {
  EXPECT_EQ(ScaleWord({}), "mechanism");
  EXPECT_EQ(ScaleWord({0, 0, 1e9, 1e12}), "mechanism");
  EXPECT_EQ(SizeText({}), "mechanism");
}

TEST(ScaleWord, WithoutAPaperIsEmpty) {
  EXPECT_EQ(ScaleWord({1e6, 1e6, 0, 0}), "");
  EXPECT_EQ(SizeText({1e6, 2e6, 0, 0}), "1 M / 2 M tokens");
}

TEST(SizeText, HasTheWordAndTheSize) {
  EXPECT_EQ(SizeText({139584, 1638400, 6.7e9, 2e12}), "toy, 0.14 M / 1.6 M tokens");
  EXPECT_EQ(SizeText({6.74e9, 2e12, 6.7e9, 2e12}), "paper scale, 6.7 B / 2 T tokens");
}

TEST(CountText, HasTwoDigitsAndALetter) {
  for (const auto& [count, text] : {std::pair{0.0, "0"},
                                    {999.0, "999"},
                                    {1000.0, "1 k"},
                                    {7680.0, "7.7 k"},
                                    {64900.0, "65 k"},
                                    {99400.0, "99 k"},
                                    {99600.0, "0.1 M"},
                                    {139584.0, "0.14 M"},
                                    {995000.0, "1 M"},
                                    {4.35e6, "4.4 M"},
                                    {85.3e6, "85 M"},
                                    {428e6, "430 M"},
                                    {996e6, "1 B"},
                                    {6.74e9, "6.7 B"},
                                    {84e9, "84 B"},
                                    {2e12, "2 T"}}) {
    EXPECT_EQ(CountText(count), text) << count;
  }
}

}  // namespace
}  // namespace numsim::experiments
