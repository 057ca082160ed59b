#include "experiments/shared/training.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "experiments/runner/option_names.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr size_t kHeadWidth = 32;
constexpr size_t kByteVocabulary = 256;

// Returns the number of different tokens of a text: of the option `vocabulary`, or else of bytes.
size_t VocabularyOf(const Settings& settings) {
  if (!settings.options.contains("vocabulary")) return kByteVocabulary;
  return static_cast<size_t>(settings.GetInteger("vocabulary", 2, 1 << 16));
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

double CostPerToken(const ModelConfig& model) {
  constexpr double kAttention = 64;  // as wide as the context of most studies
  const auto width = static_cast<double>(model.width);
  return static_cast<double>(model.layers) * width * (width + kAttention);
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

void TrainingRows::Rekey() {
  for (auto& [table, rows] : rows_) {
    for (Row& row : rows) std::ranges::copy(key_, row.begin());
  }
}

double FinalLoss(Trainer& trainer) {
  return trainer.status() == TrainStatus::kFinished ? trainer.Validate().Mean()
                                                    : std::numeric_limits<double>::infinity();
}

}  // namespace numsim::experiments
