// Normal features, for a student that learns from a teacher.
#pragma once

#include "numsim/data/example_source.h"

namespace numsim {

// Rows of independent normal draws of mean 0 and deviation 1, made when a batch asks for them: row
// i of training is draws i * features and up of stream 0 of the seed, of validation of stream 1.
class FeatureSource final : public ExampleSource {
 public:
  FeatureSource(uint64_t seed, size_t features, size_t train_rows, size_t valid_rows);

  std::string Describe() const override;

 private:
  void MakeRoom(size_t count, Batch& batch) const override;
  void Write(Part part, uint64_t row, size_t example, Batch& batch) const override;

  uint64_t seed_;
};

std::unique_ptr<const DataSource> OpenFeatures(const DataConfig& config);

}  // namespace numsim
