#include "numsim/oracle/judge.h"

#include <gtest/gtest.h>

#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

constexpr uint64_t kNan = 0x7F, kNegativeNan = 0xFF;

TEST(Judge, AcceptsRightResults) {
  const MadeUpOperation operation;
  Judge judge(operation, NanRule::kExact, 20);
  judge.Add(1, std::vector<uint64_t>{3, 4, 7, 1});
  judge.Add(2, std::vector<uint64_t>{0xFF, 2, 1, 1});
  EXPECT_EQ(judge.cases(), 2u);
  EXPECT_EQ(judge.mismatches(), 0u);
  EXPECT_FALSE(judge.judged_flags());
}

TEST(Judge, EveryResultColumnCounts) {
  const MadeUpOperation operation;
  Judge judge(operation, NanRule::kExact, 20);
  judge.Add(10, std::vector<uint64_t>{3, 4, 8, 1});
  judge.Add(11, std::vector<uint64_t>{3, 4, 7, 0});
  EXPECT_EQ(judge.mismatches(), 2u);
  EXPECT_EQ(judge.first(),
            (std::vector<Mismatch>{{10, {3, 4, 8, 1}, {7, 1}, 3}, {11, {3, 4, 7, 0}, {7, 1}, 3}}));
}

TEST(Judge, FlagsCountWhereTheyAreGiven) {
  const MadeUpOperation operation;
  Judge judge(operation, NanRule::kExact, 20);
  judge.Add(1, std::vector<uint64_t>{3, 4, 7, 1, 3});
  judge.Add(2, std::vector<uint64_t>{3, 4, 7, 1, 2});
  judge.Add(3, std::vector<uint64_t>{3, 4, 6, 1, 2});
  EXPECT_TRUE(judge.judged_flags());
  EXPECT_EQ(judge.mismatches(), 2u);
  EXPECT_EQ(judge.mismatches(MismatchKind::kFlags), 1u);
  EXPECT_EQ(judge.mismatches(MismatchKind::kValue), 1u);
  EXPECT_EQ(judge.first()[1], (Mismatch{2, {3, 4, 7, 1, 2}, {7, 1}, 3, MismatchKind::kFlags}));
}

// The kinds of four mismatches, one part of the input each, and the order in which they are kept.
TEST(Judge, WrongValuesComeBeforeFlagsAndOtherNans) {
  const MadeUpOperation operation;
  for (const size_t limit : {2, 10}) {
    Judge total(operation, NanRule::kExact, limit);
    const std::vector<std::vector<uint64_t>> rows = {
        {kNan, 0, kNegativeNan, 1, 0x1F},  // another NaN
        {kNan, 0, kNegativeNan, 1, 0x1E},  // and wrong flags too, which --nan any does not accept
        {3, 4, 7, 1, 2},                   // wrong flags
        {0, 1, kNan, 0, 0},                // NaN where a number is right
        {kNan, 0, kNan, 1, 0x1F}};         // right
    for (uint64_t i = 0; i < rows.size(); ++i) {
      const std::unique_ptr<CaseTally> part = total.Fresh();
      part->Add(i, rows[i]);
      total.Append(*part);
    }
    EXPECT_EQ(total.cases(), 5u);
    EXPECT_EQ(total.mismatches(), 4u);
    EXPECT_EQ(total.mismatches(MismatchKind::kValue), 1u);
    EXPECT_EQ(total.mismatches(MismatchKind::kFlags), 2u);
    EXPECT_EQ(total.mismatches(MismatchKind::kNan), 1u);
    std::vector<uint64_t> places;
    for (const Mismatch& mismatch : total.first()) places.push_back(mismatch.place);
    EXPECT_EQ(places,
              limit == 2 ? (std::vector<uint64_t>{3, 1}) : (std::vector<uint64_t>{3, 1, 2, 0}));
  }
}

