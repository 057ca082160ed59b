#include "experiments/runner/training_run.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "experiments/runner/result_directory.h"
#include "numsim/base/error.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfig = "config.toml", *kSummary = "summary.txt", *kTrain = "train.csv",
                     *kValid = "valid.csv";
constexpr std::array kDigestOf = {kConfig, kSummary, kTrain, kValid};

// summary.txt of a training: lines of a name and, from this column on, a text.
class Summary {
 public:
  explicit Summary(const fs::path& path) : path_(path) {
    constexpr size_t kColumn = 28;
    const std::string text = ReadText(path);
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      if (line.size() <= kColumn) continue;
      const std::string name = line.substr(0, kColumn);
      lines_[name.substr(0, name.find_last_not_of(' ') + 1)] = line.substr(kColumn);
    }
  }

  bool Has(const std::string& name) const { return lines_.contains(name); }
  // Returns the text of a line from after `before` to before `after`; an empty `after` is its end.
  // Throws Error naming file and line if it is not there.
  std::string Part(const std::string& name, std::string_view before, std::string_view after) const {
    const auto line = lines_.find(name);
    if (line == lines_.end()) {
      throw Error::Format("{}: has no line \"{}\"", path_.string(), name);
    }
    const std::string& text = line->second;
    const size_t begin = text.find(before);
    const size_t from = begin == text.npos ? text.npos : begin + before.size();
    const size_t end = after.empty() || from == text.npos ? text.size() : text.find(after, from);
    if (from == text.npos || end == text.npos) {
      throw Error::Format(
          "{}: {}: expected \"{}...{}\", found \"{}\"", path_.string(), name, before, after, text);
    }
    return text.substr(from, end - from);
  }
  // The same for a number.
  std::string Number(const std::string& name,
                     std::string_view before = "",
                     std::string_view after = "") const {
    std::string text = Part(name, before, after);
    try {
      Cell(text).Number();
    } catch (const Error& error) {
      throw Error::Format("{}: {}: {}", path_.string(), name, error.what());
    }
    return text;
  }
  std::string Status() const {
    const std::string text = Part("status", "", "");
    std::string status = text.substr(0, text.find(':'));
    if (status == "finished" || status == "diverged") return status;
    throw Error::Format(
        "{}: status: expected finished or diverged, found \"{}\"", path_.string(), text);
  }

 private:
  fs::path path_;
  std::map<std::string, std::string> lines_;
};

// Returns true for keys whose values the data set (FitToData).
bool IsOfData(std::string_view key, const TrainConfig& config) {
  return key.starts_with("data.") ||
         (key == "model.context" && !TraitsOf(config.model.kind).has_tokens);
}

}  // namespace

std::string RunDigest(const fs::path& directory) {
  std::string lines;
  for (const char* const name : kDigestOf) {
    if (!Exists(directory / name)) {
      throw Error::Format(
          "{}: has no {}: no training, or one that has not ended", directory.string(), name);
    }
    lines += fmt::format("{}  {}\n", DescribeOutput(directory, name).sha256, name);
  }
  return Sha256OfText(lines);
}

TrainingRun ReadTrainingRun(const fs::path& directory) {
  TrainingRun run{.config = ReadTrainConfig(directory / kConfig, {}), .outcomes = {}};
  const Summary summary(directory / kSummary);
  const Table valid = ReadCsv(directory / kValid);
  const std::string status = summary.Status();
  const bool finished = status == "finished";
  auto& outcomes = run.outcomes;
  outcomes["status"] = status;
  outcomes["steps"] = summary.Number("steps", "", " of ");
  outcomes["parameters"] = summary.Number("model", ", ", " parameters");
  if (!valid.rows.empty() && valid.Number(0, "step") == 0) {
    outcomes["start_loss"] = valid.Text(0, "loss");
  }
  outcomes["train_loss"] = summary.Number("training loss", "", " (");
  outcomes["valid_loss"] = finished ? summary.Number("validation loss") : "inf";
  const bool zero_shot = finished && summary.Has("zero-shot accuracy");
  outcomes["zero_shot"] = zero_shot ? summary.Number("zero-shot accuracy", "", " (") : "nan";
  const bool bound = summary.Has("entropy bound");
  outcomes["entropy_bound"] = bound ? summary.Number("entropy bound") : "nan";
  outcomes["m_bytes"] = summary.Number("bytes per parameter", "m ", ", v ");
  outcomes["v_bytes"] = summary.Number("bytes per parameter", ", v ", ", ");
  return run;
}

bool IsDoubling(uint64_t step, uint64_t steps, int64_t validations) {
  for (int64_t i = 0; i < validations && steps > 0; ++i, steps /= 2) {
    if (step == steps) return true;
  }
  return false;
}

DoublingLosses ReadDoublings(const fs::path& directory, uint64_t steps, int64_t validations) {
  const Table valid = ReadCsv(directory / kValid);
  DoublingLosses found;
  for (size_t i = 0; i < valid.rows.size(); ++i) {
    const auto step = static_cast<uint64_t>(valid.Number(i, "step"));
    if (step != 0 && !IsDoubling(step, steps, validations)) continue;
    found.losses[step] = valid.Text(i, "loss");
  }
  for (int64_t i = validations - 1; i >= 0; --i) {
    const auto loss = found.losses.find(steps >> i);
    if (loss == found.losses.end()) {
      if (Summary(directory / kSummary).Status() == "diverged") found.early_loss = "inf";
      return found;
    }
    if (loss->first > 0 && std::isfinite(Cell(loss->second).Number())) {
      found.early_loss = loss->second;
      return found;
    }
  }
  return found;
}

DoublingLosses AddDoublings(const fs::path& directory,
                            const TrainingOfRow& training,
                            TrainingRun& run) {
  if (training.validations == 0) return {};
  DoublingLosses found =
      ReadDoublings(directory, training.config.train.steps, training.validations);
  if (!found.early_loss.empty()) run.outcomes["early_loss"] = found.early_loss;
  return found;
}

std::map<uint64_t, double> ReadLosses(const fs::path& directory) {
  std::map<uint64_t, double> losses;
  const Table train = ReadCsv(directory / kTrain);
  for (size_t i = 0; i < train.rows.size(); ++i) {
    losses[static_cast<uint64_t>(train.Number(i, "step")) + 1] = train.Number(i, "loss");
  }
  return losses;
}

ConfigDifferences CompareConfigs(const TrainConfig& run, const TrainConfig& expected) {
  std::map<std::string, std::string> values;
  for (const ConfigKey& key : ConfigKeys(expected)) values[key.name] = key.value;
  ConfigDifferences differences;
  const auto add = [&](const std::string& key, const std::string& own, const std::string& other) {
    if (own == other || IsRecordKey(key)) return;
    auto& list = IsOfData(key, run) ? differences.of_data : differences.others;
    list.push_back(fmt::format("{} is {}, not {}", key, own, other));
  };
  for (const ConfigKey& key : ConfigKeys(run)) {
    const auto found = values.find(key.name);
    add(key.name, key.value, found == values.end() ? "unset" : found->second);
    if (found != values.end()) values.erase(found);
  }
  for (const auto& [name, value] : values) add(name, "unset", value);
  return differences;
}

}  // namespace numsim::experiments
