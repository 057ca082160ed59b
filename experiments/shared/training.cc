#include "experiments/shared/training.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "experiments/runner/option_names.h"
#include "experiments/runner/settings.h"
#include "numsim/base/error.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments {
namespace {

constexpr int64_t kLeastText = 1 << 14;
constexpr size_t kHeadWidth = 32;
constexpr size_t kByteVocabulary = 256;

void ReadWhole(const Settings& settings, std::string_view option, int64_t most, size_t& value) {
  if (!settings.options.contains(std::string(option))) return;
  value = static_cast<size_t>(settings.GetInteger(option, 1, most));
}

void ReadNumber(
    const Settings& settings, std::string_view option, double low, double high, double& value) {
  if (settings.options.contains(std::string(option))) value = settings.GetDouble(option, low, high);
}

bool ReadsText(const DataConfig& data) {
  return data.kind == DataKind::kText || data.kind == DataKind::kGeneratedText;
}

// Returns the options that may set a configuration key, the likeliest first.
std::vector<std::string> CandidatesFor(const std::string& key,
                                       const DataConfig& data,
                                       const OptionsOfKeys& options) {
  std::vector<std::string> candidates = OptionsForKey(key);
  // An experiment may have options for texts and for images; data have one of them.
  const std::string_view other = ReadsText(data) ? "captions shapes" : "text text-size";
  std::erase_if(candidates, [&](const std::string& option) {
    return key.starts_with("data.") && other.find(option) != other.npos;
  });
  const auto own = options.find(key);
  if (own != options.end()) candidates.insert(candidates.begin(), own->second);
  return candidates;
}

// Turns an error about a configuration key into one about the option that sets the key. Leaves the
// message as it is if no option does.
KeyError OfOption(const Settings& settings,
                  const TrainConfig& config,
                  const OptionsOfKeys& options,
                  const KeyError& error) {
  for (const std::string& option : CandidatesFor(error.key(), config.data, options)) {
    if (!settings.options.contains(option)) continue;
    return KeyError("--" + option, error.text());
  }
  return error;
}

// Returns the assignments of the option `keys`; none if the experiment does not declare it.
std::vector<std::string> KeysOf(const Settings& settings) {
  const auto keys = settings.options.find(std::string(kKeysOption));
  if (keys == settings.options.end() || keys->second.empty()) return {};
  std::vector<std::string> assignments;
  std::istringstream pieces(keys->second);
  for (std::string piece; std::getline(pieces, piece, ';');) assignments.push_back(piece);
  return assignments;
}

// Returns the number of different tokens of a text: of the option `vocabulary`, or else of bytes.
size_t VocabularyOf(const Settings& settings) {
  if (!settings.options.contains("vocabulary")) return kByteVocabulary;
  return static_cast<size_t>(settings.GetInteger("vocabulary", 2, 1 << 16));
}

// Throws Error if `config` lacks a value that the option `keys` sets, because the experiment sets
// it after ReadTraining.
void CheckKeys(const Settings& settings, const TrainConfig& config) {
  for (const std::string& assignment : KeysOf(settings)) {
    TrainConfig wanted = config;
    SetConfigKeys({assignment}, wanted);
    if (WriteTrainConfig(wanted) == WriteTrainConfig(config)) continue;
    throw Error::Format("--set {}: the experiment sets this key itself", assignment);
  }
}

// Parses an integer from `low` to `high`; returns 0 for anything else.
size_t SizePart(std::string_view text, size_t low, size_t high) {
  if (text.empty() || text.size() > 6) return 0;
  size_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return 0;
    value = 10 * value + static_cast<size_t>(c - '0');
  }
  return value < low || value > high ? 0 : value;
}

}  // namespace

Option KeysOption() {
  return {
      std::string(kKeysOption),
      "",
      "",
      "further keys of numsim train, KEY=VALUE separated by ';' (--set and --config add to them)"};
}

void ReadTraining(const Settings& settings, uint64_t seed, TrainConfig& config) {
  ReadWhole(settings, "layers", 128, config.model.layers);
  ReadWhole(settings, "width", 1 << 16, config.model.width);
  ReadWhole(settings, "heads", 1 << 16, config.model.heads);
  ReadWhole(settings, "context", 1 << 20, config.model.context);
  ReadWhole(settings, "batch", 1 << 20, config.train.batch);
  ReadWhole(settings, "steps", kMostSteps, config.train.steps);
  ReadWhole(settings, "valid-batches", 1 << 20, config.train.valid_batches);
  ReadNumber(settings, "lr", 1e-12, 100, config.schedule.peak);
  if (settings.options.contains("warmup")) {
    config.schedule.warmup = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  }
  OptimizerConfig& optimizer = config.optimizer;
  ReadNumber(settings, "epsilon", 1e-30, 1, optimizer.epsilon);
  ReadNumber(settings, "beta1", 0, 1 - 1e-12, optimizer.beta1);
  ReadNumber(settings, "beta2", 0, 1 - 1e-12, optimizer.beta2);
  ReadNumber(settings, "weight-decay", 0, 100, optimizer.weight_decay);
  ReadNumber(settings, "clip", 0, 1e9, optimizer.clip_norm);
  ReadNumber(settings, "final-lr", 0, 1, config.schedule.final);
  if (settings.options.contains("optimizer")) {
    optimizer.kind = ParseOptimizerKind(settings.Get("optimizer"));
  }
  if (settings.options.contains("storage")) {
    config.storage.activations = config.storage.gradients = ParseFormat(settings.Get("storage"));
  }
  config.schedule.steps = config.train.steps;
  config.train.seed = seed;
  config.train.valid_every = 0;
  SetConfigKeys(KeysOf(settings), config);
}

