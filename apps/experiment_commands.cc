// `numsim list`, `describe`, `run`, `merge`, `plot` and `demo`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/claim_text.h"
#include "apps/command.h"
#include "apps/figure_options.h"
#include "apps/run_options.h"
#include "apps/run_until_signal.h"
#include "apps/wrapped_text.h"
#include "experiments/runner/demo.h"
#include "experiments/runner/exit_code.h"
#include "experiments/runner/merge_check.h"
#include "experiments/runner/published.h"
#include "experiments/runner/references.h"
#include "experiments/runner/rows_template.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/trial_toml.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::apps {
namespace {

using experiments::AllExperiments;
using experiments::Experiment;
using experiments::kTimedNote;
using experiments::RunReport;

const Experiment& Find(const std::string& name) {
  if (const Experiment* experiment = experiments::FindExperiment(name)) return *experiment;
  std::vector<std::string> names;
  for (const Experiment& e : AllExperiments()) names.push_back(e.name);
  const std::string near = NearestName(name, names);
  throw Error::Format("unknown experiment '{}'; {}expected one of: {}",
                      name,
                      near.empty() ? "" : fmt::format("did you mean {}? ", near),
                      fmt::join(names, ", "));
}

// Prints the entries of docs/references.md for the keys that the texts of an experiment cite.
void PrintSources(const Experiment& e) {
  std::string texts = e.reproduces + "\n" + e.title + "\n" + e.description;
  for (const auto& option : e.options) texts += "\n" + option.help;
  for (const auto& table : e.tables) {
    for (const auto& column : table.columns) texts += "\n" + column.meaning;
  }
  for (const std::string& key : experiments::KeysCitedBy(texts)) {
    PrintWrapped(2, fmt::format("[{}] {}", key, experiments::ReferenceOf(key)));
  }
}

// Prints authors, title and year of the sources that the experiments reproduce.
void PrintSourcesOfAll() {
  std::string texts;
  for (const Experiment& e : AllExperiments()) texts += e.reproduces + "\n";
  fmt::print("\n");
  for (const std::string& key : experiments::KeysCitedBy(texts)) {
    PrintWrapped(0, fmt::format("[{}] {}", key, experiments::ShortReferenceOf(key)));
  }
}

// Prints what a user can change, each with the published verdicts on its claims.
void PrintAdvice(const Experiment& e) {
  if (e.advice.empty()) return;
  fmt::print("\nwhat to change when a training of yours does this, with the published verdicts\n");
  for (const experiments::Advice& advice : e.advice) {
    PrintWrapped(2, advice.text);
    for (const std::string& claim : advice.claims) {
      const experiments::PublishedVerdict known = experiments::QuotedVerdict(claim);
      const std::string size = known.Size();
      const std::string basis = known.scale.empty() ? known.reason : known.scale;
      fmt::print(
          "    {}: {} ({}{}{})\n", claim, known.verdict, size, size.empty() ? "" : "; ", basis);
    }
  }
}

int Describe(const std::string& name) {
  const Experiment& e = Find(name);
  fmt::print("{}: {}\n\nreproduces  {}\n", e.name, e.title, e.reproduces);
  PrintSources(e);
  fmt::print("\n{}\n", e.description);
  if (e.timed) fmt::print("\n{}\n", kTimedNote);
  PrintAdvice(e);
  PrintClaims(e);
  fmt::print("\ntime on two cores, roughly: {}\n", PresetTimes(e));
  if (!e.rows.table.empty()) {
    fmt::print("\ntrainings made elsewhere: --rows FILE.csv, a row of {}.csv per training\n",
               e.rows.table);
  }
  fmt::print("\noptions ({})\n", PresetNames(e));
  for (const auto& option : e.options) {
    std::string values;
    for (const auto& preset : e.presets) {
      const std::string& value = experiments::DefaultOf(option, preset.name, false);
      values += (values.empty() ? "" : " | ") + (value.empty() ? "(none)" : value);
    }
    fmt::print("  --{:<14} {}\n  {:<16} {}{}\n",
               option.name,
               option.help,
               "",
               values,
               option.cuda.empty() ? "" : " | --backend cuda: " + option.cuda);
  }
  for (const auto& table : e.tables) {
    fmt::print("\n{}.csv{}\n", table.name, table.derived ? " (computed from the others)" : "");
    if (table.timed) fmt::print("  {}\n", kTimedNote);
    for (const auto& column : table.columns) {
      fmt::print("  {:<28} {}\n", column.name, column.meaning);
    }
  }
  return 0;
}

// Parses "I/N" with 0 <= I < N.
std::pair<int, int> ParseShard(const std::string& text) {
  const char* end = text.data() + text.size();
  int index = -1, count = 0;
  const auto first = std::from_chars(text.data(), end, index);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, count);
    if (second.ec == std::errc() && second.ptr == end && index >= 0 && index < count) {
      return {index, count};
    }
  }
  throw Error::Format("--shard '{}' is not of the form I/N with 0 <= I < N, e.g. 0/4", text);
}

