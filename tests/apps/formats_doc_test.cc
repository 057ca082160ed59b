// docs/formats.md shows the table that the program prints.
#include <cstdlib>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

class FormatsDoc : public ProgramTest {
 protected:
  // Expects the text between the marks of docs/formats.md to be what the words print.
  static void ExpectTable(const std::string& words, const std::string& printed) {
    const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    const std::string page = Bytes(std::filesystem::path(root) / "docs/formats.md");
    const std::string begin_mark = "<!-- table: numsim " + words + " -->\n";
    const std::string end_mark = "<!-- end -->";
    const size_t begin = page.find(begin_mark);
    ASSERT_NE(begin, std::string::npos);
    const size_t end = page.find(end_mark, begin);
    ASSERT_NE(end, std::string::npos);
    const size_t first = begin + begin_mark.size();
    EXPECT_EQ(page.substr(first, end - first), printed)
        << "put the output of `numsim " << words << "` between the marks of docs/formats.md";
  }
};

TEST_F(FormatsDoc, TableEqualsTheProgramsOutput) {
  for (const std::string words : {"formats --markdown", "formats --markdown --tables"}) {
    ExpectTable(words, Output(words));
  }
}

}  // namespace
}  // namespace numsim::apps
