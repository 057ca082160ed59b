#include "numsim/base/error.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace numsim {
namespace {

TEST(Error, CarriesItsFormattedMessage) {
  const Error error = Error::Format("{}: {} rows, expected {}", "w.npy", 3, 4);
  EXPECT_STREQ(error.what(), "w.npy: 3 rows, expected 4");
  EXPECT_STREQ(Error("100 %, {}").what(), "100 %, {}");
}

TEST(Error, IsOneLineThatShowsControlCharacters) {
  EXPECT_STREQ(Error("a\nb\x1b[0m\u202e\xff").what(), "a\\x0ab\\x1b[0m\\u202e\\xff");
  EXPECT_EQ(std::string(Error(std::string(100000, 'x')).what()).size(), 303u);
}

TEST(Error, IsCaughtAsARuntimeError) {
  try {
    throw Error::Format("field {}", std::string("x"));
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "field x");
  }
}

TEST(Check, PassesWithoutEvaluatingItsValues) {
  int evaluated = 0;
  NUMSIM_CHECK(2 > 1, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, IsOneStatement) {
  bool other = false;
  if (false)
    NUMSIM_CHECK(false, "never reached");
  else
    other = true;
  EXPECT_TRUE(other);
}

TEST(CheckDeathTest, AFailureNamesFileLineConditionAndValues) {
  const int rows = 3;
  EXPECT_DEATH(NUMSIM_CHECK(rows == 4, "rows = {}, cols = {}", rows, 5),
               "error_test\\.cc:[0-9]+: broken contract: rows == 4 \\(rows = 3, cols = 5\\)");
}

}  // namespace
}  // namespace numsim
