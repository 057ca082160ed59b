#include "numsim/io/csv.h"

#include <cmath>
#include <filesystem>

#include "numsim/io/shared/byte_stream.h"
#include "tests/support/gzip.h"
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

TEST_F(CsvTest, ReadsCompressedFiles) {
  const std::string text = "a,b\n1,2\n";
  const std::vector<Row> rows = {{"1", "2"}};
  EXPECT_FALSE(HasCsv(Path("t.csv")));
  Put("t.csv.gz", Gzip(text));
  EXPECT_TRUE(HasCsv(Path("t.csv")));
  for (const auto* name : {"t.csv", "t.csv.gz"}) {
    EXPECT_EQ(ReadCsv(Path(name)).rows, rows) << name;
    EXPECT_EQ(ReadCsvText(Path(name)), text) << name;
  }
  EXPECT_EQ(ReadCsv(Put("u.csv", Gzip(text))).rows, rows) << "the name decides nothing";
  // Longer than the pieces in which it is read, and in two members.
  std::string large = "x\n";
  while (large.size() < size_t{3} << 20) large += "0123456789\n";
  EXPECT_EQ(ReadCsvText(Put("large.csv", Gzip(large.substr(0, 7)) + Gzip(large.substr(7)))), large);

  Put("t.csv", text);
  const auto found = [&] { HasCsv(Path("t.csv")); };
  ExpectMessage(ErrorOf(found), {"t.csv.gz", "is there beside", "t.csv,"});
  ExpectMessage(ErrorOf([&] { ReadCsv(Path("t.csv")); }), {"t.csv.gz", "is there beside"});
}

TEST_F(CsvTest, DamagedCompressedFilesAreErrors) {
  const std::string whole = Gzip("a,b\n1,2\n");
  const auto error_of = [&](const std::string& bytes) {
    Put("t.csv.gz", bytes);
    return ErrorOf([&] { ReadCsv(Path("t.csv")); });
  };
  for (size_t size = 2; size < whole.size(); ++size) {
    ExpectMessage(error_of(whole.substr(0, size)), {"t.csv.gz", "cut short"});
  }
  std::string changed = whole;
  changed[16] ^= 1;
  ExpectMessage(error_of(changed), {"t.csv.gz", "damaged gzip data"});
  ExpectMessage(error_of(Gzip("a,b\n1\n")), {"t.csv:2:", "1 cells, expected 2"});
  const std::filesystem::path large = Put("l.csv", Gzip(std::string(3 << 20, 'x')));
  EXPECT_EQ(ReadInflatedText(large, 3 << 20).size(), size_t{3} << 20);
  ExpectMessage(ErrorOf([&] { ReadInflatedText(large, (3 << 20) - 1); }), {"l.csv", "more than"});
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
