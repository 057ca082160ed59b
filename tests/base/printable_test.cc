#include "numsim/base/printable.h"

#include <gtest/gtest.h>

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

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Printable("ab\xc3\xa9", 3), "ab...");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

}  // namespace
}  // namespace numsim
