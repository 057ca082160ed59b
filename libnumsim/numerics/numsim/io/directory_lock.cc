#include "numsim/io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/io/process_name.h"

namespace numsim {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".numsim-";

// Returns whether `path` is still the name of the open file.
bool IsNameOf(const fs::path& path, int file) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& path, IfHeld if_held) : path_(path) {
  // The holder removes the file. Who waited for it meanwhile has locked a file without a name.
  while (file_ < 0 || !IsNameOf(path, file_)) {
    if (file_ >= 0) ::close(file_);
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) {
      throw Error::Format(
          "{}: cannot be written: {}", path.string(), std::generic_category().message(errno));
    }
    if (!Lock(if_held)) return;  // a file system without locks
  }
}

// Returns false if the file system has no locks.
bool DirectoryLock::Lock(IfHeld if_held) {
  const int operation = LOCK_EX | (if_held == IfHeld::kThrow ? LOCK_NB : 0);
  while (::flock(file_, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    ::close(file_);
    throw Error::Format("{}: another process is working there", path_.parent_path().string());
  }
  return true;
}

DirectoryLock::~DirectoryLock() {
  if (IsNameOf(path_, file_)) ::unlink(path_.c_str());
  ::close(file_);
}

std::string TemporaryPrefix() {
  // Kept, since every file that is written asks for it; a fork has another name.
  thread_local pid_t process = 0;
  thread_local std::string prefix;
  if (process != ::getpid()) {
    process = ::getpid();
    prefix = fmt::format("{}{}-", kPrefix, FileNamePartOf(ThisProcess()));
  }
  return prefix;
}

void SweepTemporaries(const fs::path& directory) {
  std::vector<fs::path> left;
  std::error_code status;
  fs::directory_iterator entry(directory, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kPrefix) && BeginsWithEndedProcess(name.substr(kPrefix.size()))) {
      left.push_back(entry->path());
    }
  }
  for (const fs::path& path : left) fs::remove_all(path, status);
}

}  // namespace numsim
