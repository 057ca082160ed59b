#include "experiments/runner/shard_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "experiments/runner/result_directory.h"
#include "numsim/base/error.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/durable.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"
#include "numsim/io/process_name.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kExtension = ".owner";

// A process, as an owner file names it. All fields empty: a file that names none.
struct Owner {
  ProcessName name;
  std::string since;  // UTC, for people

  bool operator==(const Owner&) const = default;
};

bool IsThisProcess(const Owner& owner) { return owner.name == ThisProcess(); }

Owner Read(const fs::path& path) {
  constexpr uintmax_t kLongest = 1 << 14;  // bytes; five names of at most 255
  try {
    std::error_code status;
    if (fs::file_size(path, status) > kLongest || status) return {};
    const Json json = Json::parse(ReadText(path));
    return {.name = {.host = json.at("host"),
                     .boot = json.at("boot"),
                     .space = json.at("space"),
                     .process = json.at("process"),
                     .start = json.at("start")},
            .since = json.at("since")};
  } catch (const Json::exception&) {
    return {};
  } catch (const Error&) {  // removed meanwhile
    return {};
  }
}

std::string ToText(const Owner& owner) {
  Json json;
  json["host"] = owner.name.host;
  json["boot"] = owner.name.boot;
  json["space"] = owner.name.space;
  json["process"] = owner.name.process;
  json["start"] = owner.name.start;
  json["since"] = owner.since;
  return json.dump(2) + "\n";
}

// Whoever wrote a file that names no process may be alive, on another host.
Life LifeOf(const Owner& owner) {
  return owner.name.host.empty() ? Life::kUnknown : numsim::LifeOf(owner.name);
}

[[noreturn]] void Refuse(const fs::path& path, const Owner& owner, Life life) {
  const std::string who = owner.name.host.empty() ? "the file does not say which"
                                                  : fmt::format("process {} of host {}, since {}",
                                                                owner.name.process,
                                                                owner.name.host,
                                                                owner.since);
  throw Error::Format(
      "{}: another process is running trials of this shard: {}{}",
      path.string(),
      who,
      life == Life::kRunning ? "" : "; if it has ended, --take-over continues in its place");
}

// Writes a new file. Returns false and sets errno if that fails.
bool Write(const fs::path& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                 !SyncDescriptor(file);
  // Network file systems report a full disk only here.
  if (::close(file) != 0) written = false;
  const int reason = errno;
  if (!written) ::unlink(path.c_str());
  errno = reason;
  return written;
}

// Gives a file a second name, which must be new. Returns false and sets errno if that fails.
bool Link(const fs::path& path, const fs::path& name) {
  if (::link(path.c_str(), name.c_str()) == 0) return true;
  const int reason = errno;
  struct stat found {};
  // Over a network, a reply that was lost makes a link that succeeded look like one that exists.
  const bool succeeded = ::stat(path.c_str(), &found) == 0 && found.st_nlink == 2;
  errno = reason;
  return succeeded;
}

// Creates the file with that text. Returns false if it exists. Where files have links, the name appears
// with the whole text, whenever the power is lost.
bool Create(const fs::path& path, const std::string& text) {
  const fs::path aside = path.parent_path() / (TemporaryPrefix() + path.filename().string());
  bool created = Write(aside, text);
  if (created) {
    created = Link(aside, path);
    const int reason = errno;
    ::unlink(aside.c_str());
    errno = reason;
    const bool has_links = created || (errno != EPERM && errno != ENOTSUP && errno != ENOSYS);
    if (!has_links) created = Write(path, text);
  }
  if (created || errno == EEXIST) return created;
  throw Error::Format(
      "{}: cannot be written: {}", path.string(), std::generic_category().message(errno));
}

// Removes the file of an owner that was found to be gone; not that of a process that has meanwhile
// taken its place.
void RemoveStale(const fs::path& path, const Owner& stale) {
  const fs::path aside = path.parent_path() / (TemporaryPrefix() + path.filename().string());
  if (std::rename(path.c_str(), aside.c_str()) != 0) return;  // another process was faster
  const bool same = Read(aside) == stale;
  if (!same && ::link(aside.c_str(), path.c_str()) != 0) std::rename(aside.c_str(), path.c_str());
  ::unlink(aside.c_str());
}

// Removes the file if its owner has ended. Throws Error if the owner may be running.
void Settle(const fs::path& path, bool take_over) {
  const Owner owner = Read(path);
  const Life life = LifeOf(owner);
  if (life == Life::kRunning || (life == Life::kUnknown && !take_over)) {
    if (Exists(path)) Refuse(path, owner, life);
    return;  // it has just ended
  }
  RemoveStale(path, owner);
}

// Returns the owner files of a directory.
std::vector<fs::path> OwnerFiles(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code status;
  fs::directory_iterator entry(directory / kJournalFolder, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    if (entry->path().extension() == kExtension) files.push_back(entry->path());
  }
  return files;
}

}  // namespace

bool SharesTrials(int index, int count, int other_index, int other_count) {
  return count != other_count || index == other_index;
}

ShardOwner::ShardOwner(const fs::path& directory, int index, int count, bool take_over)
    : path_(directory / kJournalFolder / fmt::format("{}-of-{}{}", index, count, kExtension)) {
  const std::string text = ToText({ThisProcess(), UtcNow()});
  constexpr int kAttempts = 100;
  for (int attempt = 0; !Create(path_, text); ++attempt) {
    if (attempt == kAttempts) Refuse(path_, Read(path_), Life::kUnknown);
    Settle(path_, take_over);
  }
  // Only now the shards of other counts: of two processes that start together at least one sees the
  // other.
  try {
    for (const fs::path& file : OwnerFiles(directory)) {
      int other_index = 0, other_count = 0;
      const std::string name = file.stem().string();
      if (file == path_ || std::sscanf(name.c_str(), "%d-of-%d", &other_index, &other_count) != 2 ||
          other_count < 1 || !SharesTrials(index, count, other_index, other_count)) {
        continue;
      }
      Settle(file, take_over);
    }
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

ShardOwner::~ShardOwner() {
  if (IsThisProcess(Read(path_))) RemoveFile(path_);
}

void ReleaseShardsOfThisProcess(const fs::path& directory) {
  for (const fs::path& file : OwnerFiles(directory)) {
    if (IsThisProcess(Read(file))) RemoveFile(file);
  }
}

}  // namespace numsim::experiments
