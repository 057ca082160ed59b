// Keeps apart processes that write or run the sweep of one directory.
#pragma once

#include <filesystem>

namespace numsim::experiments::sweep {

// The file of the lock as launch.sh knows it, a descriptor that its tasks inherit.
inline constexpr int kLockDescriptor = 9;

// The lock on the file sweep/lock. This process holds it first, then the launch.sh that it turns into
// (exec), then the tasks, which inherit it; it is free when all of them have ended. On a file system
// without locks it does nothing.
class SweepLock {
 public:
  // Takes it. Throws Error if another process has it or the file cannot be written.
  explicit SweepLock(const std::filesystem::path& folder);
  ~SweepLock();
  SweepLock(SweepLock&& other) noexcept;
  SweepLock& operator=(SweepLock&&) = delete;

  // Makes it file 9 of the program that this process becomes.
  void PassOn() const;

 private:
  int file_ = -1;
};

}  // namespace numsim::experiments::sweep
