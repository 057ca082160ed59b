// That syncs happen when they must is tested by tests/tools/power_loss_campaign.
#include "numsim/io/durable.h"

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;
using DurableTest = IoTest;

TEST_F(DurableTest, DirectoriesAreMadeWithTheirParents) {
  EXPECT_FALSE(MakeDirectories(Path("a/b/c")));
  EXPECT_TRUE(fs::is_directory(Path("a/b/c")));
  EXPECT_FALSE(MakeDirectories(Path("a/b/c")));
  EXPECT_FALSE(MakeDirectories(Path("d/e/")));
  EXPECT_TRUE(fs::is_directory(Path("d/e")));
  EXPECT_FALSE(MakeDirectories(Path("f/../g")));
  EXPECT_TRUE(fs::is_directory(Path("g")));
}

TEST_F(DurableTest, RelativeDirectoriesAreMadeInTheCurrentOne) {
  const fs::path before = fs::current_path();
  fs::current_path(Directory());
  EXPECT_FALSE(MakeDirectories("relative/inner"));
  EXPECT_FALSE(MakeDirectories(""));
  EXPECT_FALSE(MakeDirectories("."));
  fs::current_path(before);
  EXPECT_TRUE(fs::is_directory(Path("relative/inner")));
}

TEST_F(DurableTest, AFileInTheWayIsAnError) {
  Put("file", "");
  EXPECT_EQ(MakeDirectories(Path("file/inner")), std::errc::file_exists);
  EXPECT_EQ(MakeDirectories(Path("file")), std::errc::file_exists);
}

TEST_F(DurableTest, RemovesAFileThatMayBeMissing) {
  Put("x", "");
  EXPECT_FALSE(RemoveFile(Path("x")));
  EXPECT_TRUE(Names().empty());
  EXPECT_FALSE(RemoveFile(Path("x")));
}

TEST_F(DurableTest, SyncsFilesAndDirectories) {
  Put("x", "bytes");
  EXPECT_FALSE(SyncPath(Path("x")));
  EXPECT_FALSE(SyncPath(Directory()));
  EXPECT_EQ(SyncPath(Path("no")), std::errc::no_such_file_or_directory);
  EXPECT_EQ(SyncDescriptor(-1), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace numsim
