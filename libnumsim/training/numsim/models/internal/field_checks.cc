#include "numsim/models/internal/field_checks.h"

#include <fmt/format.h>

#include <string>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Sizes are multiplied; with larger ones a product might not fit 64 bits. Tokens are int32.
constexpr size_t kLargest = size_t{1} << 30;

// The most blocks of a model, over all towers: its linear layers then have numbers below
// kMaxLinearLayers, at four per block and a few outside.
constexpr size_t kMostBlocks = 1000;

std::string KeyOf(std::string_view field) { return fmt::format("model.{}", field); }

void CheckDivides(std::string_view field, size_t part, std::string_view whole_name, size_t whole) {
  if (whole % part != 0) {
    throw KeyError::Format(
        KeyOf(field), "{} does not divide {} = {}", part, KeyOf(whole_name), whole);
  }
}

}  // namespace

void CheckSize(std::string_view field, size_t size) {
  if (size == 0) throw KeyError::Format(KeyOf(field), "0");
  if (size > kLargest) throw KeyError::Format(KeyOf(field), "{} is above {}", size, kLargest);
}

void CheckOptionalSize(std::string_view field, size_t size) {
  if (size != 0) CheckSize(field, size);
}

void CheckBlocks(std::string_view field, size_t blocks) {
  if (blocks > kMostBlocks) {
    throw KeyError::Format(KeyOf(field),
                           "{} blocks are more than {}, the most that all towers may have together",
                           blocks,
                           kMostBlocks);
  }
}

void CheckHeads(const ModelConfig& config) {
  CheckSize("heads", config.heads);
  CheckDivides("heads", config.heads, "width", config.width);
}

void CheckImage(const ModelConfig& config) {
  if (!(config.patch_dropout >= 0 && config.patch_dropout < 1)) {
    throw KeyError::Format("model.patch_dropout", "{} is not in [0, 1)", config.patch_dropout);
  }
  CheckSize("image", config.image);
  CheckSize("channels", config.channels);
  CheckSize("patch", config.patch);
  CheckDivides("patch", config.patch, "image", config.image);
}

void CheckTokens(const ModelConfig& config) {
  CheckSize("vocabulary", config.vocabulary);
  CheckSize("context", config.context);
}

void FitImage(ModelConfig& config, const DataShape& data) {
  if (data.height != data.width) {
    throw KeyError::Format(
        "data.path", "images of {} x {} pixels are not square", data.height, data.width);
  }
  config.image = data.height;
  config.channels = data.channels;
}

}  // namespace numsim
