#include "numsim/io/process_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "numsim/io/shared/sha256.h"

namespace numsim {
namespace {

// Returns the first line of a file of /proc, "" if there is none.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the start of a process in ticks since the boot, "" if there is none.
std::string StartOf(int64_t process) {
  const std::string line = FirstLine(fmt::format("/proc/{}/stat", process));
  const size_t name_end = line.rfind(')');  // the name may hold blanks
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  constexpr int kStart = 22 - 2;  // fields after the name begin with the third
  std::string field;
  for (int i = 0; i < kStart; ++i) fields >> field;
  return field;
}

std::string HostName() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// Returns the life of a process, whose name is written as that of this process is in `here`.
Life LifeBeside(const ProcessName& name, const ProcessName& here) {
  if (name.host != here.host) return Life::kUnknown;
  if (name.boot != here.boot) return Life::kEnded;  // the host has been started again
  if (name.space != here.space) return Life::kUnknown;
  // The number may belong to a later process.
  return StartOf(name.process) == name.start ? Life::kRunning : Life::kEnded;
}

std::string Shortened(std::string_view text) {
  constexpr size_t kDigits = 8;
  Sha256 digest;
  digest.Add(text);
  return digest.Hex().substr(0, kDigits);
}

// Returns the name with digests, as names of files hold it.
ProcessName WithDigests(ProcessName name) {
  for (std::string* const text : {&name.host, &name.boot, &name.space}) *text = Shortened(*text);
  return name;
}

}  // namespace

ProcessName ThisProcess() {
  std::error_code ignored;
  ProcessName name;
  name.host = HostName();
  name.boot = FirstLine("/proc/sys/kernel/random/boot_id");
  name.space = std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
  name.process = ::getpid();
  name.start = StartOf(name.process);
  return name;
}

Life LifeOf(const ProcessName& name) { return LifeBeside(name, ThisProcess()); }

std::string FileNamePartOf(const ProcessName& name) {
  const ProcessName digests = WithDigests(name);
  return fmt::format(
      "{}-{}-{}-{}-{}", digests.host, digests.boot, digests.space, digests.process, digests.start);
}

bool BeginsWithEndedProcess(std::string_view text) {
  constexpr size_t kFields = 5;
  std::array<std::string, kFields> fields;
  for (std::string& field : fields) {
    const size_t end = text.find('-');
    if (end == std::string_view::npos || end == 0) return false;
    field = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  ProcessName name{.host = fields[0], .boot = fields[1], .space = fields[2], .start = fields[4]};
  const char* const end = fields[3].data() + fields[3].size();
  const auto [rest, status] = std::from_chars(fields[3].data(), end, name.process);
  if (status != std::errc() || rest != end || name.process <= 0) return false;
  return LifeBeside(name, WithDigests(ThisProcess())) == Life::kEnded;
}

}  // namespace numsim
