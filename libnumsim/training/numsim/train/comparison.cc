#include "numsim/train/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>

#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/io/csv.h"
#include "numsim/io/manifest.h"
#include "numsim/train/internal/curve.h"
#include "numsim/train/internal/loss_history.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

using Keys = std::vector<ConfigKey>;

// Longest label of a training, in characters: about the width of a figure.
constexpr size_t kLongestLabel = 80;
constexpr const char* kNotSet = "-";

void CheckDirectories(const std::vector<fs::path>& directories) {
  if (directories.size() < 2) {
    throw Error::Format("a comparison needs at least two directories of trainings, not {}",
                        directories.size());
  }
  std::error_code ignored;
  for (const fs::path& directory : directories) {
    if (!fs::exists(directory, ignored)) {
      throw Error::Format("{}: there is no such directory", directory.string());
    }
    for (const char* const name : {kConfigFile, "train.csv", "valid.csv"}) {
      if (fs::exists(directory / name, ignored)) continue;
      throw Error::Format(
          "{}: has no {}, so it is not the directory of a training", directory.string(), name);
    }
  }
  for (size_t i = 0; i < directories.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!fs::equivalent(directories[i], directories[j], ignored)) continue;
      throw Error::Format("{}: is given twice", directories[i].string());
    }
  }
}

// Returns the mean loss of the rows of the last LossHistory::kRecent steps.
double RecentLoss(const Curve& curve) {
  const double first = curve.x.back() - static_cast<double>(LossHistory::kRecent);
  double sum = 0, count = 0;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (curve.x[i] <= first) continue;
    sum += curve.y[i];
    ++count;
  }
  return sum / count;
}

// Throws Error naming a file that has been changed since the training ended. While it lasts there is no
// manifest.
void CheckFiles(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::exists(directory / kManifestFile, ignored)) return;
  const std::vector<OutputFile> listed = ReadOutputs(directory / kManifestFile);
  for (const std::string& name : {std::string(kConfigFile), CsvFile("train"), CsvFile("valid")}) {
    CheckOutput(directory, listed, name);
  }
}

ComparedTraining ReadTraining(const fs::path& directory, const TrainConfig& config) {
  const fs::path train_file = directory / CsvFile("train");
  Curve train = CurveOf(ReadCsv(train_file), "loss");
  Curve valid = CurveOf(ReadCsv(directory / CsvFile("valid")), "loss");
  if (train.x.empty()) {
    throw Error::Format("{}: has no rows: the training has not taken a step", train_file.string());
  }
  ComparedTraining training;
  training.directory = directory;
  training.steps = static_cast<uint64_t>(train.x.back()) + 1;
  training.planned = config.train.steps;
  training.rows_every = config.telemetry.every;
  training.train_loss = RecentLoss(train);
  training.valid_loss = valid.y.empty() ? std::numeric_limits<double>::quiet_NaN() : valid.y.back();
  training.train_steps = std::move(train.x);
  training.train_losses = std::move(train.y);
  training.valid_steps = std::move(valid.x);
  training.valid_losses = std::move(valid.y);
  return training;
}

// Returns the value without the quotes of TOML; kNotSet if the key is not among `keys`.
std::string ValueOf(const Keys& keys, const std::string& name) {
  for (const ConfigKey& key : keys) {
    if (key.name != name) continue;
    const bool quoted = key.value.size() >= 2 && key.value.front() == '"';
    return quoted ? key.value.substr(1, key.value.size() - 2) : key.value;
  }
  return kNotSet;
}

// Returns the names of the keys whose values are not the same in all configurations.
std::vector<std::string> DifferingKeys(const std::vector<Keys>& configs) {
  std::vector<std::string> names;
  for (const Keys& keys : configs) {
    for (const ConfigKey& key : keys) {
      if (std::find(names.begin(), names.end(), key.name) == names.end()) names.push_back(key.name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::all_of(configs.begin(), configs.end(), [&](const Keys& keys) {
      return ValueOf(keys, name) == ValueOf(configs[0], name);
    });
  });
  return names;
}

std::string LabelFromKeys(const std::vector<std::string>& keys, const ComparedTraining& training) {
  std::string label;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (training.values[i] == kNotSet) continue;
    label += fmt::format("{}{}={}", label.empty() ? "" : ", ", keys[i], training.values[i]);
  }
  return label;
}

