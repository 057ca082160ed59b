#include "numsim/io/cell.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "numsim/io/csv.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kLeastInt64 = std::numeric_limits<int64_t>::min();
constexpr uint64_t kGreatestUint64 = std::numeric_limits<uint64_t>::max();

TEST(FormatCell, DoublesAreTheShortestTextThatReadsBack) {
  EXPECT_EQ(FormatCell(0.1), "0.1");
  EXPECT_EQ(FormatCell(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(FormatCell(1e23), "1e+23");
  EXPECT_EQ(FormatCell(448.0), "448");
  EXPECT_EQ(FormatCell(-0.0), "-0");
  EXPECT_EQ(FormatCell(5e-324), "5e-324");
  EXPECT_EQ(FormatCell(0.001953125), "0.001953125");
}

TEST(FormatCell, EveryDoubleReadsBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    const std::string text = FormatCell(value);
    double back = 0;
    ASSERT_EQ(std::from_chars(text.data(), text.data() + text.size(), back).ec, std::errc());
    ASSERT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << text;
  }
}

TEST(FormatCell, NanHasNoSignAndInfinityHas) {
  EXPECT_EQ(FormatCell(kQuietNan), "nan");
  EXPECT_EQ(FormatCell(std::copysign(kQuietNan, -1.0)), "nan");
  EXPECT_EQ(FormatCell(HUGE_VAL), "inf");
  EXPECT_EQ(FormatCell(-HUGE_VAL), "-inf");
}

TEST(FormatCell, IntegersAndTextsAreThemselves) {
  EXPECT_EQ(FormatCell(kLeastInt64), "-9223372036854775808");
  EXPECT_EQ(FormatCell(kGreatestUint64), "18446744073709551615");
  EXPECT_EQ(FormatCell(-1), "-1");
  EXPECT_EQ(FormatCell("a,b"), "a,b");
}

TEST(Cell, TextOfNumbers) {
  EXPECT_EQ(Cell(0.1).Text(), "0.1");
  EXPECT_EQ(Cell(0.1f).Text(), "0.10000000149011612");
  EXPECT_EQ(Cell(448.0).Text(), "448");
  EXPECT_EQ(Cell(-0.0).Text(), "-0");
  EXPECT_EQ(Cell(1e300).Text(), "1e+300");
  EXPECT_EQ(Cell(std::copysign(kQuietNan, -1.0)).Text(), "nan");
  EXPECT_EQ(Cell(HUGE_VAL).Text(), "inf");
  EXPECT_EQ(Cell(-HUGE_VAL).Text(), "-inf");
  EXPECT_EQ(Cell(0).Text(), "0");
  EXPECT_EQ(Cell(-1).Text(), "-1");
  // An integer has no exponent; the double 100000 has.
  EXPECT_EQ(Cell(100000).Text(), "100000");
  EXPECT_EQ(Cell(1e5).Text(), "1e+05");
  EXPECT_EQ(Cell(kLeastInt64).Text(), "-9223372036854775808");
  EXPECT_EQ(Cell(kGreatestUint64).Text(), "18446744073709551615");
  EXPECT_EQ(Cell(std::numeric_limits<uint32_t>::max()).Text(), "4294967295");
}

TEST(Cell, TextOfTexts) {
  EXPECT_EQ(Cell().Text(), "");
  EXPECT_EQ(Cell("a,\"b\"").Text(), "a,\"b\"");
  EXPECT_EQ(Cell(std::string("1.50")).Text(), "1.50");
  EXPECT_EQ(Cell(std::string_view("a,b").substr(0, 1)).Text(), "a");
}

TEST(Cell, NumberOfNumbers) {
  EXPECT_EQ(Cell(-2).Number(), -2.0);
  EXPECT_EQ(Cell(kLeastInt64).Number(), -0x1p63);
  EXPECT_EQ(Cell(uint64_t{1} << 63).Number(), 0x1p63);
  EXPECT_EQ(Cell(0.1f).Number(), 0x1.99999ap-4);
  EXPECT_TRUE(std::isnan(Cell(kQuietNan).Number()));
  EXPECT_EQ(Cell(HUGE_VAL).Number(), HUGE_VAL);
  EXPECT_EQ(Cell(-HUGE_VAL).Number(), -HUGE_VAL);
}

TEST(Cell, NumberOfTexts) {
  EXPECT_EQ(Cell("1.5").Number(), 1.5);
  EXPECT_EQ(Cell("-3").Number(), -3.0);
  EXPECT_EQ(Cell("1e+05").Number(), 100000.0);
  EXPECT_TRUE(std::isnan(Cell("nan").Number()));
  EXPECT_EQ(Cell("inf").Number(), HUGE_VAL);
  EXPECT_EQ(Cell("-inf").Number(), -HUGE_VAL);
}

TEST(Cell, NumberOfAnotherTextIsAnErrorWithTheText) {
  EXPECT_EQ(ErrorOf([] { Cell("1,5").Number(); }), "'1,5' is not a number");
  EXPECT_EQ(ErrorOf([] { Cell().Number(); }), "'' is not a number");
  EXPECT_EQ(ErrorOf([] { Cell("1.5 ").Number(); }), "'1.5 ' is not a number");
  EXPECT_EQ(ErrorOf([] { Cell("yes").Number(); }), "'yes' is not a number");
}

TEST(Cell, DoublesComeBackExactly) {
  const double least_denormal = std::numeric_limits<double>::denorm_min();
  for (const double value : {0.1, 1e300, least_denormal, 3 * least_denormal, -0.0, 0x1p63}) {
    const auto bits = std::bit_cast<uint64_t>(value);
    EXPECT_EQ(std::bit_cast<uint64_t>(Cell(value).Number()), bits) << value;
    const Cell read = Cell(value).Text();
    EXPECT_EQ(std::bit_cast<uint64_t>(read.Number()), bits) << value << " read from a file";
  }
}

TEST(Cell, CellsAreEqualIfTheirTextsAre) {
  EXPECT_TRUE(Cell(3) == Cell("3"));
  EXPECT_TRUE(Cell(3) == Cell(3.0));
  EXPECT_TRUE(Cell(3) == Cell(uint64_t{3}));
  EXPECT_TRUE(Cell(kQuietNan) == Cell("nan"));
  EXPECT_TRUE(Cell("a") == "a");
  EXPECT_FALSE(Cell(3) == Cell("3.0"));
  EXPECT_FALSE(Cell(3) == Cell(4));
  EXPECT_FALSE(Cell(0.0) == Cell(-0.0));
  EXPECT_FALSE(Cell(100000) == Cell(1e5));
}

TEST(Table, TextAndNumberOfTypedCells) {
  const Table table{{"format", "error", "seed"}, {{"int8", 0.1, 7}, {"fp8", kQuietNan, "8"}}};
  EXPECT_EQ(table.Text(0, "error"), "0.1");
  EXPECT_EQ(table.Number(0, "error"), 0.1);
  EXPECT_EQ(table.Number(0, "seed"), 7.0);
  EXPECT_EQ(table.Number(1, "seed"), 8.0);
  EXPECT_EQ(ToCsv(table), "format,error,seed\nint8,0.1,7\nfp8,nan,8\n");
}

TEST(Table, NumberOfATextIsAnErrorWithColumnAndRecord) {
  const Table table{{"format", "error"}, {{"int8", 0.1}, {"fp8", "high"}}};
  EXPECT_EQ(ErrorOf([&] { table.Number(1, "error"); }),
            "column 'error', record 2: 'high' is not a number");
  EXPECT_EQ(ErrorOf([&] { table.Number(0, "format"); }),
            "column 'format', record 1: 'int8' is not a number");
}

}  // namespace
}  // namespace numsim
