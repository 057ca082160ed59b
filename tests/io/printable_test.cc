#include "numsim/io/shared/printable.h"

#include <gtest/gtest.h>

namespace numsim {
namespace {

TEST(Printable, ControlCharactersBecomeHexAndUtf8Stays) {
  EXPECT_EQ(Printable("a\nb\x1b[0m\x7f \xc3\xa9"), "a\\x0ab\\x1b[0m\\x7f \xc3\xa9");
}

TEST(Printable, LongTextIsCut) {
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

}  // namespace
}  // namespace numsim
