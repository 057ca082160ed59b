#include "numsim/io/csv.h"

#include <cmath>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using CsvTest = IoTest;

TEST(ToCsv, QuotesOnlyWhatNeedsIt) {
  const Table table{{"plain", "with, comma"}, {{"a b", "say \"hi\""}, {"two\nlines", ""}}};
  EXPECT_EQ(ToCsv(table),
            "plain,\"with, comma\"\n"
            "a b,\"say \"\"hi\"\"\"\n"
            "\"two\nlines\",\n");
}

TEST_F(CsvTest, RoundTripsAnyText) {
  const Table table{{"a", "b,\"c\""}, {{"", ""}, {"\"", ",\r\n"}, {" x ", "\xc3\xa9"}}};
  WriteCsv(Path("t.csv"), table);
  const Table read = ReadCsv(Path("t.csv"));
  EXPECT_EQ(read.columns, table.columns);
  EXPECT_EQ(read.rows, table.rows);
}

TEST_F(CsvTest, LoneCarriageReturnsRoundTrip) {
  const Table table{{"a", "b"}, {{"a\rb", "\r"}, {"\r", "a\r"}}};
  WriteCsv(Path("t.csv"), table);
  EXPECT_EQ(ReadCsv(Path("t.csv")).rows, table.rows);
}

TEST_F(CsvTest, LoneEmptyCellsRoundTrip) {
  const Table table{{"a"}, {{""}, {"x"}, {""}}};
  WriteCsv(Path("t.csv"), table);
  EXPECT_EQ(ReadCsv(Path("t.csv")).rows, table.rows);
}

TEST_F(CsvTest, ReadsOtherLineEndsAndAMissingLastOne) {
  const Table read = ReadCsv(Put("t.csv", "a,b\r\n1,\"2\"\r\n3,4"));
  EXPECT_EQ(read.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.rows, (std::vector<Row>{{"1", "2"}, {"3", "4"}}));
}

TEST_F(CsvTest, HeaderAloneIsAnEmptyTable) {
  EXPECT_TRUE(ReadCsv(Put("t.csv", "a,b\n")).rows.empty());
}

TEST_F(CsvTest, MalformedFilesAreErrorsThatNameTheLine) {
  const auto error_of = [&](std::string_view text) {
    return ErrorOf([&] { ReadCsv(Put("t.csv", text)); });
  };
  ExpectMessage(error_of(""), {"t.csv:1:", "header"});
  ExpectMessage(error_of("a,b\n1,2\n3\n"), {"t.csv:3:", "1 cells, expected 2"});
  ExpectMessage(error_of("a,b\n\"x\ny\",2\n3\n"), {"t.csv:4:"});
  ExpectMessage(error_of("a,b\n1,2,3\n"), {"t.csv:2:", "3 cells"});
  ExpectMessage(error_of("a,b\n\n"), {"t.csv:2:"});
  ExpectMessage(error_of("a,b\n1,\"2\n"), {"t.csv:2:", "closing quote"});
  ExpectMessage(error_of("a,b\n1,\"2\"x\n"), {"t.csv:2:", "after a closing quote"});
  ExpectMessage(error_of("a,b\n1,2\"3\"\n"), {"t.csv:2:", "quote within"});
  ExpectMessage(error_of("a,b\n1\r2,3\n"), {"t.csv:2:", "carriage return"});
  ExpectMessage(error_of("a,a\n"), {"t.csv:1:", "'a' appears twice"});
  ExpectMessage(error_of("a,,b\n"), {"t.csv:1:", "column 2 has no name"});
  ExpectMessage(ErrorOf([&] { ReadCsv(Path("no.csv")); }), {"no.csv", "No such file"});
}

TEST(Table, CellsAreFoundByColumnName) {
  const Table table{{"name", "value"}, {{"a", "1.5"}, {"b", "nan"}, {"c", "-inf"}}};
  EXPECT_EQ(table.Column("value"), 1u);
  EXPECT_EQ(table.Text(1, "name"), "b");
  EXPECT_EQ(table.Number(0, "value"), 1.5);
  EXPECT_TRUE(std::isnan(table.Number(1, "value")));
  EXPECT_EQ(table.Number(2, "value"), -HUGE_VAL);
  ExpectMessage(ErrorOf([&] { table.Column("loss"); }), {"'loss'"});
}

TEST(Table, NumberRefusesOtherText) {
  const Table table{{"v"}, {{""}, {"x"}, {"1.5 "}, {" 1"}, {"1,5"}, {"1e999"}, {"0x10"}}};
  for (size_t row = 0; row < table.rows.size(); ++row) {
    ExpectMessage(ErrorOf([&] { table.Number(row, "v"); }), {"'v'", "is not a number"});
  }
}

TEST(Table, RowsThatDoNotFitTheColumnsThrow) {
  const Table ragged{.columns = {"a", "b"}, .rows = {{"1", "2"}, {"3"}}};
  EXPECT_EQ(ErrorOf([&] { ToCsv(ragged); }), "ToCsv: 'row' has 1 elements, expected 2");
  EXPECT_EQ(ErrorOf([&] { ToCsv({}); }), "ToCsv: no columns, expected at least one");
  EXPECT_EQ(ErrorOf([&] { ragged.Text(2, "a"); }), "Table: row 2, expected less than 2");
  EXPECT_EQ(ErrorOf([&] { ragged.Text(1, "b"); }), "Table: row 1 has 1 cells, expected 2");
}

}  // namespace
}  // namespace numsim
