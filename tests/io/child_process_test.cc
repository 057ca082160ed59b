#include "numsim/io/shared/child_process.h"

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using RunProgramTest = IoTest;

TEST_F(RunProgramTest, ArgumentsAreNotReadByAShell) {
  const auto result = RunProgram({"printf", "%s|", "$HOME", "a b", "`id`", ";"}, Directory(), {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->output, "$HOME|a b|`id`|;|");
}

TEST_F(RunProgramTest, DirectoryEnvironmentAndBothOutputsAreThoseAskedFor) {
  const auto result = RunProgram(
      {"sh", "-c", "pwd -P; echo $A; echo error >&2; cat; exit 3"}, Directory(), {{"A", "x=1"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, std::filesystem::canonical(Directory()).string() + "\nx=1\nerror\n");
}

TEST_F(RunProgramTest, SignalsGiveTheShellsCode) {
  const auto result = RunProgram({"sh", "-c", "kill -9 $$"}, Directory(), {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 128 + 9);
}

TEST_F(RunProgramTest, MissingProgramIsNoResultAndMissingDirectoryAnError) {
  EXPECT_FALSE(RunProgram({"numsim-no-such-program"}, Directory(), {}));
  ExpectMessage(ErrorOf([&] { RunProgram({"true"}, Path("no"), {}); }), {"true", "cannot run"});
}

}  // namespace
}  // namespace numsim
