#include <fmt/format.h>

#include <span>

#include "numsim/base/error.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/split.h"
#include "numsim/random/distributions.h"

namespace numsim {
namespace {

constexpr uint64_t kTrainStream = 0, kValidStream = 1;

}  // namespace

FeatureSource::FeatureSource(uint64_t seed, size_t features, size_t train_rows, size_t valid_rows)
    : seed_(seed) {
  NUMSIM_CHECK(features >= 1 && train_rows >= 1 && valid_rows >= 1, "{} features", features);
  shape_.features = features;
  shape_.train_examples = train_rows;
  shape_.valid_examples = valid_rows;
}

void FeatureSource::MakeRoom(size_t count, Batch& batch) const {
  batch.values.resize(count * shape_.features);
}

void FeatureSource::Write(Part part, uint64_t row, size_t example, Batch& batch) const {
  const uint64_t stream = part == Part::kTrain ? kTrainStream : kValidStream;
  FillNormal({DeriveSeed(seed_, RandomPurpose::kFeatures), stream},
             row * shape_.features,
             std::span(batch.values).subspan(example * shape_.features, shape_.features));
}

std::string FeatureSource::Describe() const {
  return fmt::format(
      "{} rows of {} normal features of seed {}, {} for "
      "training, {} for validation",
      shape_.train_examples + shape_.valid_examples,
      shape_.features,
      seed_,
      shape_.train_examples,
      shape_.valid_examples);
}

std::unique_ptr<const DataSource> OpenFeatures(const DataConfig& config) {
  const size_t train_rows = TrainShare(config.size, config.valid_share);
  return std::make_unique<FeatureSource>(
      config.seed, config.features, train_rows, config.size - train_rows);
}

}  // namespace numsim
