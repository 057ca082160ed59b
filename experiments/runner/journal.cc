#include "experiments/runner/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "experiments/runner/json_error.h"
#include "numsim/base/error.h"
#include "numsim/io/durable.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim {

// Cells are stored as text, which gives the same numbers back.
template <typename J>
void to_json(J& json, const Cell& cell) {
  json = cell.Text();
}
template <typename J>
void from_json(const J& json, Cell& cell) {
  cell = json.template get<std::string>();
}

}  // namespace numsim

namespace numsim::experiments {
namespace {

using Json = nlohmann::ordered_json;

struct Content {
  std::vector<FinishedTrial> trials;
  size_t whole_bytes = 0;  // up to the end of the last whole line
};

std::string SystemMessage() { return std::generic_category().message(errno); }

// Returns the content of the file, "" when it does not exist.
std::string ReadBytes(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? ReadText(path) : "";
}

constexpr const char* kDigest = "sha256";
constexpr const char* kSeconds = "seconds";

// Parses one entry. Throws Json::exception when the line is not one, and Error if its digest is not
// that of its other fields.
FinishedTrial ParseLine(const std::string& line) {
  Json json = Json::parse(line);
  FinishedTrial finished;
  json.at("point").get_to(finished.trial);
  json.at("label").get_to(finished.label);
  json.at("commit").get_to(finished.commit);
  json.at("rows").get_to(finished.rows);
  finished.build = json.value("build", "");
  finished.processor = json.value("processor", "");
  finished.claims = json.value("claims", "");
  const std::string digest = json.value(kDigest, "");
  json.erase(kDigest);
  finished.seconds = json.value(kSeconds, 0.0);
  json.erase(kSeconds);
  if (Sha256OfText(json.dump()) != digest) {
    throw Error(digest.empty() ? "has no digest, as lines of older versions"
                               : "has been changed since it was written");
  }
  return finished;
}

Content ReadContent(const std::filesystem::path& path) {
  const std::string bytes = ReadBytes(path);
  Content content;
  while (content.whole_bytes < bytes.size()) {
    const size_t begin = content.whole_bytes;
    const size_t end = bytes.find('\n', begin);
    if (end == std::string::npos) break;  // The process was killed while it wrote this line.
    try {
      content.trials.push_back(ParseLine(bytes.substr(begin, end - begin)));
    } catch (const Json::exception& error) {
      if (end + 1 == bytes.size()) break;  // Torn by a crash of the machine, not of the process.
      throw Error::Format("{}:{}: expected a finished trial, found: {}",
                          path.string(),
                          content.trials.size() + 1,
                          PlainJsonMessage(error.what()));
    } catch (const Error& error) {
      throw Error::Format("{}:{}: {}; delete the line, and --resume runs its trial again",
                          path.string(),
                          content.trials.size() + 1,
                          error.what());
    }
    content.whole_bytes = end + 1;
  }
  return content;
}

bool WriteAll(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

std::string JournalName(int shard_index, int shard_count) {
  return fmt::format("{}-of-{}.jsonl", shard_index, shard_count);
}

std::vector<FinishedTrial> ReadJournal(const std::filesystem::path& path) {
  return ReadContent(path).trials;
}

Journal::Journal(const std::filesystem::path& path) : path_(path) {
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw Error::Format("{}: cannot be written: {}", path.string(), SystemMessage());
  try {
    // Any other failure means a file system without locks.
    if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw Error::Format("{}: another process is running this shard there", path.string());
    }
    if (ftruncate(file_, static_cast<off_t>(ReadContent(path).whole_bytes)) != 0) {
      throw Error::Format("{}: cannot be written: {}", path.string(), SystemMessage());
    }
    if (const std::error_code status = SyncNameOf(path)) {
      throw Error::Format("{}: cannot be written: {}", path.string(), status.message());
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::Append(const FinishedTrial& finished) { AppendLine(finished, /*sync=*/true); }

void Journal::Write(const FinishedTrial& finished) { AppendLine(finished, /*sync=*/false); }

void Journal::Sync() {
  if (const std::error_code status = SyncDescriptor(file_)) {
    throw Error::Format("{}: cannot be written: {}", path_.string(), status.message());
  }
}

void Journal::AppendLine(const FinishedTrial& finished, bool sync) {
  Json json;
  json["point"] = finished.trial;
  json["label"] = finished.label;
  json["commit"] = finished.commit;
  if (!finished.build.empty()) json["build"] = finished.build;
  if (!finished.processor.empty()) json["processor"] = finished.processor;
  if (!finished.claims.empty()) json["claims"] = finished.claims;
  json["rows"] = finished.rows;
  std::string line;
  try {
    json[kDigest] = Sha256OfText(json.dump());
    if (finished.seconds > 0) json[kSeconds] = finished.seconds;
    line = json.dump() + "\n";
  } catch (const Json::exception&) {  // Invalid UTF-8 is the only thing that dump rejects.
    throw Error::Format("{}: a label or cell is not valid UTF-8", path_.string());
  }
  const std::lock_guard lock(mutex_);
  const off_t end = lseek(file_, 0, SEEK_END);
  std::error_code status;
  if (!WriteAll(file_, line)) status = {errno, std::generic_category()};
  if (!status && sync) status = SyncDescriptor(file_);  // a trial that counts as done survives
  if (status) {
    const std::string reason = status.message();
    // Remove the partial line: threads that finish later append after it.
    if (end < 0 || ftruncate(file_, end) != 0) close(std::exchange(file_, -1));
    throw Error::Format("{}: cannot be written: {}", path_.string(), reason);
  }
}

}  // namespace numsim::experiments
