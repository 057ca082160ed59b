// Normal features, for a student that learns from a teacher.
#pragma once

#include "numsim/data/source.h"

namespace numsim {

// Rows of independent normal draws of mean 0 and deviation 1, made when a batch asks for them: row
// i of training is draws i * features and up of stream 0 of the seed, of validation of stream 1.
class FeatureSource final : public DataSource {
 public:
  FeatureSource(uint64_t seed, size_t features, size_t train_rows, size_t valid_rows);

  const DataShape& shape() const override { return shape_; }
  void TrainBatch(uint64_t shuffle_seed,
                  uint64_t index,
                  size_t count,
                  size_t length,
                  Batch& batch) const override;
  size_t TrainBatches(size_t count, size_t length) const override;
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const override;
  size_t ValidBatches(size_t count, size_t length) const override;
  std::string Describe() const override;

 private:
  void StartBatch(size_t count, Batch& batch) const;
  void Write(uint64_t stream, uint64_t row, size_t example, Batch& batch) const;

  uint64_t seed_;
  DataShape shape_;
};

std::unique_ptr<const DataSource> OpenFeatures(const DataConfig& config);

}  // namespace numsim
