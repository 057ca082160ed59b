// Sweeps of a small experiment of 24 trials, in a directory of the test.
#pragma once

#include <string>

#include "tests/apps/program.h"

namespace numsim::apps {

class SweepTest : public ProgramTest {
 protected:
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
  // Expects that a sweep's tables and summary are those of one process, byte for byte.
  void ExpectResultsOfOneProcess(const std::string& sweep) const;
  // Replaces the first occurrence of a text in a file, which must have it.
  void Edit(const std::string& name, const std::string& from, const std::string& to) const;
};

}  // namespace numsim::apps
