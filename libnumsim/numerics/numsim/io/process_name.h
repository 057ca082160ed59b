// Names a process among all processes of all hosts that share a file system, and says whether it has
// ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

struct ProcessName {
  std::string host;
  std::string boot;   // of the host: another one after each start
  std::string space;  // of process numbers: containers have their own
  int64_t process = 0;
  std::string start;  // of the process, in ticks since the boot

  bool operator==(const ProcessName&) const = default;
};

// Returns the name of this process.
ProcessName ThisProcess();

enum class Life { kEnded, kRunning, kUnknown };

// Returns whether a process has ended. It is kUnknown for a process of another host, or of another space
// of process numbers of this host, which cannot be seen from here.
Life LifeOf(const ProcessName& name);

// Returns a part of file names that differs between the processes of all hosts:
// HOST-BOOT-SPACE-PROCESS-START, at most 60 characters. The first three are shortened digests.
std::string FileNamePartOf(const ProcessName& name);

// Returns whether `text` begins with the FileNamePartOf and '-' of a process of this host that has
// ended.
bool BeginsWithEndedProcess(std::string_view text);

}  // namespace numsim
