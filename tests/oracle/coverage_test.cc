#include "numsim/oracle/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/oracle/case_lists.h"
#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

// The surplus and the shortage of a set of answers, counted with a map.
struct Counts {
  uint64_t missing = 0, repeated = 0, foreign = 0;
};

Counts Counted(const std::vector<Numbers>& level, const std::vector<Numbers>& answers) {
  std::map<Numbers, int64_t> surplus;  // answers minus cases
  std::set<Numbers> known(level.begin(), level.end());
  for (const Numbers& inputs : level) --surplus[inputs];
  for (const Numbers& inputs : answers) ++surplus[inputs];
  Counts counts;
  for (const auto& [inputs, count] : surplus) {
    if (count < 0) counts.missing += static_cast<uint64_t>(-count);
    if (count > 0) (known.contains(inputs) ? counts.repeated : counts.foreign) += count;
  }
  return counts;
}

std::vector<Numbers> CasesOf(const Operation& operation, const CaseLevel& level) {
  const CaseGenerator cases(operation, level);
  std::vector<Numbers> all;
  for (uint64_t i = 0; i < cases.size(); ++i) {
    all.push_back(CaseOf(cases, i, operation.inputs().size()));
  }
  return all;
}

// Lets a tally read `answers` in parts of `part` rows; their places count from 1.
Coverage Covered(const Operation& operation,
                 const CaseLevel& level,
                 const std::vector<Numbers>& answers,
                 size_t part = 1000) {
  CoverageTally total(operation, level);
  for (size_t begin = 0; begin < answers.size(); begin += part) {
    const std::unique_ptr<CaseTally> fresh = total.Fresh();
    for (size_t i = begin; i < std::min(answers.size(), begin + part); ++i) {
      Numbers row = answers[i];
      row.resize(row.size() + operation.results().size());  // results do not matter
      fresh->Add(i + 1, row);
    }
    total.Append(*fresh);
  }
  return total.Compare(3);
}

void ExpectCounts(const Coverage& coverage, const Counts& counts) {
  EXPECT_EQ(coverage.missing, counts.missing);
  EXPECT_EQ(coverage.repeated, counts.repeated);
  EXPECT_EQ(coverage.foreign, counts.foreign);
  EXPECT_EQ(coverage.Complete(), counts.missing + counts.repeated + counts.foreign == 0);
}

constexpr CaseLevel kFull{CaseLevel::Kind::kFull, 0, 0};

TEST(Coverage, EveryCaseOnceIsCompleteInAnyOrder) {
  const MadeUpOperation operation;
  std::vector<Numbers> answers = CasesOf(operation, kFull);
  ASSERT_EQ(answers.size(), 65536u);
  EXPECT_TRUE(Covered(operation, kFull, answers).Complete());
  EXPECT_EQ(Covered(operation, kFull, answers).expected, 65536u);
  std::reverse(answers.begin(), answers.end());
  EXPECT_TRUE(Covered(operation, kFull, answers).Complete());
  std::mt19937_64 random(1);
  std::shuffle(answers.begin() + 100, answers.end(), random);
  EXPECT_TRUE(Covered(operation, kFull, answers, 77).Complete());
}

TEST(Coverage, NamesWhatIsMissing) {
  const MadeUpOperation operation;
  const std::vector<Numbers> all = CasesOf(operation, kFull);
  const Coverage begun = Covered(operation, kFull, {all.begin(), all.begin() + 100});
  ExpectCounts(begun, {65436, 0, 0});
  EXPECT_EQ(begun.first_missing, (std::vector<uint64_t>{100, 101, 102}));
  std::vector<Numbers> holes = all;
  holes.erase(holes.begin() + 70);
  holes.erase(holes.begin() + 5);
  const Coverage two = Covered(operation, kFull, holes);
  ExpectCounts(two, {2, 0, 0});
  EXPECT_EQ(two.first_missing, (std::vector<uint64_t>{5, 70}));
  ExpectCounts(Covered(operation, kFull, {}), {65536, 0, 0});
}