void PrintReport(const RunReport& report, const std::string& out) {
  if (report.trials_missing > 0) {
    fmt::print(
        "all {} trials of this shard are finished; {} of the {} of all are left to other shards of {}\n",
        report.shard_total,
        report.trials_missing,
        report.trials_total,
        out);
    return;
  }
  if (!report.summary.empty()) fmt::print("{}\n", report.summary);
  fmt::print("written to {}:\n", out);
  for (const std::string& file : report.outputs) fmt::print("  {}\n", file);
  if (!report.notice.empty()) fmt::print("{}\n", report.notice);
}

// Writes the file of trainings for --rows.
int WriteTemplate(const Experiment& experiment,
                  const RunArguments& arguments,
                  const CLI::App& sub) {
  const experiments::RowsTemplate request{
      .file = arguments.rows_template,
      .configs = arguments.configs,
      .collect = {arguments.collect.begin(), arguments.collect.end()}};
  const experiments::RowsTemplateReport report =
      experiments::WriteRowsTemplate(experiment, SettingsOf(experiment, arguments, sub), request);
  fmt::print("{}: {} trainings, {} of them filled\n",
             arguments.rows_template,
             report.trainings,
             report.filled);
  if (!report.empty_columns.empty()) {
    fmt::print("run directories do not say {}; fill these columns by hand\n",
               fmt::join(report.empty_columns, ", "));
  }
  for (const auto& [table, file] : report.tables) {
    fmt::print("their losses: {} (--rows {}={})\n", file.string(), table, file.string());
  }
  if (!arguments.configs.empty()) fmt::print("configurations: {}\n", arguments.configs);
  return 0;
}

// Judges trainings that were made elsewhere.
int JudgeRows(const Experiment& experiment,
              const RunArguments& arguments,
              const experiments::RunOptions& options) {
  std::vector<experiments::RowsArgument> files;
  for (const std::string& text : arguments.rows) {
    files.push_back(experiments::ParseRowsArgument(text));
  }
  const RunReport report =
      experiments::JudgeRows(experiment, options.settings, files, options.out, options.command);
  PrintReport(report, options.out.string());
  return 0;
}

// Runs an experiment. `sub` is the parsed subcommand, which tells which options were given; an
// empty text is also a value.
int Run(const Experiment& experiment,
        const RunArguments& arguments,
        const CLI::App& sub,
        const Program& program) {
  if (!arguments.rows_template.empty()) return WriteTemplate(experiment, arguments, sub);
  experiments::RunOptions options;
  options.settings = SettingsOf(experiment, arguments, sub);
  options.out = arguments.out.empty() ? "results/" + experiment.name : arguments.out;
  options.resume = arguments.resume;
  options.take_over = arguments.take_over;
  std::tie(options.shard_index, options.shard_count) = ParseShard(arguments.shard);
  options.trial_costs = arguments.trial_costs;
  options.look = arguments.look;
  options.save_every = arguments.save_every;
  options.say = [](const std::string& line) { fmt::print(stderr, "numsim: {}\n", line); };
  options.progress = isatty(STDERR_FILENO) != 0;
  options.command = program.command_line;
  if (!arguments.rows.empty()) return JudgeRows(experiment, arguments, options);
  RunReport report;
  const auto stopped = RunUntilSignal(options, arguments.grace, [&] {
    report = experiments::Run(experiment, options);
    return report;
  });
  if (stopped) return *stopped;
  PrintReport(report, options.out.string());
  return 0;
}

