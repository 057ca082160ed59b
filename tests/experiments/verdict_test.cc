// The rule that leads from intervals to verdicts.
#include "experiments/core/verdict.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/special_values.h"

namespace numsim::experiments {
namespace {

const Estimate kNothing{kNaN, kNaN, kNaN};
const Estimate kOneSeed{2, kNaN, kNaN};
const Estimate kDivergedSeed{kInfinity, kInfinity, kInfinity};

TEST(IsAbove, NeedsTheWholeIntervalOnOneSide) {
  EXPECT_EQ(IsAbove({2, 1, 3}, 0.5), Answer::kYes);
  EXPECT_EQ(IsAbove({2, 1, 3}, 3.5), Answer::kNo);
  EXPECT_EQ(IsAbove({2, 1, 3}, 2), Answer::kUndecided);
  EXPECT_EQ(IsAbove({0, 0, 0}, 0), Answer::kNo);  // not above, and certain
  EXPECT_EQ(IsAbove(kDivergedSeed, 5), Answer::kYes);
}

TEST(IsBelow, IsTheMirrorImage) {
  EXPECT_EQ(IsBelow({2, 1, 3}, 3.5), Answer::kYes);
  EXPECT_EQ(IsBelow({2, 1, 3}, 0.5), Answer::kNo);
  EXPECT_EQ(IsBelow({2, 1, 3}, 2), Answer::kUndecided);
}

TEST(IsAtMost, NeedsAnIntervalThatExcludesTheContradictingValue) {
  EXPECT_EQ(IsAtMost({0.5, 0.2, 3}, 1, 5), Answer::kYes);
  EXPECT_EQ(IsAtMost({0.5, -9, 6}, 1, 5), Answer::kUndecided);
  EXPECT_EQ(IsAtMost({2, 0.5, 3}, 1, 5), Answer::kUndecided);
  EXPECT_EQ(IsAtMost({2, 1.5, 3}, 1, 5), Answer::kNo);
}

TEST(IsAtLeast, IsTheMirrorImage) {
  EXPECT_EQ(IsAtLeast({6, 2, 9}, 5, 1), Answer::kYes);
  EXPECT_EQ(IsAtLeast({6, 0.5, 9}, 5, 1), Answer::kUndecided);
  EXPECT_EQ(IsAtLeast({3, 2, 4}, 5, 1), Answer::kNo);
  EXPECT_EQ(IsAtLeast({3, 2, 6}, 5, 1), Answer::kUndecided);
}

// An interval that contains everything confirms nothing.
TEST(IsEqual, NeedsTheClaimedValueAndNoContradictingOne) {
  EXPECT_EQ(IsEqual({1.1, 0.9, 1.3}, 1, 0.5, 1.5), Answer::kYes);
  EXPECT_EQ(IsEqual({1.77, -0.29, 3.84}, 1, 0.5, 1.5), Answer::kUndecided);
  EXPECT_EQ(IsEqual({1.1, 0.9, 1.6}, 1, 0.5, 1.5), Answer::kUndecided);
  EXPECT_EQ(IsEqual({1.2, 1.1, 1.3}, 1, 0.5, 1.5), Answer::kNo);
  EXPECT_EQ(IsEqual({0.2, 0.1, 0.3}, 1, 0.5, 1.5), Answer::kNo);
}

TEST(IsNear, NeedsTheWholeIntervalWithinTheTolerance) {
  EXPECT_EQ(IsNear({-0.5, -0.51, -0.49}, -0.5, 0.02), Answer::kYes);
  EXPECT_EQ(IsNear({-0.5, -0.53, -0.47}, -0.5, 0.02), Answer::kUndecided);
  EXPECT_EQ(IsNear({-0.6, -0.61, -0.59}, -0.5, 0.02), Answer::kNo);
}

TEST(Answers, WithoutAnIntervalAreUndecided) {
  for (const Estimate& estimate : {kNothing, kOneSeed, Estimate{kNaN, 0, 1}}) {
    EXPECT_EQ(IsAbove(estimate, 0), Answer::kUndecided);
    EXPECT_EQ(IsBelow(estimate, 9), Answer::kUndecided);
    EXPECT_EQ(IsAtMost(estimate, 9, 10), Answer::kUndecided);
    EXPECT_EQ(IsAtLeast(estimate, 0, -1), Answer::kUndecided);
    EXPECT_EQ(IsEqual(estimate, 2, 1, 3), Answer::kUndecided);
    EXPECT_EQ(IsNear(estimate, 2, 5), Answer::kUndecided);
  }
}

Tally Of(const std::vector<Answer>& answers) {
  Tally tally;
  for (const Answer answer : answers) tally.Add(answer);
  return tally;
}

TEST(Verdict, FollowsFromTheAnswersOfAllCases) {
  constexpr Answer yes = Answer::kYes, no = Answer::kNo, partly = Answer::kPartly,
                   undecided = Answer::kUndecided;
  EXPECT_EQ(Of({}).Verdict(), "not measured");
  EXPECT_EQ(Of({undecided, undecided}).Verdict(), "not measured");
  EXPECT_EQ(Of({yes, yes}).Verdict(), "holds");
  EXPECT_EQ(Of({yes, undecided}).Verdict(), "holds in part");
  EXPECT_EQ(Of({yes, no}).Verdict(), "holds in part");
  EXPECT_EQ(Of({partly, partly}).Verdict(), "holds in part");
  EXPECT_EQ(Of({partly, undecided}).Verdict(), "holds in part");
  EXPECT_EQ(Of({no, no}).Verdict(), "does not hold");
  EXPECT_EQ(Of({no, undecided}).Verdict(), "does not hold");
}

TEST(Verdict, OfMostAllowsOneCaseInTen) {
  std::vector<Answer> answers(9, Answer::kYes);
  answers.push_back(Answer::kNo);
  EXPECT_EQ(Of(answers).Verdict(), "holds in part");
  EXPECT_EQ(Of(answers).VerdictOfMost(), "holds");
  answers.push_back(Answer::kUndecided);
  EXPECT_EQ(Of(answers).VerdictOfMost(), "holds in part");
  EXPECT_EQ(Of({}).VerdictOfMost(), "not measured");
}

TEST(Verdict, TheUndecidedCasesAreNamed) {
  EXPECT_EQ(Of({Answer::kYes, Answer::kUndecided, Answer::kNo}).UndecidedText(),
            "1 of 3 undecided");
  EXPECT_EQ(Of({Answer::kYes}).UndecidedText(), "");
}

TEST(Opposite, ExchangesYesAndNo) {
  EXPECT_EQ(Opposite(Answer::kYes), Answer::kNo);
  EXPECT_EQ(Opposite(Answer::kNo), Answer::kYes);
  EXPECT_EQ(Opposite(Answer::kUndecided), Answer::kUndecided);
}

}  // namespace
}  // namespace numsim::experiments
