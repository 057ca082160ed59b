#include "numsim/data/feature_source.h"

#include <fmt/format.h>

#include <span>

#include "numsim/base/error.h"
#include "numsim/data/shuffle.h"
#include "numsim/data/split.h"
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

size_t FeatureSource::TrainBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return shape_.train_examples / count;
}

size_t FeatureSource::ValidBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return shape_.valid_examples / count;
}

void FeatureSource::StartBatch(size_t count, Batch& batch) const {
  batch.examples = count;
  batch.length = 0;
  batch.tokens.clear();
  batch.targets.clear();
  batch.ends.clear();
  batch.concepts.clear();
  batch.values.resize(count * shape_.features);
}

void FeatureSource::Write(uint64_t stream, uint64_t row, size_t example, Batch& batch) const {
  FillNormal({DeriveSeed(seed_, RandomPurpose::kFeatures), stream},
             row * shape_.features,
             std::span(batch.values).subspan(example * shape_.features, shape_.features));
}

void FeatureSource::TrainBatch(
    uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const {
  const uint64_t batches = TrainBatches(count, length);
  NUMSIM_CHECK(batches >= 1, "no batch of {}", count);
  StartBatch(count, batch);
  const EpochShuffle shuffle(shuffle_seed, index / batches, shape_.train_examples);
  for (size_t i = 0; i < count; ++i) {
    Write(kTrainStream, shuffle(index % batches * count + i), i, batch);
  }
}

void FeatureSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_CHECK(index < ValidBatches(count, length), "validation batch {}", index);
  StartBatch(count, batch);
  for (size_t i = 0; i < count; ++i) Write(kValidStream, index * count + i, i, batch);
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
