#include "experiments/sweep/sweep_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "numsim/base/error.h"

namespace numsim::experiments::sweep {

// The file stays: who opened it just before would otherwise lock one without a name.
SweepLock::SweepLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw Error::Format(
        "{}: cannot be written: {}", path.string(), std::generic_category().message(errno));
  }
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // a file system without locks
    ::close(file_);
    throw Error::Format("{}: another sweep is starting there, or tasks are still running",
                        folder.string());
  }
}

SweepLock::~SweepLock() {
  if (file_ >= 0) ::close(file_);
}

SweepLock::SweepLock(SweepLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

void SweepLock::PassOn() const {
  if (file_ == kLockDescriptor) {
    ::fcntl(file_, F_SETFD, 0);
  } else {
    ::dup2(file_, kLockDescriptor);
  }
}

}  // namespace numsim::experiments::sweep
