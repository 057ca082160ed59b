// Tables of values from files.
#include "numsim/io/table_file.h"

#include <vector>

#include "numsim/formats/value_table.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TableFileTest : public IoTest {
 protected:
  std::string Refused(const std::string& contents) const {
    Put("t.txt", contents);
    return ErrorOf([&] { ReadTable(Path("t.txt")); });
  }
};

TEST_F(TableFileTest, TextHasNumbersBetweenBlanksCommasAndComments) {
  Put("t.txt", "# four values\n-1, 0.1\t+2e-3\n\n1 # the last\n");
  const Format format = ParseCastFormat("table:" + Path("t.txt").string());
  EXPECT_EQ(format.name, "table:" + Path("t.txt").string());
  EXPECT_EQ(TableOf(format.spec).by_code, (std::vector<float>{-1, 0.1f, 2e-3f, 1}));
}

TEST_F(TableFileTest, NpyHasOneDimension) {
  const std::vector<double> values = {0.1, -3, 8};
  Array array{ElementType::kF64, {3}, {}};
  array.bytes.resize(24);
  std::copy(values.begin(), values.end(), array.Data<double>());
  WriteNpy(Path("t.npy"), array);
  const ValueTable& table = TableOf(ReadTable(Path("t.npy")).spec);
  EXPECT_EQ(table.values, (std::vector<float>{-3, 0.1f, 8}));
  EXPECT_EQ(table.codes, (std::vector<uint8_t>{1, 0, 2}));
  array.shape = {1, 3};
  WriteNpy(Path("t.npy"), array);
  EXPECT_THAT(ErrorOf([&] { ReadTable(Path("t.npy")); }),
              AllOf(HasSubstr("t.npy: float64 of shape (1, 3)"), HasSubstr("one dimension")));
}

TEST_F(TableFileTest, AChangedFileIsAnotherFormat) {
  Put("t.txt", "1 2 3");
  const FormatSpec first = ReadTable(Path("t.txt")).spec;
  EXPECT_TRUE(ReadTable(Path("t.txt")).spec == first);
  Put("t.txt", "1 2 4");
  EXPECT_FALSE(ReadTable(Path("t.txt")).spec == first);
}

TEST_F(TableFileTest, BadFilesAreRefusedWithPlaceAndReason) {
  EXPECT_THAT(Refused("1\n2 x"), HasSubstr(":2: 'x' is not a number"));
  EXPECT_THAT(Refused("1 1e99"), HasSubstr(":1: '1e99' is not a number that float32 holds"));
  EXPECT_THAT(Refused("1 inf"), HasSubstr("value 1 is inf"));
  EXPECT_THAT(Refused(""), HasSubstr("0 values, expected 2 to 256"));
  EXPECT_THAT(Refused("7 7 7"), HasSubstr("all values are equal"));
  EXPECT_THAT(Refused(std::string(1 << 21, ' ')), HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(ErrorOf([] { ParseCastFormat("table:/nowhere/t.txt"); }),
              HasSubstr("/nowhere/t.txt"));
}

TEST_F(TableFileTest, ListsOfFormatsHaveTables) {
  Put("t.txt", "1 2");
  const auto formats = ParseCastFormatList(
      "nf4,e4m3:bias=8,inf=none,nan=none,table:" + Path("t.txt").string() + ",int4");
  ASSERT_EQ(formats.size(), 4u);
  EXPECT_EQ(formats[0].name, "nf4");
  EXPECT_EQ(formats[2].spec.Bits(), 1);
  EXPECT_EQ(formats[3].name, "int4");
}

}  // namespace
}  // namespace numsim
