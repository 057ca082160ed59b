// docs/formats.md shows the table that the program prints.
#include <cstdlib>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

class FormatsDoc : public ProgramTest {};

TEST_F(FormatsDoc, TableEqualsTheProgramsOutput) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const std::string page = Bytes(std::filesystem::path(root) / "docs/formats.md");
  const std::string begin_mark = "<!-- table: numsim formats --markdown -->\n";
  const std::string end_mark = "<!-- end -->";
  const size_t begin = page.find(begin_mark);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find(end_mark, begin);
  ASSERT_NE(end, std::string::npos);
  const size_t first = begin + begin_mark.size();
  EXPECT_EQ(page.substr(first, end - first), Output("formats --markdown"))
      << "put the output of `numsim formats --markdown` between the marks of docs/formats.md";
}

}  // namespace
}  // namespace numsim::apps