TEST(Judge, SinkReceivesEveryMismatchInTheOrderOfTheInput) {
  const MadeUpOperation operation;
  std::vector<uint64_t> places;
  Judge total(operation, NanRule::kExact, 1, [&](const Mismatch& mismatch) {
    places.push_back(mismatch.place);
  });
  for (uint64_t part = 0; part < 3; ++part) {
    const std::unique_ptr<CaseTally> fresh = total.Fresh();
    fresh->Add(10 * part, std::vector<uint64_t>{kNan, 0, kNegativeNan, 1});
    fresh->Add(10 * part + 1, std::vector<uint64_t>{1, 1, 99, 1});
    fresh->Add(10 * part + 2, std::vector<uint64_t>{1, 1, 2, 1});
    total.Append(*fresh);
  }
  EXPECT_EQ(places, (std::vector<uint64_t>{0, 1, 10, 11, 20, 21}));
  ASSERT_EQ(total.first().size(), 1u);
  EXPECT_EQ(total.first()[0].place, 1u);
  EXPECT_EQ(total.mismatches(), 6u);
}

TEST(Judge, OtherNanCodesAreForNanAnyAlone) {
  const MadeUpOperation operation;
  for (const NanRule rule : {NanRule::kExact, NanRule::kAny}) {
    Judge judge(operation, rule, 20);
    judge.Add(1, std::vector<uint64_t>{kNan, 0, kNegativeNan, 1});  // NaN is right
    EXPECT_EQ(judge.mismatches(), rule == NanRule::kAny ? 0u : 1u);
    judge.Add(2, std::vector<uint64_t>{0, 1, kNan, 0});  // a number is right
    judge.Add(3, std::vector<uint64_t>{kNan, 0, 1, 1});
    EXPECT_EQ(judge.mismatches(), rule == NanRule::kAny ? 2u : 3u);
  }
}

TEST(Judge, PartsAddUpInOrderAndKeepTheFirst) {
  const MadeUpOperation operation;
  Judge total(operation, NanRule::kExact, 3);
  for (uint64_t part = 0; part < 3; ++part) {
    const std::unique_ptr<CaseTally> fresh = total.Fresh();
    for (uint64_t i = 0; i < 2; ++i) {
      fresh->Add(10 * part + i, std::vector<uint64_t>{1, 1, 99, 1, 1});
    }
    total.Append(*fresh);
  }
  EXPECT_EQ(total.cases(), 6u);
  EXPECT_EQ(total.mismatches(), 6u);
  EXPECT_EQ(total.mismatches(MismatchKind::kValue), 6u);
  EXPECT_TRUE(total.judged_flags());
  ASSERT_EQ(total.first().size(), 3u);
  EXPECT_EQ(total.first()[0].place, 0u);
  EXPECT_EQ(total.first()[1].place, 1u);
  EXPECT_EQ(total.first()[2].place, 10u);
  const std::unique_ptr<CaseTally> long_part = total.Fresh();
  for (uint64_t i = 0; i < 10; ++i) long_part->Add(i, std::vector<uint64_t>{1, 1, 99, 1, 1});
  total.Append(*long_part);
  EXPECT_EQ(total.mismatches(), 16u);
  EXPECT_EQ(total.first().size(), 3u);
}

TEST(Judge, LimitZeroKeepsNothingAndStillCounts) {
  const MadeUpOperation operation;
  Judge judge(operation, NanRule::kExact, 0);
  judge.Add(1, std::vector<uint64_t>{1, 1, 1, 1});
  EXPECT_EQ(judge.mismatches(), 1u);
  EXPECT_TRUE(judge.first().empty());
}

TEST(ParseNanRule, NamesTheOption) {
  EXPECT_EQ(ParseNanRule("exact"), NanRule::kExact);
  EXPECT_EQ(ParseNanRule("any"), NanRule::kAny);
  ExpectMessage(ErrorOf([] { ParseNanRule("some"); }), {"--nan", "'some'", "exact, any"});
}

}  // namespace
}  // namespace numsim
