// Keeps processes that write to one directory apart, and clears away what killed ones left there.
#pragma once

#include <filesystem>
#include <string>

namespace numsim {

// A lock that one process at a time holds, as long as the object lives. The end of a process releases
// its locks, however it ends. On a file system without locks it does nothing.
class DirectoryLock {
 public:
  enum class IfHeld {
    kWait,   // until the other process releases it
    kThrow,  // Error "PLACE: another process is working there"
  };
  // Takes the lock of the file `path`, which exists as long as the lock is held, and after a crash.
  // Throws Error when the file cannot be created.
  DirectoryLock(const std::filesystem::path& path, IfHeld if_held);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  bool Lock(IfHeld if_held);

  std::filesystem::path path_;
  int file_ = -1;
};

// Returns the first part of the names of this process's unfinished files and folders: ".numsim-", then
// FileNamePartOf (process_name.h) and '-'. No process of any host has the same.
std::string TemporaryPrefix();

// Removes unfinished files and folders from the directory whose processes were of this host and have
// ended. Those of other hosts stay: whether they have ended cannot be seen from here. What cannot be
// removed stays.
void SweepTemporaries(const std::filesystem::path& directory);

}  // namespace numsim
