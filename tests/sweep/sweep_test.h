// Sweeps of a small experiment of 24 trials, in a directory of the test.
#pragma once

#include <string>

#include "tests/apps/program.h"

namespace numsim::apps {

// Options of an experiment that is judged after 2, 4, 7 and 12 seeds. The third look decides.
inline constexpr const char* kUntilDecided =
    "quantization-variance --distributions normal --formats int8 --pairs 300 --k-high 512 --seeds 2 "
    "--until-decided --max-seeds 12";

class SweepTest : public ProgramTest {
 protected:
  // A stand-in hides gnuplot: drawing would take most of the time, and other tests look at figures.
  void SetUp() override;
  void TearDown() override;

  // The experiment and its options; 24 trials.
  std::string options_ =
      "quantization-variance --distributions normal,laplace --formats e4m3fn --pairs 8 "
      "--k-high 512 --seeds 3";

  // Runs `numsim sweep` with the small experiment and these options, in the test's environment.
  Outcome Sweep(const std::string& options) const;
  // Runs a command of bash in the test's directory and returns its exit code; output goes to a file.
  int Bash(const std::string& command) const;
  // Returns the bytes of a file in the test's directory.
  std::string Text(const std::string& name) const;
  // Expects that a sweep's tables and summary are those of one process, byte for byte, which runs into
  // the directory `one`.
  void ExpectResultsOfOneProcess(const std::string& sweep, const std::string& one = "one") const;
  // Replaces the first occurrence of a text in a file, which must have it.
  void Edit(const std::string& name, const std::string& from, const std::string& to) const;

 private:
  std::string path_;  // PATH before
};

}  // namespace numsim::apps
