// The commands of the numsim program. Each adds a subcommand to the parser and, when chosen, leaves
// the function that does the work.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace numsim::apps {

struct Program {
  CLI::App& app;
  std::vector<std::string> command_line;  // argv
  // Set by the chosen subcommand; returns the exit code: 0, or 1 for a failed check. Throws Error
  // for bad input.
  std::function<int()> chosen;
};

void AddListCommand(Program& program);
void AddDescribeCommand(Program& program);
void AddRunCommand(Program& program);
void AddMergeCommand(Program& program);
void AddPlotCommand(Program& program);
void AddDemoCommand(Program& program);
void AddFormatsCommand(Program& program);
void AddInspectCommand(Program& program);
void AddCastCommand(Program& program);
void AddGemmCommand(Program& program);
void AddUpdateCommand(Program& program);
void AddTrainCommand(Program& program);
void AddStatsCommand(Program& program);
void AddBackendsCommand(Program& program);
void AddOracleCommand(Program& program);  // its subcommands: oracle_command.h

// Makes `sub` fill in program.chosen; `work` runs after all options are parsed.
void Choose(Program& program, CLI::App* sub, std::function<int()> work);

// Validators. Whole numbers of 64 bits without a sign; text that is not empty.
CLI::Validator Unsigned64();
CLI::Validator NotEmpty();

// An example below the help text of a subcommand.
void Example(CLI::App* sub, const std::string& text);

}  // namespace numsim::apps
