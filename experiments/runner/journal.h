// The journal of finished trials: JSON lines, one appended as each trial finishes, so that a run
// that is killed loses no finished trial.
//
// One line: {"point": 3, "label": "normal k=4 seed=0", "commit": "4f1c…",
//            "build": "GNU 12.2.0 Release", "processor": "…, avx2", "rows": {"TABLE": [["cell", …], …]},
//            "sha256": "5e8a…", "seconds": 1.25}; of an experiment that is a file also "claims": "90ab…"
// The digest is that of the line without it and without the seconds: it is the same for the same
// results.
//
// A killed process can leave an unfinished last line. This is the only damage that is tolerated:
// the trial of that line counts as not run. A line that was changed is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

struct FinishedTrial {
  size_t trial = 0;    // index in the experiment's list of trials
  std::string label;   // Trial::label, to detect a journal of another list of trials
  std::string commit;  // BuildCommit of the program that measured it
  Rows rows;
  std::string build = {};      // its compiler and build type; "" in journals of older versions
  std::string processor = {};  // what measured it, with the backend; "" in such journals
  // That it took, those since its checkpoint if it continued from one; 0 in journals of older versions.
  double seconds = 0;
  // ExperimentFile::claims at that time; "" if the experiment is compiled in.
  std::string claims = {};
};

// Returns the name of one shard's journal: "0-of-3.jsonl".
std::string JournalName(int shard_index, int shard_count);

// Returns the finished trials in the order of the file; none when the file does not exist. Line i
// of the file (from 1) is element i - 1. Throws Error naming file and line for a line that is not
// an entry, unless it is the last line, and for one whose digest is wrong.
std::vector<FinishedTrial> ReadJournal(const std::filesystem::path& path);

// Appends to a journal. Only one process at a time may hold a journal open.
class Journal {
 public:
  // Creates the file if it does not exist; cuts off an unfinished last line.
  // Throws Error when the file cannot be written or is corrupt, or another process is writing it.
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Appends the trial as one line. Returns once the line survives a loss of power. Any thread may call
  // it. Throws Error when the line cannot be written; the journal then holds whole lines only.
  void Append(const FinishedTrial& finished);
  // The same, but the line survives a loss of power only once Sync has returned.
  void Write(const FinishedTrial& finished);
  // Waits until all lines survive a loss of power. Throws Error when they cannot be written.
  void Sync();

 private:
  void AppendLine(const FinishedTrial& finished, bool sync);

  std::filesystem::path path_;
  int file_ = -1;
  std::mutex mutex_;
};

}  // namespace numsim::experiments
