// `numsim sweep status` and `resume`, and how a script of a sweep is started.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"

namespace numsim::apps {

void AddSweepStatusCommand(Program& program, CLI::App* sweep);
void AddSweepResumeCommand(Program& program, CLI::App* sweep);

// Returns the path of a script or file in the folder of a sweep's scripts.
std::filesystem::path SweepScript(const std::filesystem::path& directory, std::string_view name);

// Runs a script with these arguments in place of this process. Returns only by throwing Error.
[[noreturn]] void BecomeScript(const std::filesystem::path& script,
                               const std::vector<std::string>& arguments);

}  // namespace numsim::apps
