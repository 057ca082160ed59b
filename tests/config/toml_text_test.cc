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

TEST(TomlText, TextWithNulIsRefused) {
  const auto error = [](std::string_view text) {
    return ErrorOf([&] { ParseTrainConfig(text, "x.toml", {}, {}); });
  };
  constexpr const char* kMessage =
      "x.toml:2: text with the character U+0000, which numsim does not take";
  EXPECT_EQ(error("[data]\npath = \"nul/a\\u0000b\""), kMessage);
  EXPECT_EQ(error("[[linear.override]]\nlayers = \"\\u0000\""), kMessage);
  EXPECT_EQ(error("\nx = ['a', \"b\\u0000\"]"), kMessage);
  EXPECT_EQ(ErrorOf([] { ParseTrainConfig("", "x.toml", {}, {"data.path=\"a\\u0000b\""}); }),
            "--set:1: text with the character U+0000, which numsim does not take");
}

TEST(TomlText, APartOfAKeyInQuotesIsNotTakenForSeveralOrNone) {
  const auto error = [](std::string_view text) {
    return ErrorOf([&] { ParseTrainConfig(text, "x.toml", {}, {}); });
  };
  const auto message = [](std::string_view line, std::string_view part) {
    return fmt::format(
        "x.toml:{}: '{}' in quotes is one part of a key; expected a name without dots", line, part);
  };
  EXPECT_EQ(error("\"train.steps\" = 5"), message("1", "train.steps"));
  EXPECT_EQ(error("\n'train.steps' = 5"), message("2", "train.steps"));
  EXPECT_EQ(error("[\"linear.all\"]\nkind = 'mx'"), message("1", "linear.all"));
  EXPECT_EQ(error("train = {'a.b' = 5}"), message("1", "a.b"));
  EXPECT_EQ(error("''.train.steps = 5"), message("1", ""));
  EXPECT_EQ(error("train.''.steps = 5"), message("1", ""));
  EXPECT_EQ(ParseTrainConfig("\"train\".'steps' = 5", "x.toml", {}, {}).train.steps, 5u);
}

// 5 MB in less than a second.
TEST(TomlText, AnUnknownKeyOfAnyLengthIsAShortMessage) {
  const std::string key(5000000, 'k');
  const std::string message = ErrorOf([&] { ParseTrainConfig(key + " = 1", "x.toml", {}, {}); });
  EXPECT_LT(message.size(), 3000u);
  EXPECT_THAT(message, ::testing::StartsWith("x.toml:1: kkk"));
}

TEST(TomlText, AnOverrideIsTextWithoutQuotes) {
  const TrainConfig config =
      ParseTrainConfig("", "x.toml", "/", {"data.kind=text", "data.path=/été.txt"});
  EXPECT_EQ(config.data.path, "/été.txt");
}

}  // namespace
}  // namespace numsim
