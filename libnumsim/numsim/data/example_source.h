// Sources whose examples stand for themselves: batches are single examples, shuffled.
#pragma once

#include "numsim/data/source.h"

namespace numsim {

// Batches as DataSource promises them, made of examples that a kind of data writes one by one.
class ExampleSource : public DataSource {
 public:
  const DataShape& shape() const final { return shape_; }
  void TrainBatch(
      uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const final;
  size_t TrainBatches(size_t count, size_t length) const final;
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const final;
  size_t ValidBatches(size_t count, size_t length) const final;

 protected:
  enum class Part : uint8_t { kTrain, kValid };

  DataShape shape_;  // complete when the constructor of the kind ends

 private:
  // Makes room in `batch` for what the kind has of `count` examples; all else is empty by then.
  virtual void MakeRoom(size_t count, Batch& batch) const = 0;
  // Example `row` of that part as number `example` of the batch.
  virtual void Write(Part part, uint64_t row, size_t example, Batch& batch) const = 0;

  void StartBatch(size_t count, Batch& batch) const;
};

}  // namespace numsim
