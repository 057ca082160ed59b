// docs/disagreements.md is what its script makes of the program's output.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

class DisagreementsDoc : public ProgramTest {};

TEST_F(DisagreementsDoc, IsTheOutputOfItsScript) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  const char* const program = std::getenv("NUMSIM_PROGRAM");
  ASSERT_NE(root, nullptr);
  ASSERT_NE(program, nullptr);
  const std::filesystem::path docs = std::filesystem::path(root) / "docs";
  const std::filesystem::path made = Directory() / "made.md";
  const std::string line = "bash '" + (docs / "disagreements.sh").string() + "' '" + program +
                           "' >'" + made.string() + "'";
  const int status = std::system(line.c_str());
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << line;
  EXPECT_EQ(Bytes(docs / "disagreements.md"), Bytes(made))
      << "run docs/disagreements.sh PROGRAM > docs/disagreements.md";
}

}  // namespace
}  // namespace numsim::apps