void SetLabels(TrainComparison& comparison) {
  bool fit = true;
  for (ComparedTraining& training : comparison.trainings) {
    training.label = LabelFromKeys(comparison.keys, training);
    fit = fit && !training.label.empty() && training.label.size() <= kLongestLabel;
  }
  std::vector<std::string> labels;
  for (const ComparedTraining& training : comparison.trainings) labels.push_back(training.label);
  for (ComparedTraining& training : comparison.trainings) {
    const std::string directory = training.directory.string();
    if (!fit) {
      training.label = directory;
    } else if (std::count(labels.begin(), labels.end(), training.label) > 1) {
      training.label += fmt::format(" ({})", directory);
    }
  }
}

// Returns a number of steps to average over that is short against the training, and that has
// several rows of each train.csv.
uint64_t MeanSteps(const std::vector<ComparedTraining>& trainings) {
  uint64_t steps = 0, every = 1;
  for (const ComparedTraining& training : trainings) {
    steps = std::max(steps, training.steps);
    every = std::max(every, training.rows_every);
  }
  return std::max(10 * every, steps / 50);
}

std::string LossText(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{:.5g}", loss); }

// Returns the rows as lines, with columns as wide as their longest cell; the first `left` columns
// are aligned to the left.
std::string AlignedText(const std::vector<std::vector<std::string>>& rows, size_t left) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i < left ? fmt::format("{:<{}}  ", row[i], widths[i])
                       : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string LossTable(const std::vector<ComparedTraining>& trainings) {
  std::vector<std::vector<std::string>> rows = {
      {"", "directory", "steps", "training", "validation", "difference"}};
  for (size_t i = 0; i < trainings.size(); ++i) {
    const ComparedTraining& training = trainings[i];
    const double difference = training.valid_loss - trainings[0].valid_loss;
    rows.push_back({fmt::format("{}", i + 1),
                    training.directory.string(),
                    fmt::format("{}/{}", training.steps, training.planned),
                    LossText(training.train_loss),
                    LossText(training.valid_loss),
                    i == 0 ? "" : fmt::format("{:+.3g}", difference)});
  }
  return AlignedText(rows, 2);
}

std::string KeyTable(const TrainComparison& comparison) {
  if (comparison.keys.empty()) return "No key of the configurations differs.\n";
  std::vector<std::vector<std::string>> rows = {{"keys that differ"}};
  for (size_t i = 0; i < comparison.trainings.size(); ++i) {
    rows[0].push_back(fmt::format("{}", i + 1));
  }
  for (size_t k = 0; k < comparison.keys.size(); ++k) {
    rows.push_back({comparison.keys[k]});
    for (const ComparedTraining& training : comparison.trainings) {
      rows.back().push_back(training.values[k]);
    }
  }
  return AlignedText(rows, rows[0].size());
}

}  // namespace

TrainComparison CompareTrainings(const std::vector<fs::path>& directories) {
  CheckDirectories(directories);
  TrainComparison comparison;
  std::vector<Keys> configs;
  for (const fs::path& directory : directories) {
    CheckFiles(directory);
    const TrainConfig config = ReadTrainConfig(directory / kConfigFile, {});
    if (configs.empty()) comparison.kind = config.model.kind;
    const std::string unit = LossLabel(config.model.kind), first = LossLabel(comparison.kind);
    if (unit != first) {
      throw Error::Format("{}: its {} cannot be compared with the {} of {}",
                          directory.string(),
                          unit,
                          first,
                          directories[0].string());
    }
    configs.push_back(ConfigKeys(config));
    comparison.trainings.push_back(ReadTraining(directory, config));
  }
  comparison.keys = DifferingKeys(configs);
  for (size_t i = 0; i < configs.size(); ++i) {
    for (const std::string& key : comparison.keys) {
      comparison.trainings[i].values.push_back(ValueOf(configs[i], key));
    }
  }
  SetLabels(comparison);
  comparison.mean_steps = MeanSteps(comparison.trainings);
  return comparison;
}

std::string ComparisonText(const TrainComparison& comparison) {
  return fmt::format(
      "{}\n{}\n"
      "training: {}, mean of the last {} steps; validation: the last one;\n"
      "difference: validation loss minus that of 1\n",
      LossTable(comparison.trainings),
      KeyTable(comparison),
      LossLabel(comparison.kind),
      LossHistory::kRecent);
}

}  // namespace numsim
