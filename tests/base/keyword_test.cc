#include "numsim/base/keyword.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace numsim {
namespace {

enum class Fruit { kApple, kPear, kPlum };
constexpr Keyword<Fruit> kFruits[] = {
    {"apple", Fruit::kApple}, {"pear", Fruit::kPear}, {"plum", Fruit::kPlum}};
constexpr Keyword<Fruit> kOnlyPear[] = {{"pear", Fruit::kPear}};

TEST(Keyword, TextAndValueAreInversesOfEachOther) {
  for (Fruit fruit : {Fruit::kApple, Fruit::kPear, Fruit::kPlum}) {
    EXPECT_EQ(ParseKeyword(kFruits, "fruit", KeywordToString(kFruits, fruit)), fruit);
  }
  EXPECT_EQ(KeywordToString(kFruits, Fruit::kPear), "pear");
}

TEST(ParseKeyword, NamesTheFieldTheTextAndEveryValidWord) {
  EXPECT_EQ(ErrorOf([] { ParseKeyword(kFruits, "fruit", "cherry"); }),
            "fruit 'cherry' is not one of apple, pear, plum");
  EXPECT_EQ(ErrorOf([] { ParseKeyword(kOnlyPear, "its fruit", ""); }),
            "its fruit '' is not one of pear");
}

TEST(ParseKeyword, SuggestsTheNearestWord) {
  EXPECT_EQ(ErrorOf([] { ParseKeyword(kFruits, "fruit", "plumb"); }),
            "fruit 'plumb' is not one of apple, pear, plum; did you mean plum?");
}

TEST(ParseKeyword, TakesWholeWordsInTheirOwnCase) {
  for (const char* text : {"Apple", "app", "apple ", " apple", "apple, pear"}) {
    EXPECT_THROW(ParseKeyword(kFruits, "fruit", text), Error) << text;
  }
}

TEST(KeywordDeathTest, AnEnumeratorWithoutANameIsABrokenContract) {
  EXPECT_DEATH(KeywordToString(kOnlyPear, Fruit::kPlum), "enumerator 2 without a name");
}

}  // namespace
}  // namespace numsim
