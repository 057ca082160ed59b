#include "numsim/config/internal/toml_text.h"

#include "numsim/config/config.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(TomlText, NonAsciiInStringsAndCommentsIsNotFound) {
  for (const std::string_view text : {"",
                                      "a = 1",
                                      "a = 'é'",
                                      "a = \"é\"",
                                      "\"é\" = 1",
                                      "a = 1 # é",
                                      "# é\na = 1",
                                      "a = '''é\né'''",
                                      "a = \"\"\"é \"x\" é\né\"\"\"",
                                      "a = \"\\\"é\"",
                                      "a = \"x\\\\\" # é",
                                      "a = '' # é",
                                      "a = ['x', 'é',\n  'é']\nb = 'é'",
                                      "a = { b = 'é', 'é' = 1 }",
                                      "['é']\r\n\t'é' = 2",
                                      "a = \"é"}) {
    EXPECT_EQ(FindNonAscii(text), kNone) << text;
  }
}

TEST(TomlText, NonAsciiElsewhereIsFound) {
  EXPECT_EQ(FindNonAscii("é"), 0u);
  EXPECT_EQ(FindNonAscii("ab\xFF"), 2u);
  EXPECT_EQ(FindNonAscii("a = é"), 4u);
  EXPECT_EQ(FindNonAscii("a = ''é"), 6u);
  EXPECT_EQ(FindNonAscii("'\\'é"), 3u);  // a literal string has no escapes
  EXPECT_EQ(FindNonAscii("\"\\\\\"é"), 4u);
  EXPECT_EQ(FindNonAscii("'''x''é'''é"), 11u);
  EXPECT_EQ(FindNonAscii("# x\né"), 4u);
  EXPECT_EQ(FindNonAscii("\"x\né"), 3u);     // a string ends with its line
  EXPECT_EQ(FindNonAscii("a = 5.'é'"), 7u);  // no string begins there
  EXPECT_EQ(FindNonAscii("a = 5 'é'"), 7u);
  EXPECT_EQ(FindNonAscii("a = '' 'é'"), 8u);
}

TEST(TomlText, ErrorsNameTheLine) {
  const auto error = [](std::string_view text) {
    return ErrorOf([&] { ParseTrainConfig(text, "x.toml", {}, {}); });
  };
  EXPECT_EQ(error("\xEF\xBB\xBF# é\n\n[é]\n"),
            "x.toml:3: expected ASCII outside of quotes and comments, and in a key after a dot");
  EXPECT_THAT(error("\n[.a]"), ::testing::StartsWith("x.toml:2: Error while parsing key"));
  EXPECT_EQ(error("\na" + std::string(10001, '.') + "b = 1"),
            "x.toml:2: a key of more than 8 parts");
}

TEST(TomlText, AnOverrideIsTextWithoutQuotes) {
  const TrainConfig config =
      ParseTrainConfig("", "x.toml", "/", {"data.kind=text", "data.path=/été.txt"});
  EXPECT_EQ(config.data.path, "/été.txt");
}

}  // namespace
}  // namespace numsim
