#include "numsim/io/durable.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace numsim {
namespace {

namespace fs = std::filesystem;

std::error_code LastError() { return {errno, std::generic_category()}; }

}  // namespace

std::error_code SyncDescriptor(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOTSUP || errno == EROFS) return {};
    return LastError();
  }
  return {};
}

std::error_code SyncPath(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const std::error_code status = LastError();
    // A directory that one may write to but not list: its names cannot be synced.
    std::error_code ignored;
    const bool unlisted = status == std::errc::permission_denied && fs::is_directory(path, ignored);
    return unlisted ? std::error_code() : status;
  }
  const std::error_code status = SyncDescriptor(descriptor);
  ::close(descriptor);
  return status;
}

std::error_code SyncNameOf(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return SyncPath(parent.empty() ? fs::path(".") : parent);
}

std::error_code MakeDirectories(const fs::path& directory) {
  std::error_code status;
  if (directory.empty() || fs::is_directory(directory, status)) return {};
  // "a/b/" has the parent "a/b".
  const fs::path path = directory.has_filename() ? directory : directory.parent_path();
  status = MakeDirectories(path.parent_path());
  if (status) return status;
  const bool made = fs::create_directory(path, status);
  if (status) return status;
  return made ? SyncNameOf(path) : status;
}

std::error_code RemoveFile(const fs::path& path) {
  std::error_code status;
  const bool removed = fs::remove(path, status);
  if (status || !removed) return status;
  return SyncNameOf(path);
}

}  // namespace numsim
