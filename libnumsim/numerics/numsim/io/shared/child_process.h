// Runs another program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace numsim {

struct ChildResult {
  int exit_code = 0;   // 128 + signal number if a signal ended the program
  std::string output;  // standard output and standard error together
};

// Runs argv[0], searched on the PATH, in `directory`, with `variables` added to the environment and
// an empty standard input, and waits until it ends. Uses no shell: arguments need no quoting.
// Returns nullopt if there is no such program, or if the C library cannot start one in a directory
// (glibc 2.28). Requires a non-empty argv. Throws Error if the
// system cannot start the program. May be called while other threads run.
std::optional<ChildResult> RunProgram(
    const std::vector<std::string>& argv,
    const std::filesystem::path& directory,
    const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace numsim
