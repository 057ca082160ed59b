#include "numsim/data/utf8_file.h"

#include "tests/data/data_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

TEST(FindInvalidUtf8, AcceptsWhatIsWellFormed) {
  const std::string text =
      "a\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"
      "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  EXPECT_EQ(FindInvalidUtf8(text), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8(std::string_view("\0", 1)), std::nullopt);
}

TEST(FindInvalidUtf8, FindsTheFirstByteAtFault) {
  const std::vector<std::string> faults = {"\x80",              // continues nothing
                                           "\xC0\x80",          // overlong
                                           "\xC1\xBF",          // overlong
                                           "\xE0\x9F\xBF",      // overlong
                                           "\xF0\x8F\xBF\xBF",  // overlong
                                           "\xED\xA0\x80",      // surrogate
                                           "\xF4\x90\x80\x80",  // above U+10FFFF
                                           "\xF5\x80\x80\x80",
                                           "\xFF",
                                           "\xC3",            // cut short
                                           "\xE2\x82",        // cut short
                                           "\xF0\x9F\x98",    // cut short
                                           "\xC3(",           // not continued
                                           "\xE2\x82(",       // not continued
                                           "\xF0\x9F\x98("};  // not continued
  for (const std::string& fault : faults) {
    EXPECT_EQ(FindInvalidUtf8(fault), 0u) << fault;
    EXPECT_EQ(FindInvalidUtf8("ab\xC3\xA4" + fault), 4u) << fault;
  }
}

TEST(NextCharacter, StepsOverContinuations) {
  const std::string text = "a\xE2\x82\xACz";
  const std::vector<size_t> expected = {0, 1, 4, 4, 4, 5};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(NextCharacter(text, i), expected[i]);
}

using ReadUtf8FileTest = IoTest;

TEST_F(ReadUtf8FileTest, LeavesOutAByteOrderMark) {
  EXPECT_EQ(ReadUtf8File(Put("a", "\xEF\xBB\xBFtext\r\n")), "text\r\n");
  EXPECT_EQ(ReadUtf8File(Put("b", "te\xEF\xBB\xBFxt")), "te\xEF\xBB\xBFxt");
}

TEST_F(ReadUtf8FileTest, NamesFileAndOffset) {
  const auto path = Put("bad.txt",
                        "abc\xE4"
                        "def");
  ExpectMessage(ErrorOf([&] { ReadUtf8File(path); }), {path.string(), "0xe4", "offset 3", "UTF-8"});
  const auto empty = Put("empty.txt", "");
  ExpectMessage(ErrorOf([&] { ReadUtf8File(empty); }), {empty.string(), "no text"});
  const auto mark = Put("mark.txt", "\xEF\xBB\xBF");
  ExpectMessage(ErrorOf([&] { ReadUtf8File(mark); }), {mark.string(), "no text"});
  ExpectMessage(ErrorOf([&] { ReadUtf8File(Path("absent")); }), {Path("absent").string()});
  ExpectMessage(ErrorOf([&] { ReadUtf8File(Directory()); }), {Directory().string()});
}

}  // namespace
}  // namespace numsim
