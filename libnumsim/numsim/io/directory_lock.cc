#include "numsim/io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>
#include <system_error>
#include <vector>

#include "numsim/base/error.h"

namespace numsim {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".numsim-";

// Returns whether the name begins with ".numsim-PID-", where no process has that number.
bool IsOfEndedProcess(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  const char* const end = name.data() + name.size();
  pid_t process = 0;
  const auto [rest, status] = std::from_chars(name.data() + kPrefix.size(), end, process);
  if (status != std::errc() || process <= 0 || rest == end || *rest != '-') return false;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

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

std::string TemporaryPrefix() { return fmt::format("{}{}-", kPrefix, ::getpid()); }

void SweepTemporaries(const fs::path& directory) {
  std::vector<fs::path> left;
  std::error_code status;
  fs::directory_iterator entry(directory, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    if (IsOfEndedProcess(entry->path().filename().string())) left.push_back(entry->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, status);
}

}  // namespace numsim
