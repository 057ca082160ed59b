#include "numsim/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/durable.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

// Largest size per write call; Linux writes at most about twice this much.
constexpr size_t kLargestWrite = size_t{1} << 30;

// Returns the file to replace: `path`, or the target of a symbolic link. Refuses directories and
// special files: a rename by root would turn /dev/null into a regular file.
fs::path ResolveTarget(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw Error::Format("{}: cannot write: is a directory, expected a file name", path.string());
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error::Format("{}: cannot write: exists and is not a regular file", path.string());
  }
  if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
  fs::path target = fs::canonical(path, error);
  if (error)
    throw Error::Format("{}: cannot write: the symbolic link leads nowhere", path.string());
  return target;
}

// Returns a name that is unique across and within processes. Its length does not depend on the
// target's name, which may be as long as the file system allows.
fs::path TemporaryName(const fs::path& directory) {
  static std::atomic<uint64_t> counter{0};
  return directory / fmt::format("{}{}.tmp", TemporaryPrefix(), counter.fetch_add(1));
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(ResolveTarget(path)) {
  // The name is of this process alone, but a file that it may not remove can have it. The mode is that
  // of any new file, restricted by the umask.
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const fs::path name = TemporaryName(target_.parent_path());
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) break;
  }
  Fail("cannot create a file in its directory", errno);
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Write(std::span<const std::byte> bytes) {
  NUMSIM_REQUIRE(descriptor_ >= 0, "{}: written after Commit", path_.string());
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("cannot write", errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }

void AtomicFile::Commit() {
  NUMSIM_REQUIRE(descriptor_ >= 0, "{}: committed twice", path_.string());
  // The bytes first: after a loss of power the new name must not lead to an empty file.
  if (const std::error_code status = SyncDescriptor(descriptor_)) {
    Fail("cannot write", status.value());
  }
  // Network file systems report a full disk only here.
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) Fail("cannot write", errno);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) Fail("cannot rename onto", errno);
  temporary_.clear();
  if (const std::error_code status = SyncNameOf(target_)) {
    Fail("cannot sync its directory", status.value());
  }
}

void AtomicFile::Fail(std::string_view action, int error_number) {
  Discard();
  throw Error::Format(
      "{}: {}: {}", path_.string(), action, std::generic_category().message(error_number));
}

void AtomicFile::Discard() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void WriteFileAtomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Write(bytes);
  file.Commit();
}

}  // namespace numsim
