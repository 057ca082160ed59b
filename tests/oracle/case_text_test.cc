#include "numsim/oracle/case_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>

#include "numsim/base/parallel.h"
#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using Fault = ParsedRow::Fault;
using Case = RememberingTally::Case;

std::vector<Column> OfWidths(const std::vector<int>& widths) {
  std::vector<Column> columns;
  for (const int bits : widths) {
    Column column;
    column.name = fmt::format("c{}", bits);
    column.bits = bits;
    columns.push_back(column);
  }
  return columns;
}

TEST(RowText, WritesUpperCaseDigitsOfFixedWidth) {
  const RowText text(OfWidths({8, 4, 32, 1, 9, 64}));
  const std::vector<uint64_t> row = {0xF, 0xA, 0xBEEF, 1, 0x1AB, 0xFEDCBA9876543210};
  EXPECT_EQ(text.Line(row), "0F A 0000BEEF 1 1AB FEDCBA9876543210");
  EXPECT_EQ(text.bytes(), 37u);
}

TEST(ParseRow, ReadsWhatRowTextWrites) {
  const std::vector<Column> columns = OfWidths({64, 1, 8, 13, 32, 63});
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint64_t> row, read(columns.size());
    for (const Column& column : columns) row.push_back(random() & LargestOf(column.bits));
    const std::string line = RowText(columns).Line(row);
    const ParsedRow parsed = ParseRow(line, columns, read);
    EXPECT_EQ(parsed.fault, Fault::kNone);
    EXPECT_EQ(parsed.columns, columns.size());
    EXPECT_EQ(read, row) << line;
  }
}

TEST(ParseRow, AcceptsLowerCasePrefixesBlanksTabsAndLeadingZeros) {
  const std::vector<Column> columns = OfWidths({8, 8});
  for (const char* const line : {"a1 b2",
                                 " A1  B2 ",
                                 "a1\tB2\r",
                                 "\t00a1 0000000000000000000B2",
                                 "0xa1 0XB2",
                                 "0x00A1 b2"}) {
    std::vector<uint64_t> row(2);
    const ParsedRow parsed = ParseRow(line, columns, row);
    EXPECT_EQ(parsed.fault, Fault::kNone) << line;
    EXPECT_EQ(parsed.columns, 2u) << line;
    EXPECT_EQ(row, (std::vector<uint64_t>{0xA1, 0xB2})) << line;
  }
}

TEST(ParseRow, NamesTheFirstFault) {
  struct Row {
    const char* line;
    Fault fault;
    size_t columns;
    const char* token;
  };
  const std::vector<Column> columns = OfWidths({8, 4, 64});
  for (const Row& row : {Row{"", Fault::kNone, 0, ""},
                         Row{"12", Fault::kNone, 1, ""},
                         Row{"12 10", Fault::kTooLarge, 1, "10"},
                         Row{"100 1 1", Fault::kTooLarge, 0, "100"},
                         Row{"1 1 10000000000000000", Fault::kTooLarge, 2, "10000000000000000"},
                         Row{"1 1 1 2", Fault::kTooMany, 3, "2"},
                         Row{"0x100 1 1", Fault::kTooLarge, 0, "0x100"},
                         Row{"0x 1 1", Fault::kNotHexadecimal, 0, "0x"},
                         Row{"1 1 0x", Fault::kNotHexadecimal, 2, "0x"},
                         Row{"0x0x1 1 1", Fault::kNotHexadecimal, 0, "0x0x1"},
                         Row{"1x1 1 1", Fault::kNotHexadecimal, 0, "1x1"},
                         Row{"1 G 1", Fault::kNotHexadecimal, 1, "G"},
                         Row{"1 -1 1", Fault::kNotHexadecimal, 1, "-1"},
                         Row{"1,1 1", Fault::kNotHexadecimal, 0, "1,1"}}) {
    std::vector<uint64_t> values(3);
    const ParsedRow parsed = ParseRow(row.line, columns, values);
    EXPECT_EQ(parsed.fault, row.fault) << row.line;
    EXPECT_EQ(parsed.columns, row.columns) << row.line;
    EXPECT_EQ(parsed.token, row.token) << row.line;
  }
}

