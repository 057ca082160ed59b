// `numsim train`: trains a model, or ranks its layers and tensors by precision.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "apps/command.h"
#include "apps/interruption.h"
#include "apps/train_progress.h"
#include "apps/train_rank.h"
#include "numsim/analysis/saved_operands.h"
#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/train/run.h"

namespace numsim::apps {
namespace {

struct TrainArguments {
  std::string config, preset, out;
  std::vector<std::string> overrides;
  bool resume = false, describe = false;
  std::string save_tensors;  // pattern of layers; empty: train
  RankArguments rank;
};

std::string PresetNames() {
  std::string names;
  for (const TrainPreset& preset : TrainPresets()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
  }
  return names;
}

// Returns the path of the configuration in the directory of a training.
std::filesystem::path ConfigOfRun(const std::filesystem::path& out) {
  std::filesystem::path path = out / "config.toml";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  throw Error::Format("{}: there is none to resume from; give CONFIG or --preset", path.string());
}

TrainConfig ReadConfig(const TrainArguments& arguments) {
  if (!arguments.config.empty()) {
    if (!arguments.preset.empty()) {
      throw Error("--preset: not allowed with a file, which sets its preset by the key 'preset'");
    }
    return ReadTrainConfig(arguments.config, arguments.overrides);
  }
  if (arguments.preset.empty() && arguments.resume && !arguments.out.empty()) {
    return ReadTrainConfig(ConfigOfRun(arguments.out), arguments.overrides);
  }
  if (arguments.preset.empty() && !arguments.describe) {
    throw Error::Format(
        "CONFIG is missing: give a TOML file, --preset with one of {}, or --resume with the --out "
        "of a training",
        PresetNames());
  }
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.preset.empty()) overrides.insert(overrides.begin(), "preset=" + arguments.preset);
  return ParseTrainConfig("", "the configuration", {}, overrides);
}

int DescribeConfig(const TrainArguments& arguments) {
  for (const ConfigKey& key : ConfigKeys(ReadConfig(arguments))) {
    fmt::print("{:<34} = {:<14}  # {}\n", key.name, key.value, key.meaning);
  }
  fmt::print("\npresets\n");
  for (const TrainPreset& preset : TrainPresets()) {
    fmt::print("  {:<12} {}\n", preset.name, preset.meaning);
  }
  fmt::print("\nrecipes (key recipe)\n");
  for (const TrainRecipe& recipe : TrainRecipes()) {
    fmt::print("  {:<19} {}\n", recipe.name, recipe.meaning);
    if (!recipe.settings.empty()) fmt::print("  {:<19} [linear] {}\n", "", recipe.settings);
  }
  return 0;
}

std::filesystem::path OutDirectory(const TrainArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  const std::string name = arguments.config.empty()
                               ? arguments.preset
                               : std::filesystem::path(arguments.config).stem().string();
  return std::filesystem::path("results/train") / name;
}

void PrintResult(const TrainRunResult& result,
                 const std::filesystem::path& out,
                 const std::vector<std::string>& command_line) {
  if (result.status == TrainStatus::kRunning) {
    fmt::print("interrupted after {} steps; saved in {}\nto resume: {}\n",
               result.steps,
               out.string(),
               ResumeCommand(command_line));
    return;
  }
  fmt::print("{}\n{}\n", result.summary, Describe(result.speed));
  fmt::print("written to {}:\n", out.string());
  for (const std::string& file : result.files) fmt::print("  {}\n", file);
}

int Train(const TrainArguments& arguments, const std::vector<std::string>& command_line) {
  const TrainConfig config = ReadConfig(arguments);
  TrainRunOptions options;
  options.out = OutDirectory(arguments);
  options.resume = arguments.resume;
  options.command = command_line;
  TrainRunResult result;
  {
    const InterruptScope scope;
    options.interrupted = &scope.Flag();
    TrainProgress progress(isatty(STDERR_FILENO) != 0);
    options.progress = [&progress](const Trainer& trainer, double rate, double seconds_left) {
      progress.Show(trainer, rate, seconds_left);
    };
    options.notice = [](const std::string& line) { fmt::print(stderr, "numsim: {}\n", line); };
    result = RunTraining(config, options);
  }
  PrintResult(result, options.out, command_line);
  return result.status == TrainStatus::kRunning ? kStoppedBySignal : 0;
}

// Throws Error for arguments that an option which looks at a step, without training, does not allow.
void CheckNoTraining(const TrainArguments& arguments, std::string_view option) {
  if (arguments.resume) {
    throw Error::Format("{}: not allowed with --resume; it always uses a checkpoint in --out",
                        option);
  }
  if (arguments.describe) throw Error::Format("{}: not allowed with --describe-config", option);
}

int Rank(const TrainArguments& arguments) {
  CheckNoTraining(arguments, "--rank");
  return RankTraining(ReadConfig(arguments), OutDirectory(arguments), arguments.rank);
}

int SaveTensors(const TrainArguments& arguments) {
  CheckNoTraining(arguments, "--save-tensors");
  if (!arguments.rank.by.empty()) throw Error("--save-tensors: not allowed with --rank");
  const TrainConfig config = ReadConfig(arguments);
  const std::filesystem::path out = OutDirectory(arguments);
  SavedOperands saved;
  try {
    saved = SaveOperands(config, out, arguments.save_tensors);
  } catch (const KeyError& error) {
    if (error.key() != "pattern") throw;
    throw KeyError("--save-tensors", error.text());
  }
  fmt::print("X, W and G of {} linear layers in the step after step {} ({}), written to {}\n",
             saved.layers,
             saved.step,
             saved.from_checkpoint ? "the checkpoint" : "there is no checkpoint",
             (out / saved.file).string());
  return 0;
}

}  // namespace

