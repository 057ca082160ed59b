#include <gtest/gtest.h>

#include "numsim/base/parallel.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"
#include "tests/oracle/made_up_operation.h"

namespace numsim {
namespace {

std::string AllText(const CaseRows& rows) {
  std::string text;
  WriteCaseText(rows, [&](std::string_view part) { text += part; });
  return text;
}

TEST(CaseRows, AnswersAreOptional) {
  const MadeUpOperation operation;
  const CaseLevel full{CaseLevel::Kind::kFull, 0, 0};
  const CaseRows inputs(operation, full, false), all(operation, full, true);
  EXPECT_EQ(inputs.size(), 65536u);
  EXPECT_EQ(inputs.columns().size(), 2u);
  ASSERT_EQ(all.columns().size(), 5u);
  EXPECT_EQ(all.columns().back().name, "flags");
  std::vector<uint64_t> short_row(2), row(5);
  for (const uint64_t i : {uint64_t{0}, uint64_t{0x1234}, uint64_t{65535}}) {
    inputs.Row(i, short_row);
    all.Row(i, row);
    EXPECT_EQ(short_row, (std::vector<uint64_t>{i / 256, i % 256}));
    EXPECT_EQ(row,
              (std::vector<uint64_t>{
                  i / 256, i % 256, (i / 256 + i % 256) % 256, i / 256 % 2, i / 256 % 32}));
  }
}

TEST(WriteCaseText, WritesEveryRowInOrderOnAnyNumberOfThreads) {
  const MadeUpOperation operation;
  const CaseRows rows(operation, {CaseLevel::Kind::kRandom, 700001, 5}, true);  // 10 MB
  const RowText row_text(rows.columns());
  std::string expected;
  std::vector<uint64_t> row(rows.columns().size());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    rows.Row(i, row);
    expected += row_text.Line(row) + "\n";
  }
  const int threads = ThreadCount();
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    EXPECT_TRUE(AllText(rows) == expected) << count << " threads";
  }
  SetThreadCount(threads);
}

}  // namespace
}  // namespace numsim