// Throws Error for a directory of `numsim train`, which a user may well give.
void RefuseTraining(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory / "config.toml", ignored)) return;
  throw Error::Format(
      "{0}: is a training of `numsim train`; `numsim compare {0} OTHER --out NAME` draws trainings, "
      "with --width and --panels too",
      directory.string());
}

void AddRunOf(Program& program, CLI::App* run, const Experiment& experiment) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* sub = run->add_subcommand(experiment.name, experiment.title);
  AddRunOptions(sub, experiment, *arguments);
  AddRowsOptions(sub, *arguments);
  Example(sub, fmt::format("numsim run {} --preset quick --out results/mine", experiment.name));
  Choose(program, sub, [&experiment, arguments, sub, &program] {
    return Run(experiment, *arguments, *sub, program);
  });
}

}  // namespace

void AddListCommand(Program& program) {
  auto names = std::make_shared<bool>(false);
  CLI::App* sub = program.app.add_subcommand("list", "List the experiments");
  sub->add_flag("--names", *names, "Print only the names, one per line, for scripts");
  Example(sub, "numsim list");
  Choose(program, sub, [names] {
    for (const Experiment& e : AllExperiments()) {
      if (*names) {
        fmt::print("{}\n", e.name);
        continue;
      }
      fmt::print("{:<24} {}\n{:<24} reproduces {}\n", e.name, e.title, "", e.reproduces);
    }
    if (!*names) PrintSourcesOfAll();
    return 0;
  });
}

void AddDescribeCommand(Program& program) {
  struct Options {
    std::string name, preset = "quick";
    std::vector<std::string> set;
    size_t trial = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "describe", "Describe an experiment: what it shows, its claims, options and CSV columns");
  sub->add_option("EXPERIMENT", options->name, "Name of an experiment (see `numsim list`)")
      ->required();
  CLI::Option* const trial = sub->add_option(
      "--trial",
      options->trial,
      "Print only the configuration with which `numsim train` repeats this trial, counted from 0");
  sub->add_option("--preset", options->preset, "Preset of the trial")
      ->needs(trial)
      ->capture_default_str();
  sub->add_option("--set", options->set, "Set an option of the trial's run, NAME=VALUE; repeatable")
      ->needs(trial)
      ->expected(1)
      ->take_all();
  Example(sub, "numsim describe quantization-variance");
  Example(sub, "numsim describe fp8-interventions --trial 3 > trial.toml");
  Choose(program, sub, [options, trial] {
    if (trial->count() == 0) return Describe(options->name);
    const Experiment& experiment = Find(options->name);
    fmt::print("{}",
               experiments::TrialToml(experiment, options->preset, options->set, options->trial));
    return 0;
  });
}

void AddRunCommand(Program& program) {
  CLI::App* run = program.app.add_subcommand("run", "Run an experiment");
  run->fallthrough();
  Example(run, "numsim run update-fidelity --preset quick");
  if (!program.Has("run")) return;
  for (const Experiment& experiment : AllExperiments()) AddRunOf(program, run, experiment);
}

namespace {

// Adds the directories in `folder`, sorted by name.
void AddDirectoriesIn(const std::filesystem::path& folder,
                      std::vector<std::filesystem::path>& directories) {
  std::vector<std::filesystem::path> found;
  std::error_code status;
  std::filesystem::directory_iterator entry(folder, status);
  for (; !status && entry != std::filesystem::directory_iterator(); entry.increment(status)) {
    if (std::filesystem::is_directory(entry->path(), status)) found.push_back(entry->path());
  }
  if (status) throw Error::Format("{}: cannot be read: {}", folder.string(), status.message());
  if (found.empty()) throw Error::Format("{}: has no directory of a shard", folder.string());
  std::sort(found.begin(), found.end());
  directories.insert(directories.end(), found.begin(), found.end());
}

}  // namespace