class TallyTextTest : public IoTest {
 protected:
  // The cases of a file with that text.
  std::vector<Case> Read(std::string_view text, bool require_flags = false) const {
    const std::filesystem::path path = Put("cases.txt", text);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    RememberingTally total;
    try {
      TallyText(descriptor, "cases", columns_, require_flags, total);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    ::close(descriptor);
    return total.cases;
  }
  std::string ErrorOfReading(std::string_view text, bool require_flags = false) const {
    return ErrorOf([&] { Read(text, require_flags); });
  }

  const MadeUpOperation operation_;
  const CaseColumns columns_ = ColumnsOf(operation_);
};

TEST_F(TallyTextTest, GivesRowsWithTheirLines) {
  EXPECT_EQ(Read("01 02 03 1\r\n\n  \n04 05 09 0"),
            (std::vector<Case>{{1, {1, 2, 3, 1}}, {4, {4, 5, 9, 0}}}));
}

TEST_F(TallyTextTest, FirstRowSaysWhetherThereAreFlags) {
  EXPECT_EQ(Read("\n01 02 03 1 1F\n"), (std::vector<Case>{{2, {1, 2, 3, 1, 0x1F}}}));
  EXPECT_EQ(Read("01 02 03 1 1F\n", true), (std::vector<Case>{{1, {1, 2, 3, 1, 0x1F}}}));
  ExpectMessage(ErrorOfReading("01 02 03 1\n", true),
                {"cases: line 1, column 5 (flags) is missing"});
}

TEST_F(TallyTextTest, NamesLineAndColumnOfAFault) {
  struct Bad {
    std::string text;
    std::vector<std::string> message;
  };
  for (const Bad& bad : std::vector<Bad>{
           {"", {"cases: no cases", "a b sum bit"}},
           {"\n \r\n", {"cases: no cases"}},
           {"01 02 03\n", {"line 1, column 4 (bit) is missing, expected a b sum bit"}},
           {"01 02 03 1 00 00\n", {"line 1, column 6 is unexpected after a b sum bit flags"}},
           {"01 02 03 1 xy\n", {"line 1, column 5 (flags): 'xy' is not a hexadecimal number"}},
           {"01 02 03 1\n01 2Z 03 1\n", {"line 2, column 2 (b): '2Z' is not a hexadecimal"}},
           {"01 02 03 1\n\n01 02 03 2\n", {"line 3, column 4 (bit): '2' does not fit into 1 bits"}},
           {"01 02 03 1\n01 02 03 1 00\n", {"line 2, column 5 is unexpected after a b sum bit"}},
           {"01 02 03 1 00\n01 02 03 1\n", {"line 2, column 5 (flags) is missing"}},
           {"01 02 03 1\n01\n", {"line 2, column 2 (b) is missing"}},
           {std::string("01 02 03 1\n0\0 02 03 1\n", 22), {"line 2, column 1 (a): '0\\x00'"}}}) {
    ExpectMessage(ErrorOfReading(bad.text), bad.message);
  }
}

TEST_F(TallyTextTest, LongInputIsReadInOrderByAnyNumberOfThreads) {
  const RowText row_text(std::span(columns_.all).first(4));
  std::string text;
  std::vector<Case> expected;
  uint64_t line = 0;
  while (text.size() < (size_t{9} << 20)) {
    if (++line % 1000 == 0) {
      text += "\n";
      continue;
    }
    const std::vector<uint64_t> row = {line % 256, line / 256 % 256, line / 65536 % 256, line % 2};
    text += row_text.Line(row) + "\n";
    expected.push_back({line, row});
  }
  const int threads = ThreadCount();
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    EXPECT_TRUE(Read(text) == expected) << count << " threads";
  }
  // The first of several faults is named, wherever the threads find theirs.
  text[text.size() / 2] = 'x';
  text[text.size() / 3] = 'y';
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    const uint64_t before = static_cast<uint64_t>(
        std::count(text.begin(), text.begin() + static_cast<int64_t>(text.size() / 3), '\n'));
    ExpectMessage(ErrorOfReading(text), {fmt::format("line {}, ", before + 1)});
  }
  SetThreadCount(threads);
}

TEST_F(TallyTextTest, EndlessLineIsAnError) {
  ExpectMessage(ErrorOfReading("01 02 03 1\n" + std::string(size_t{5} << 20, ' ')),
                {"cases: line 2 is longer than"});
}

TEST_F(TallyTextTest, UnreadableFileIsAnError) {
  RememberingTally total;
  const int descriptor = ::open(Directory().c_str(), O_RDONLY | O_CLOEXEC);
  ExpectMessage(ErrorOf([&] { TallyText(descriptor, "here", columns_, false, total); }),
                {"here: cannot read"});
  ::close(descriptor);
}

}  // namespace
}  // namespace numsim
