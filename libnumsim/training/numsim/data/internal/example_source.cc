#include "numsim/base/require.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"

namespace numsim {

size_t ExampleSource::TrainBatches(size_t count, size_t /*length*/) const {
  NUMSIM_REQUIRE(count >= 1, "a batch of 0 examples, expected at least 1");
  return shape_.train_examples / count;
}

size_t ExampleSource::ValidBatches(size_t count, size_t /*length*/) const {
  NUMSIM_REQUIRE(count >= 1, "a batch of 0 examples, expected at least 1");
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
  NUMSIM_REQUIRE(batches >= 1, "TrainBatch: the data do not fill a batch of {}", count);
  StartBatch(count, batch);
  const EpochShuffle shuffle(shuffle_seed, index / batches, shape_.train_examples);
  for (size_t i = 0; i < count; ++i) {
    Write(Part::kTrain, shuffle(index % batches * count + i), i, batch);
  }
}

void ExampleSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_REQUIRE(index < ValidBatches(count, length),
                 "ValidBatch: batch {}, expected less than {}",
                 index,
                 ValidBatches(count, length));
  StartBatch(count, batch);
  for (size_t i = 0; i < count; ++i) Write(Part::kValid, index * count + i, i, batch);
}

}  // namespace numsim
