// Prints what `numsim oracle check` found, and writes it to a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "numsim/io/atomic_file.h"
#include "numsim/oracle/coverage.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/operation.h"

namespace numsim::apps {

// Prints the first mismatches and the verdict. `place` is "line" or "row". Returns the exit code:
// 1 if a case is wrong, else 0.
int PrintVerdict(const Judge& judge, const char* place, const CaseColumns& columns);

// Prints the first missing, repeated and foreign cases of `level` and, last, how many there are.
// Returns the exit code: 1 if there are any, else 0.
int PrintCoverage(const Coverage& coverage,
                  const Operation& operation,
                  const CaseLevel& level,
                  const char* place);

// A CSV file with one row per mismatch: its place, its kind (value, flags or nan), the inputs, and
// for each result and for the flags, if the input has them, what was given and what is right. Codes
// are written as in "0x3C".
class MismatchFile {
 public:
  // Begins the file. Throws Error that names it if that is impossible.
  MismatchFile(const std::filesystem::path& path, const char* place, const CaseColumns& columns);

  void Write(const Mismatch& mismatch);
  // Puts the complete file in its place.
  void Commit() { file_.Commit(); }

 private:
  const CaseColumns& columns_;
  AtomicFile file_;
};

}  // namespace numsim::apps
