#include "apps/run_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apps/command.h"
#include "experiments/runner/arm_rates.h"
#include "experiments/runner/option_names.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/time_left.h"
#include "numsim/config/config.h"

namespace numsim::apps {

using experiments::Experiment;

std::string PresetNames(const Experiment& experiment) {
  std::string names;
  for (const auto& preset : experiment.presets) {
    names += (names.empty() ? "" : " | ") + preset.name;
    if (preset.seeds > 1) names += fmt::format(" with {} seeds", preset.seeds);
  }
  return names;
}

std::string PresetTimes(const Experiment& experiment) {
  std::string times;
  for (const auto& preset : experiment.presets) {
    times += fmt::format("{}{} {}",
                         times.empty() ? "" : ", ",
                         preset.name,
                         preset.seconds > 0 ? experiments::RoughText(preset.seconds) : "not timed");
  }
  return times;
}

namespace {

// Adds the keys of a TOML file to the options that were given, which take precedence.
void AddFile(const Experiment& experiment,
             const std::string& path,
             std::map<std::string, std::string>& given) {
  std::map<std::string, std::string> of_file;
  for (const std::string& assignment : ReadConfigKeys(path)) {
    experiments::AddAssignment(experiment, assignment, of_file);
  }
  for (const auto& [option, value] : of_file) {
    const auto [present, added] = given.emplace(option, value);
    // Of keys that are set twice, the last one counts.
    if (!added && option == experiments::kKeysOption) {
      present->second = value + ";" + present->second;
    }
  }
}

// Adds the options that say what is trained.
void AddDesignOptions(CLI::App* sub, const Experiment& experiment, RunArguments& arguments) {
  sub->add_option(
         "--set",
         arguments.set,
         "NAME=VALUE: sets an option below by its name, or any key of `numsim train` (repeatable)")
      ->allow_extra_args(false);
  sub->add_option(
      "--config", arguments.config, "TOML file of keys of `numsim train`, each set as by --set");
  if (!experiment.tuning.table.empty()) {
    sub->add_option(
           "--rates-from",
           arguments.rates_from,
           "File rates.csv of `numsim tune`: each arm is trained at the rate that was chosen there")
        ->check(NotEmpty());
  }
  for (const auto& option : experiment.options) {
    sub->add_option("--" + option.name, arguments.options[option.name], option.help);
  }
}

void AddPresetOption(CLI::App* sub, const Experiment& experiment, RunArguments& arguments) {
  sub->add_option("--preset",
                  arguments.preset,
                  fmt::format("Preset: {}. Time on two cores, roughly: {}",
                              PresetNames(experiment),
                              PresetTimes(experiment)))
      ->capture_default_str();
}

// Adds the options that say what becomes of trials at an end.
void AddEndOptions(CLI::App* sub, RunArguments& arguments) {
  sub->add_option(
         "--grace",
         arguments.grace,
         "Seconds that running trials have left after SIGINT or SIGTERM; then they are lost, but "
         "trainings stop at once and keep their steps. Exit code 75: stopped by a signal, --resume "
         "continues")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  sub->add_option(
         "--save-every",
         arguments.save_every,
         "Seconds between checkpoints of a training in a trial, for an end without a signal")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
}

// Adds the options that follow the seeds of a pilot or a tuning. Its directory is results/COMMAND-NAME.
void AddDirectoryOfDesign(CLI::App* sub,
                          const std::string& command,
                          const std::string& noun,
                          const Experiment& experiment,
                          RunArguments& arguments) {
  sub->add_option(
         "--out",
         arguments.out,
         "Directory of the " + noun + " (default: results/" + command + "-" + experiment.name + ")")
      ->check(NotEmpty());
  sub->add_flag("--resume",
                arguments.resume,
                "Continue an interrupted " + noun + "; keeps its finished trials");
  AddEndOptions(sub, arguments);
  AddDesignOptions(sub, experiment, arguments);
}

}  // namespace

void AddRunOptions(CLI::App* sub, const Experiment& experiment, RunArguments& arguments) {
  AddPresetOption(sub, experiment, arguments);
  sub->add_option("--seed", arguments.seed, "First seed")
      ->check(Unsigned64())
      ->capture_default_str();
  sub->add_option("--seeds", arguments.seeds, "Number of seeds (default: set by the preset)")
      ->check(CLI::Range(1, 1 << 20));
  CLI::Option* const until_decided =
      sub->add_flag("--until-decided",
                    arguments.until_decided,
                    "Add seeds, in looks fixed beforehand, until each primary claim is decided");
  sub->add_option("--max-seeds", arguments.max_seeds, "Most seeds of --until-decided")
      ->check(CLI::Range(2, 1 << 20))
      ->needs(until_decided)
      ->capture_default_str();
  sub->add_option(
         "--out", arguments.out, "Result directory (default: results/" + experiment.name + ")")
      ->check(NotEmpty());
  sub->add_option("--shard",
                  arguments.shard,
                  "I/N: run only the trials of shard I of N, which have about equal costs")
      ->capture_default_str();
  sub->add_option(
         "--trial-costs",
         arguments.trial_costs,
         "CSV file with the cost of each trial, as `numsim sweep --costs` writes it, by which "
         "shards are cut; the same for all shards")
      ->check(NotEmpty());
  sub->add_option("--look",
                  arguments.look,
                  "With --until-decided: run the trials up to this look (1, 2, ...) and no others; "
                  "`numsim merge` judges the shards")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(until_decided);
  sub->add_flag(
      "--resume", arguments.resume, "Continue an interrupted run; keeps its finished trials");
  sub->add_flag("--take-over",
                arguments.take_over,
                "Run the shard although a process of another host may be running it; only if that "
                "process has ended");
  AddEndOptions(sub, arguments);
  AddDesignOptions(sub, experiment, arguments);
}

void AddPilotOptions(CLI::App* sub, const Experiment& experiment, RunArguments& arguments) {
  AddPresetOption(sub, experiment, arguments);
  arguments.seeds = 4;
  sub->add_option("--seeds", arguments.seeds, "Number of pilot seeds")
      ->check(CLI::Range(2, 1 << 19))
      ->capture_default_str();
  AddDirectoryOfDesign(sub, "pilot", "pilot", experiment, arguments);
}

void AddTuneOptions(CLI::App* sub, const Experiment& experiment, TuneArguments& arguments) {
  RunArguments& run = arguments.run;
  AddPresetOption(sub, experiment, run);
  sub->add_option("--rate-grid",
                  arguments.grid,
                  "Peak learning rates to try, separated by commas; three or more")
      ->required();
  run.seeds = 3;
  sub->add_option("--rate-seeds", run.seeds, "Number of tuning seeds")
      ->check(CLI::Range(1, 1 << 19))
      ->capture_default_str();
  AddDirectoryOfDesign(sub, "tune", "tuning", experiment, run);
}

void AddRowsOptions(CLI::App* sub, RunArguments& arguments) {
  CLI::Option* const rows =
      sub->add_option(
             "--rows",
             arguments.rows,
             "[TABLE=]FILE.csv: do not train; judge the trainings in this file, which were "
             "made elsewhere (docs/rows.md). With TABLE=: rows of another measured table; "
             "repeatable")
          ->expected(1)
          ->take_all()
          ->check(NotEmpty());
  CLI::Option* const file =
      sub->add_option(
             "--rows-template",
             arguments.rows_template,
             "FILE.csv: do not train; write this file for --rows, with a row per training of "
             "the settings and empty outcomes")
          ->check(NotEmpty());
  sub->add_option("--configs",
                  arguments.configs,
                  "With --rows-template: directory for the configuration of each training, for "
                  "`numsim train` or another program")
      ->needs(file)
      ->check(NotEmpty());
  sub->add_option("--collect",
                  arguments.collect,
                  "With --rows-template: run directories, whose trainings are found by their "
                  "configuration and whose rows are filled")
      ->needs(file);
  for (CLI::Option* const option : {rows, file}) {
    for (const char* const other :
         {"--until-decided", "--shard", "--trial-costs", "--look", "--resume", "--take-over"}) {
      option->excludes(sub->get_option(other));
    }
  }
  rows->excludes(file);
}

experiments::Settings SettingsOf(const Experiment& experiment,
                                 const RunArguments& arguments,
                                 const CLI::App& sub) {
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : arguments.options) {
    if (sub.count("--" + name) > 0) given[name] = value;
  }
  for (const std::string& assignment : arguments.set) {
    experiments::AddAssignment(experiment, assignment, given);
  }
  if (!arguments.rates_from.empty()) {
    const std::string text = experiments::RatesText(experiments::ReadRates(arguments.rates_from));
    if (!given.emplace(experiments::kRatesOption, text).second) {
      throw Error::Format("--rates-from: --{} is given too", experiments::kRatesOption);
    }
  }
  if (!arguments.config.empty()) AddFile(experiment, arguments.config, given);
  const int preset_seeds = experiments::FindPreset(experiment, arguments.preset).seeds;
  return experiments::MakeSettings(experiment,
                                   arguments.preset,
                                   arguments.seed,
                                   arguments.seeds == 0 ? preset_seeds : arguments.seeds,
                                   given,
                                   arguments.until_decided ? arguments.max_seeds : 0);
}

experiments::RunOptions OptionsOfRunAside(const Experiment& experiment,
                                          const RunArguments& arguments,
                                          const CLI::App& sub,
                                          const Program& program,
                                          std::string_view word) {
  experiments::RunOptions options;
  options.settings = SettingsOf(experiment, arguments, sub);
  options.out =
      arguments.out.empty() ? fmt::format("results/{}-{}", word, experiment.name) : arguments.out;
  options.resume = arguments.resume;
  options.save_every = arguments.save_every;
  options.say = [](const std::string& line) { fmt::print(stderr, "numsim: {}\n", line); };
  options.progress = isatty(STDERR_FILENO) != 0;
  options.command = program.command_line;
  return options;
}

}  // namespace numsim::apps