void AddTrainCommand(Program& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* sub = program.app.add_subcommand(
      "train",
      "Train a model configured by a TOML file. SIGINT or SIGTERM saves a checkpoint and ends with "
      "exit code 75: --resume continues");
  sub->add_option("CONFIG", arguments->config, "Configuration file (see docs/configuration.md)")
      ->check(NotEmpty());
  sub->add_option(
         "--preset", arguments->preset, "Preset to use instead of a file: " + PresetNames())
      ->check(NotEmpty());
  sub->add_option(
         "--set", arguments->overrides, "Override a configuration key, KEY=VALUE; repeatable")
      ->expected(1)
      ->take_all();
  sub->add_option("--out",
                  arguments->out,
                  "Result directory (default: results/train/NAME, the name of the file or preset)")
      ->check(NotEmpty());
  sub->add_flag(
      "--resume",
      arguments->resume,
      "Continue from the checkpoint in --out; without CONFIG, under the configuration in --out");
  sub->add_flag("--describe-config",
                arguments->describe,
                "Print every key with its value and meaning, and do not train");
  sub->add_option("--save-tensors",
                  arguments->save_tensors,
                  "Do not train; save input, weights and output gradient of the linear layers of "
                  "this name ('*' matches any characters) in the next step, to "
                  "OUT/operands.safetensors")
      ->check(NotEmpty());
  CLI::Option* const rank = sub->add_option(
      "--rank",
      arguments->rank.by,
      "Do not train; rank by the effect of precision on the next step: layer, tensor or operand");
  rank->check(NotEmpty());
  sub->add_option("--rank-count",
                  arguments->rank.count,
                  "Number of rows to print (default: 10) and to plot (default: 20)")
      ->needs(rank)
      ->check(CLI::Range(size_t{1}, size_t{10000}));
  Example(sub, "numsim train --preset tiny --set optimizer.v=e5m2 --out results/mine");
  Choose(program, sub, [arguments, &program] {
    if (!arguments->save_tensors.empty()) return SaveTensors(*arguments);
    if (!arguments->rank.by.empty()) return Rank(*arguments);
    return arguments->describe ? DescribeConfig(*arguments)
                               : Train(*arguments, program.command_line);
  });
}

}  // namespace numsim::apps
