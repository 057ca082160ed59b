// The options of `numsim run EXPERIMENT`, which `numsim sweep EXPERIMENT` takes too.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/runner/runner.h"

namespace numsim::apps {

struct Program;

struct RunArguments {
  std::string preset = "quick";
  uint64_t seed = 0;
  int seeds = 0;  // 0: the number of the preset
  bool until_decided = false;
  int max_seeds = 20;
  std::string out;
  std::string shard = "0/1";
  std::string trial_costs;  // file; empty: none
  size_t look = 0;          // 0: all
  bool resume = false, take_over = false;
  double grace = 60;        // seconds
  double save_every = 300;  // seconds
  std::map<std::string, std::string> options;
  std::vector<std::string> set;   // NAME=VALUE
  std::string config;             // TOML file of keys
  std::string rates_from;         // file of `numsim tune`
  std::vector<std::string> rows;  // [TABLE=]FILE
  std::string rows_template, configs;
  std::vector<std::string> collect;  // directories
};

// Returns the presets, as in "quick | paper".
std::string PresetNames(const experiments::Experiment& experiment);
// Returns about how long the presets take, as in "quick 20 s, paper not timed".
std::string PresetTimes(const experiments::Experiment& experiment);

// Adds the options to the subcommand of an experiment. `arguments` must outlive it.
void AddRunOptions(CLI::App* sub,
                   const experiments::Experiment& experiment,
                   RunArguments& arguments);

// Adds the options of `numsim pilot EXPERIMENT`.
void AddPilotOptions(CLI::App* sub,
                     const experiments::Experiment& experiment,
                     RunArguments& arguments);

struct TuneArguments {
  RunArguments run;
  std::string grid;
};
// Adds the options of `numsim tune EXPERIMENT`.
void AddTuneOptions(CLI::App* sub,
                    const experiments::Experiment& experiment,
                    TuneArguments& arguments);

// Returns the options of a run whose seeds do not judge. Without --out its directory is
// results/WORD-EXPERIMENT, such as results/tune-moment-formats.
experiments::RunOptions OptionsOfRunAside(const experiments::Experiment& experiment,
                                          const RunArguments& arguments,
                                          const CLI::App& sub,
                                          const Program& program,
                                          std::string_view word);

// Adds the options about trainings made elsewhere (docs/rows.md), which only `numsim run` takes.
void AddRowsOptions(CLI::App* sub, RunArguments& arguments);

// Returns the settings that the options say. `sub` is the parsed subcommand, which tells which options
// were given; an empty text is also a value. Throws Error for an option that is wrong.
experiments::Settings SettingsOf(const experiments::Experiment& experiment,
                                 const RunArguments& arguments,
                                 const CLI::App& sub);

}  // namespace numsim::apps
