// The journal of finished trials: JSON lines, appended as each point finishes, so that a run that
// is killed loses nothing that was finished.
//
// One line: {"point": 3, "label": "normal k=4 seed=0", "commit": "4f1c…",
//            "rows": {"TABLE": [["cell", …], …]}}
//
// A killed process can leave an unfinished last line. It is the only damage that is passed over:
// that point counts as not run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/core/experiment.h"

namespace numsim::experiments {

struct FinishedTrial {
  size_t trial = 0;    // index in the experiment's list of points
  std::string label;   // Trial::label, to notice a journal of another list
  std::string commit;  // BuildCommit of the program that measured it
  Rows rows;
};

// Name of the journal of one shard: "0-of-3.jsonl".
std::string JournalName(int shard_index, int shard_count);

// The finished trials in the order of the file; none when there is no such file. Line i of the file
// (from 1) is element i - 1.
// Throws Error naming file and line for a line that is not an entry, unless it is the last one.
std::vector<FinishedTrial> ReadJournal(const std::filesystem::path& path);

// Appends to a journal. One process at a time.
class Journal {
 public:
  // Creates the file when there is none; cuts off an unfinished last line.
  // Throws Error when the file cannot be written, is corrupt, or another process is writing it.
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns when the line is handed to the operating system: it survives the end of this process.
  // Any thread may call it. Throws Error when the line cannot be written; the journal then holds
  // whole lines only.
  void Append(const FinishedTrial& finished);

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::mutex mutex_;
};

// Held by the process that changes what a result directory as a whole holds (start of a run,
// completion). Blocks until the others are done. Where the file system has no locks it does
// nothing; files then are still replaced in one step each.
class DirectoryLock {
 public:
  // Throws Error when the lock's file cannot be made in `directory`.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace numsim::experiments
