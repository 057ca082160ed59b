#include "numsim/base/printable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace numsim {
namespace {

TEST(Printable, ControlCharactersBecomeHexAndUtf8Stays) {
  EXPECT_EQ(Printable("a\nb\x1b[0m\x7f \xc3\xa9"), "a\\x0ab\\x1b[0m\\x7f \xc3\xa9");
}

// A lone continuation byte, a byte that UTF-8 never has, a truncated character, an overlong '/', a
// surrogate, and a number above the last one.
TEST(Printable, WhatIsNotUtf8BecomesHex) {
  EXPECT_EQ(Printable("\x80|\xff|\xe2\x82"), "\\x80|\\xff|\\xe2\\x82");
  EXPECT_EQ(Printable("\xc0\xaf|\xed\xa0\x80"), "\\xc0\\xaf|\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
}

// Controls of Unicode, a soft hyphen, marks and overrides of direction, separators of lines, a byte
// order mark and a tag; not the characters beside them.
TEST(Printable, WhatIsNotSeenOrTurnsTheTextBecomesItsNumber) {
  EXPECT_EQ(Printable("\u0085|\u00ad|\u061c|\u200b|\u200f"),
            "\\u0085|\\u00ad|\\u061c|\\u200b|\\u200f");
  EXPECT_EQ(Printable("\u2028|\u202e|\u2066|\u2069|\ufeff|\U000e0041"),
            "\\u2028|\\u202e|\\u2066|\\u2069|\\ufeff|\\ue0041");
  for (const char* const text :
       {"\u00a0", "\u00ae", "\u061b", "\u200a", "\u2010", "\u2027", "\u202f", "\u2070", "\ufefe"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableMessage, KeepsBeginningAndEndOfALongOne) {
  EXPECT_EQ(PrintableMessage("a\nb"), "a\\x0ab");
  const std::string longest(300, 'x');
  EXPECT_EQ(PrintableMessage("a " + longest + " b"), "a " + longest + " b");
  EXPECT_EQ(PrintableMessage("a " + longest + "y b"),
            "a " + std::string(200, 'x') + "..." + std::string(99, 'x') + "y b");
  std::string words;
  for (int i = 0; i < 1000000; ++i) words += fmt::format("{:05} ", i % 100000);
  EXPECT_EQ(PrintableMessage(words.substr(0, 1800)), words.substr(0, 1800));
  EXPECT_EQ(PrintableMessage(words),
            words.substr(0, 1200) + "..." + words.substr(words.size() - 600));
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Printable("ab\xc3\xa9", 3), "ab...");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

}  // namespace
}  // namespace numsim
