// Labelled images (image_set.h).
#pragma once

#include <memory>
#include <string>

#include "numsim/data/example_source.h"
#include "numsim/data/image_set.h"
#include "numsim/data/pixel_values.h"

namespace numsim {

// Values are those of PixelValues, made from the training images; targets are labels.
class ImageSource final : public ExampleSource {
 public:
  // Requires sets of images of one size, neither empty. `name` is for Describe.
  ImageSource(std::string name, ImageSet train, ImageSet valid);

  std::string Describe() const override;

 private:
  void MakeRoom(size_t count, Batch& batch) const override;
  void Write(Part part, uint64_t row, size_t example, Batch& batch) const override;

  std::string name_;
  ImageSet train_, valid_;
  PixelValues values_;
};

// Training from the folder's files train-*, validation from its files t10k-*, or with
// config.valid_path from the train-* of that folder. Throws Error as ReadIdxImages does, and when
// the two differ in the size of images.
std::unique_ptr<const DataSource> OpenIdxImages(const DataConfig& config);

// GenerateImages: streams 0 and 1 of the seed for training and validation.
std::unique_ptr<const DataSource> OpenGeneratedImages(const DataConfig& config);

}  // namespace numsim
