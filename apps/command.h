// The commands of the numsim program. Each function adds a subcommand to the parser. If the user
// chooses the subcommand, it stores the function that does the work in Program::chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::apps {

struct Program {
  CLI::App& app;
  std::vector<std::string> command_line;  // argv
  // Set by the chosen subcommand; returns the exit code: 0, 1 for a failed check, or one of
  // experiments/runner/exit_code.h. Throws Error for bad input.
  std::function<int()> chosen;

  // Returns true if the command line has the word. Experiments are made only for commands that take
  // their options: that takes longer than most commands.
  bool Has(std::string_view word) const;
};

void AddListCommand(Program& program);
void AddDescribeCommand(Program& program);
void AddClaimsCommand(Program& program);
void AddRunCommand(Program& program);
void AddPilotCommand(Program& program);
void AddTuneCommand(Program& program);
void AddMergeCommand(Program& program);
void AddSweepCommand(Program& program);
void AddPlotCommand(Program& program);
void AddTableCommand(Program& program);
void AddDemoCommand(Program& program);
void AddFormatsCommand(Program& program);
void AddInspectCommand(Program& program);
void AddCastCommand(Program& program);
void AddDequantizeCommand(Program& program);
void AddGemmCommand(Program& program);
void AddExplainCommand(Program& program);
void AddUpdateCommand(Program& program);
void AddTrainCommand(Program& program);
void AddTokenizerCommand(Program& program);
void AddCompareCommand(Program& program);
void AddStatsCommand(Program& program);
void AddBackendsCommand(Program& program);
void AddOracleCommand(Program& program);  // for its subcommands see oracle_command.h

// Makes `sub` store `work` in program.chosen. `work` runs after all options are parsed.
void Choose(Program& program, CLI::App* sub, std::function<int()> work);

// Validators that accept unsigned 64-bit integers and non-empty text, respectively.
CLI::Validator Unsigned64();
CLI::Validator NotEmpty();

// Returns true if both texts are paths of the same file, also through links. An empty text is no
// path.
bool SameFile(const std::string& a, const std::string& b);
// Throws Error naming the option if its output would replace one of the inputs by a file of another
// kind.
void CheckKeepsInputs(std::string_view option,
                      const std::string& out,
                      std::initializer_list<std::string> inputs);

// Adds an example below the help text of a subcommand.
void Example(CLI::App* sub, const std::string& text);

}  // namespace numsim::apps