void AddMergeCommand(Program& program) {
  struct Options {
    std::string experiment, out, shards_in;
    std::vector<std::string> shards, allow;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "merge",
      fmt::format(
          "Combine the result directories of shards that ran separately. Exit code {}: they "
          "are of --until-decided, and the next look is needed",
          experiments::kNextLook));
  sub->add_option("EXPERIMENT", options->experiment, "Name of an experiment (see `numsim list`)")
      ->required();
  sub->add_option("SHARDS", options->shards, "Result directories, one per shard");
  sub->add_option("--shards-in",
                  options->shards_in,
                  "DIR: also every directory in DIR, as `numsim sweep` leaves them")
      ->check(NotEmpty());
  sub->add_option("--out", options->out, "Directory for the combined results")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--allow",
                  options->allow,
                  fmt::format("Accept a difference between the shards, and record it in "
                              "manifest.json; repeatable; one of {}",
                              experiments::kAllowable))
      ->expected(1)
      ->take_all();
  Example(sub, "numsim merge update-fidelity shard0 shard1 --out results/update-fidelity");
  Choose(program, sub, [options, &program] {
    std::vector<std::filesystem::path> shards(options->shards.begin(), options->shards.end());
    if (!options->shards_in.empty()) AddDirectoriesIn(options->shards_in, shards);
    const RunReport report = experiments::Merge(
        Find(options->experiment), shards, options->out, program.command_line, options->allow);
    PrintReport(report, options->out);
    if (report.next_look == 0) return 0;
    fmt::print("undecided: look {} is needed, with the trials of `numsim run --look {}`\n",
               report.next_look,
               report.next_look);
    return experiments::kNextLook;
  });
}

void AddPlotCommand(Program& program) {
  struct Options {
    std::string directory, out;
    std::vector<std::string> figures;
    FigureArguments look;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "plot",
      "Redraw the figures and rewrite the summary of a result directory from its CSV files");
  sub->add_option("RESULT_DIR",
                  options->directory,
                  "Result directory of a completed `numsim run`; with --out also one of "
                  "experiments/published")
      ->required();
  sub->add_option("--out",
                  options->out,
                  "Directory for the figures; RESULT_DIR then stays as it is (default: RESULT_DIR)")
      ->check(NotEmpty());
  sub->add_option("--figure",
                  options->figures,
                  "Name of a figure to draw, without extension; repeatable (default: all)")
      ->expected(1)
      ->take_all()
      ->check(NotEmpty());
  AddFigureOptions(sub, options->look);
  Example(sub,
          "numsim plot results/update-fidelity --width 3.3 --panels 1,3 --figure "
          "update-fidelity-bf16 --out paper");
  Choose(program, sub, [options] {
    RefuseTraining(options->directory);
    const RunReport report = experiments::Redraw(
        options->directory, {StyleOf(options->look), options->figures, options->out});
    PrintReport(report, options->out.empty() ? options->directory : options->out);
    return 0;
  });
}

void AddDemoCommand(Program& program) {
  auto out = std::make_shared<std::string>("results/demo");
  CLI::App* sub = program.app.add_subcommand(
      "demo", "Run small versions of some experiments (a few minutes); show verdicts and figures");
  sub->add_option("--out", *out, "Directory for the results, with one folder per experiment")
      ->check(NotEmpty())
      ->capture_default_str();
  Example(sub, "numsim demo");
  Choose(program, sub, [out, &program] {
    experiments::DemoOptions options;
    options.out = *out;
    options.progress = isatty(STDERR_FILENO) != 0;
    options.command = program.command_line;
    options.print = [](const std::string& line) {
      fmt::print("{}\n", line);
      std::fflush(stdout);
    };
    experiments::RunDemo(AllExperiments(), options);
    return 0;
  });
}

}  // namespace numsim::apps
