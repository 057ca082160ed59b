#include "numsim/base/error.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"

namespace numsim {

size_t ExampleSource::TrainBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return shape_.train_examples / count;
}

size_t ExampleSource::ValidBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return shape_.valid_examples / count;
}

void ExampleSource::StartBatch(size_t count, Batch& batch) const {
  batch.examples = count;
  batch.length = 0;
  batch.tokens.clear();
  batch.targets.clear();
  batch.ends.clear();
  batch.concepts.clear();
  MakeRoom(count, batch);
}

void ExampleSource::TrainBatch(
    uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const {
  const uint64_t batches = TrainBatches(count, length);
  NUMSIM_CHECK(batches >= 1, "no batch of {}", count);
  StartBatch(count, batch);
  const EpochShuffle shuffle(shuffle_seed, index / batches, shape_.train_examples);
  for (size_t i = 0; i < count; ++i) {
    Write(Part::kTrain, shuffle(index % batches * count + i), i, batch);
  }
}

void ExampleSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_CHECK(index < ValidBatches(count, length), "validation batch {}", index);
  StartBatch(count, batch);
  for (size_t i = 0; i < count; ++i) Write(Part::kValid, index * count + i, i, batch);
}

}  // namespace numsim
