// Text as bytes.
#pragma once

#include <memory>
#include <string>

#include "numsim/data/source.h"

namespace numsim {

class TextSource final : public DataSource {
 public:
  // `name` is for Describe. entropy_bound: of `valid`, in nats a byte.
  TextSource(std::string name,
             std::string train,
             std::string valid,
             std::optional<double> entropy_bound);

  const DataShape& shape() const override { return shape_; }
  void TrainBatch(uint64_t shuffle_seed,
                  uint64_t index,
                  size_t count,
                  size_t length,
                  Batch& batch) const override;
  size_t TrainBatches(size_t count, size_t length) const override;
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const override;
  size_t ValidBatches(size_t count, size_t length) const override;
  std::optional<double> EntropyBound() const override { return entropy_bound_; }
  std::string Describe() const override;

 private:
  std::string name_, train_, valid_;
  std::optional<double> entropy_bound_;
  DataShape shape_;
};

// A UTF-8 file (utf8_file.h). Without config.valid_path its end is for validation, from the first
// character on that begins at or behind (1 - valid_share) of its bytes. Throws Error naming the
// file when either part would have less than two bytes.
std::unique_ptr<const DataSource> OpenTextFile(const DataConfig& config);

// generate_text.h: parts 0 and 1 of the seed, so training and validation share no document.
std::unique_ptr<const DataSource> OpenGeneratedText(const DataConfig& config);

}  // namespace numsim
