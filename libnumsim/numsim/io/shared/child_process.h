// Running another program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace numsim {

struct ChildResult {
  int exit_code = 0;   // 128 + signal number when a signal ended it
  std::string output;  // standard output and standard error together
};

// Runs argv[0], searched on the PATH, in `directory`, with `variables` added to the environment
// and an empty standard input, and waits for its end. No shell takes part: arguments need no
// quoting. Returns nullopt when there is no such program. Throws Error when the system refuses.
// Requires a non-empty argv. May be called while other threads run.
std::optional<ChildResult> RunProgram(
    const std::vector<std::string>& argv,
    const std::filesystem::path& directory,
    const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace numsim
