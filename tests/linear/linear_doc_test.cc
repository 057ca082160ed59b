// docs/linear.md shows the table of the kinds as the library makes it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "numsim/linear/internal/linear_table.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim {
namespace {

std::string DocsPage(const char* name) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  if (root == nullptr) return "NUMSIM_SOURCE_DIR is not set";
  std::ifstream file(std::filesystem::path(root) / "docs" / name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(LinearDoc, TableEqualsTheLibrarys) {
  const std::string page = DocsPage("linear.md");
  const std::string begin_mark = "<!-- table: LinearTable() -->\n";
  const std::string end_mark = "<!-- end -->";
  const size_t begin = page.find(begin_mark);
  ASSERT_NE(begin, std::string::npos) << page.substr(0, 80);
  const size_t end = page.find(end_mark, begin);
  ASSERT_NE(end, std::string::npos);
  const size_t first = begin + begin_mark.size();
  EXPECT_EQ(page.substr(first, end - first), LinearTable())
      << "put this table between the marks of docs/linear.md";
}

TEST(LinearDoc, TableHasARowForEveryKind) {
  const std::string table = LinearTable();
  for (const LinearKind& kind : LinearKinds()) {
    EXPECT_NE(table.find("\n| `" + std::string(kind.name) + "` | "), std::string::npos)
        << kind.name;
  }
}

}  // namespace
}  // namespace numsim
