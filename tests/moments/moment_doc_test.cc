// docs/moments.md: its table of bytes is the library's, and its examples of formats parse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "numsim/moments/moment_store.h"

namespace numsim::moment_test {
namespace {

std::string Page() {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  if (root == nullptr) return "NUMSIM_SOURCE_DIR is not set";
  std::ifstream file(std::filesystem::path(root) / "docs/moments.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(MomentsPage, TableOfBytesIsTheLibrarys) {
  constexpr size_t kElements = 1000000;
  const std::string page = Page();
  const size_t mark = page.find("<!-- table: moment bytes -->");
  ASSERT_NE(mark, std::string::npos) << page.substr(0, 80);
  std::istringstream lines(page.substr(mark));
  std::string line;
  for (int i = 0; i < 3; ++i) std::getline(lines, line);  // mark, head, rule
  int rows = 0;
  for (; std::getline(lines, line) && line.starts_with("| `"); ++rows) {
    const std::string format = line.substr(3, line.find('`', 3) - 3);
    const double bytes = MomentBytes(ParseMomentFormat(format), kElements) / kElements;
    EXPECT_EQ(line, fmt::format("| `{}` | {} |", format, bytes));
  }
  EXPECT_GE(rows, 10);
}

// Formats of the text form, at the top of the page, and of the table of losses.
TEST(MomentsPage, NamesFormatsThatParse) {
  const std::string page = Page();
  const size_t begin = page.find("\n```\n") + 5;
  std::istringstream words(page.substr(begin, page.find("\n```\n", begin) - begin));
  int formats = 0;
  for (std::string word; words >> word;) {
    if (word.find('[') != std::string::npos) continue;  // the grammar
    EXPECT_NO_THROW(ParseMomentFormat(word)) << word;
    ++formats;
  }
  EXPECT_GE(formats, 7);
  std::istringstream lines(page.substr(page.find("## What is lost")));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string format = line.substr(3, line.find('`', 3) - 3);
    EXPECT_NO_THROW(ParseMomentFormat(format)) << format;
  }
}

}  // namespace
}  // namespace numsim::moment_test
