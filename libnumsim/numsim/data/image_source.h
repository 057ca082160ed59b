// Labelled images (image_set.h).
#pragma once

#include <memory>
#include <string>

#include "numsim/data/image_set.h"
#include "numsim/data/pixel_values.h"
#include "numsim/data/source.h"

namespace numsim {

// Values are those of PixelValues, made from the training images; targets are labels.
class ImageSource final : public DataSource {
 public:
  // Requires sets of images of one size, neither empty. `name` is for Describe.
  ImageSource(std::string name, ImageSet train, ImageSet valid);

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
  void Write(const ImageSet& set, size_t image, size_t example, Batch& batch) const;

  std::string name_;
  ImageSet train_, valid_;
  PixelValues values_;
  DataShape shape_;
};

// Training from the folder's files train-*, validation from its files t10k-*, or with
// config.valid_path from the train-* of that folder. Throws Error as ReadIdxImages does, and when
// the two differ in the size of images.
std::unique_ptr<const DataSource> OpenIdxImages(const DataConfig& config);

// GenerateImages: streams 0 and 1 of the seed for training and validation.
std::unique_ptr<const DataSource> OpenGeneratedImages(const DataConfig& config);

}  // namespace numsim
