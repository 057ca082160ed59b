#include "numsim/io/atomic_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;
using AtomicFileTest = IoTest;

TEST_F(AtomicFileTest, WritesTheBytesAndLeavesNothingElse) {
  const std::string bytes("a\0b\n", 4);
  WriteFileAtomically(Path("x"), bytes);
  EXPECT_EQ(Bytes(Path("x")), bytes);
  WriteFileAtomically(Path("x"), "");
  EXPECT_EQ(Bytes(Path("x")), "");
  EXPECT_EQ(Names(), std::vector<std::string>{"x"});
}

TEST_F(AtomicFileTest, OldContentStaysUntilCommit) {
  Put("x", "old");
  AtomicFile file(Path("x"));
  file.Write("new, ");
  file.Write("in two parts");
  EXPECT_EQ(Bytes(Path("x")), "old");
  file.Commit();
  EXPECT_EQ(Bytes(Path("x")), "new, in two parts");
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeft) {
  {
    AtomicFile file(Path("x"));
    file.Write("half");
    EXPECT_EQ(Names().size(), 1u);
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(AtomicFileTest, ModeFollowsTheUmask) {
  const mode_t old = ::umask(027);
  WriteFileAtomically(Path("x"), "");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat(Path("x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, DirectoryDeviceAndMissingParentAreErrors) {
  const auto error_for = [](const fs::path& path) {
    return ErrorOf([&] { WriteFileAtomically(path, "x"); });
  };
  ExpectMessage(error_for(Directory()), {Directory().string(), "is a directory"});
  ExpectMessage(error_for("/dev/null"), {"/dev/null", "not a regular file"});
  ExpectMessage(error_for(Path("no/x")), {Path("no/x").string(), "No such file or directory"});
  Put("file", "");
  ExpectMessage(error_for(Path("file/x")), {Path("file/x").string(), "Not a directory"});
  ExpectMessage(error_for(Path(std::string(300, 'n'))), {"File name too long"});
  EXPECT_EQ(Names(), std::vector<std::string>{"file"});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFileTest, LinkIsFollowedAndStays) {
  Put("target", "old");
  fs::create_symlink("target", Path("link"));
  WriteFileAtomically(Path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Bytes(Path("target")), "new");
  fs::create_symlink("nowhere", Path("dangling"));
  ExpectMessage(ErrorOf([&] { WriteFileAtomically(Path("dangling"), ""); }), {"leads nowhere"});
}

// The system refuses to write past a limit on file sizes as it refuses on a full disk.
TEST_F(AtomicFileTest, FailedWriteRemovesTheTemporaryAndKeepsTheOldFile) {
  Put("x", "old");
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = old_limit;
  limit.rlim_cur = 1 << 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message =
      ErrorOf([&] { WriteFileAtomically(Path("x"), std::string(1 << 20, 'n')); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  ExpectMessage(message, {Path("x").string(), "cannot write", "File too large"});
  EXPECT_EQ(Bytes(Path("x")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace numsim