TEST(Coverage, NamesWhatIsRepeated) {
  const MadeUpOperation operation;
  // One case as often as there are cases: a program that always answers the same.
  const Coverage same = Covered(operation, kFull, std::vector<Numbers>(65536, Numbers{0, 0}));
  ExpectCounts(same, {65535, 65535, 0});
  EXPECT_EQ(same.first_missing, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(same.first_repeated, (std::vector<Coverage::Repeated>{{2, 0}, {3, 0}, {4, 0}}));
  std::vector<Numbers> more = CasesOf(operation, kFull);
  more.push_back({1, 2});
  const Coverage one = Covered(operation, kFull, more);
  ExpectCounts(one, {0, 1, 0});
  EXPECT_EQ(one.first_repeated, (std::vector<Coverage::Repeated>{{65537, 0x102}}));
}

TEST(Coverage, NamesWhatIsForeign) {
  const MadeUpOperation operation;
  const CaseLevel level{CaseLevel::Kind::kRandom, 50, 3};
  std::vector<Numbers> answers = CasesOf(operation, level);
  Numbers foreign = {0, 0};
  while (std::find(answers.begin(), answers.end(), foreign) != answers.end()) ++foreign[1];
  answers[20] = foreign;
  answers.push_back(foreign);
  const Coverage coverage = Covered(operation, level, answers);
  ExpectCounts(coverage, {1, 0, 2});
  EXPECT_EQ(coverage.first_missing, (std::vector<uint64_t>{20}));
  EXPECT_EQ(coverage.first_foreign, (std::vector<uint64_t>{21, 51}));
}

// A level of 4000 cases among 256 codes has most of them several times.
TEST(Coverage, CasesThatALevelHasSeveralTimesAreDemandedAsOften) {
  const auto operation = MakeOperation({.op = "sqrt", .format = "e4m3fn"});
  const CaseLevel level{CaseLevel::Kind::kUniform, 4000, 1};
  const std::vector<Numbers> all = CasesOf(*operation, level);
  std::mt19937_64 random(2);
  for (int round = 0; round < 5; ++round) {
    std::vector<Numbers> answers = all;
    std::shuffle(answers.begin(), answers.end(), random);
    EXPECT_TRUE(Covered(*operation, level, answers).Complete());
    answers[17] = answers[18];
    answers.resize(3990);
    ExpectCounts(Covered(*operation, level, answers, 500), Counted(all, answers));
  }
  // The first occurrence of a case is not a repetition of a later one.
  ExpectCounts(Covered(*operation, level, {all.begin(), all.begin() + 3999}), {1, 0, 0});
}

// Inputs of more than 64 bits are compared by a hash.
TEST(Coverage, LongInputsAreCompared) {
  const auto operation =
      MakeOperation({.op = "dot", .format = "e4m3fn", .to = "fp32", .length = 20});
  const CaseLevel level{CaseLevel::Kind::kRandom, 500, 3};
  const std::vector<Numbers> all = CasesOf(*operation, level);
  std::vector<Numbers> answers = all;
  EXPECT_TRUE(Covered(*operation, level, answers).Complete());
  std::reverse(answers.begin(), answers.end());
  EXPECT_TRUE(Covered(*operation, level, answers).Complete());
  for (size_t column = 0; column < 40; ++column) {
    std::vector<Numbers> changed = all;
    changed[column][column] ^= 1;
    ExpectCounts(Covered(*operation, level, changed), {1, 0, 1});
  }
  std::vector<Numbers> swapped = all;  // the order of the operands matters
  ASSERT_NE(swapped[7][0], swapped[7][1]);
  std::swap(swapped[7][0], swapped[7][1]);
  ExpectCounts(Covered(*operation, level, swapped), {1, 0, 1});
}

TEST(Coverage, DependsOnTheSeed) {
  const auto operation = MakeOperation({.op = "add", .format = "fp32"});
  const std::vector<Numbers> answers = CasesOf(*operation, {CaseLevel::Kind::kRandom, 100, 1});
  ExpectCounts(Covered(*operation, {CaseLevel::Kind::kRandom, 100, 2}, answers), {100, 0, 100});
}

// More cases than are generated at once, in parts of uneven length.
TEST(Coverage, ManyCasesInOrderAndOutOfIt) {
  const auto operation =
      MakeOperation({.op = "add",
                     .format = "e4m3fn",
                     .rounding = Rounding{.mode = RoundingMode::kStochastic, .random_bits = 4}});
  const std::vector<Numbers> all = CasesOf(*operation, kFull);
  ASSERT_EQ(all.size(), uint64_t{1} << 20);
  EXPECT_TRUE(Covered(*operation, kFull, all, 4321).Complete());
  std::vector<Numbers> answers = all;
  std::swap(answers[700'000], answers[700'001]);
  EXPECT_TRUE(Covered(*operation, kFull, answers, 4321).Complete());
  answers.erase(answers.begin() + 650'000);
  const Coverage coverage = Covered(*operation, kFull, answers, 4321);
  ExpectCounts(coverage, {1, 0, 0});
  EXPECT_EQ(coverage.first_missing, (std::vector<uint64_t>{650'000}));
}

}  // namespace
}  // namespace numsim