void ReadTextData(const Settings& settings, DataConfig& data) {
  const std::string& text = settings.Get("text");
  data.kind = text.empty() ? DataKind::kGeneratedText : DataKind::kText;
  data.path = text;
  const size_t vocabulary = VocabularyOf(settings);
  if (vocabulary != kByteVocabulary) {
    data.vocabulary = vocabulary;
    if (text.empty()) {
      data.kind = DataKind::kZipf;
    } else {
      data.tokenizer = TokenizerKind::kBpe;
    }
  }
  data.size = static_cast<size_t>(settings.GetInteger("text-size", kLeastText, int64_t{1} << 32));
}

void ReadCaptions(const Settings& settings, DataConfig& data) {
  const std::string& folder = settings.Get("captions");
  data.kind = folder.empty() ? DataKind::kGeneratedShapes : DataKind::kCaptions;
  data.path = folder;
  if (!folder.empty()) return;
  data.size = static_cast<size_t>(settings.GetInteger("shapes", 64, 1 << 24));
  data.image = static_cast<size_t>(settings.GetInteger("image", 16, 64));
}

void ReadPatchDropout(const Settings& settings, ModelConfig& model) {
  const double share = settings.GetDouble("patch-dropout", 0, std::nextafter(1.0, 0.0));
  model.patch_dropout = model.kind == ModelKind::kClip ? share : 0;
}

ModelSize ParseSize(std::string_view option, const std::string& text) {
  const size_t cross = text.find('x');
  if (cross != std::string::npos) {
    const std::string_view all = text;
    const ModelSize size{SizePart(all.substr(0, cross), 1, 128),
                         SizePart(all.substr(cross + 1), 16, 8192)};
    if (size.layers != 0 && size.width != 0) return size;
  }
  throw Error::Format("--{}: '{}' is not LAYERSxWIDTH from 1x16 to 128x8192", option, text);
}

std::vector<ModelSize> ReadSizes(const Settings& settings, std::string_view option) {
  std::vector<ModelSize> sizes;
  for (const std::string& text : settings.GetList(option)) sizes.push_back(ParseSize(option, text));
  return sizes;
}

std::string Text(const ModelSize& size) { return fmt::format("{}x{}", size.layers, size.width); }

void SetSize(const ModelSize& size, ModelConfig& model) {
  model.layers = size.layers;
  model.width = size.width;
  model.heads = size.width % kHeadWidth == 0 ? size.width / kHeadWidth : 1;
}

std::string TrainingScaleText(const Settings& settings, const Tables&) {
  std::string text;
  const auto add = [&](const char* option, const char* format) {
    const auto found = settings.options.find(option);
    if (found == settings.options.end()) return;
    text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(format), found->second);
  };
  add("layers", "{} layers");
  add("width", "width {}");
  add("sizes", "layers x width {}");
  add("steps", "{} steps");
  if (VocabularyOf(settings) != kByteVocabulary) add("vocabulary", "vocabulary {}");
  return text;
}

void CheckTraining(const Settings& settings, const TrainConfig& config) {
  CheckTrainings(settings, {&config, 1}, {});
}

void CheckTrainings(const Settings& settings,
                    std::span<const TrainConfig> configs,
                    const OptionsOfKeys& options) {
  std::unique_ptr<const DataSource> data;
  for (const TrainConfig& config : configs) {
    CheckKeys(settings, config);
    try {
      CheckTrainConfig(config);
      if (data == nullptr) data = OpenData(config.data);
      TrainConfig fitted = config;
      FitToData(fitted, data->shape());
      data->CheckBatch(fitted.train.batch, fitted.model.context);
    } catch (const KeyError& error) {
      throw OfOption(settings, config, options, error);
    }
  }
}

bool LossCurve::Add(const Trainer& trainer) {
  ++steps_;
  ++since_;
  sum_ += trainer.last_loss();
  if (steps_ % every_ != 0 && trainer.status() != TrainStatus::kFinished) return false;
  loss_ = sum_ / static_cast<double>(since_);
  since_ = 0;
  sum_ = 0;
  return true;
}

void TrainingRows::Add(std::string_view table, const Row& cells) {
  Row row = key_;
  row.insert(row.end(), cells.begin(), cells.end());
  rows_[std::string(table)].push_back(std::move(row));
}

double FinalLoss(Trainer& trainer) {
  return trainer.status() == TrainStatus::kFinished ? trainer.Validate().Mean()
                                                    : std::numeric_limits<double>::infinity();
}

}  // namespace numsim::experiments
