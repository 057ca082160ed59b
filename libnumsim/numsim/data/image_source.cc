#include "numsim/data/image_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/data/shuffle.h"
#include "numsim/data/split.h"

namespace numsim {

ImageSource::ImageSource(std::string name, ImageSet train, ImageSet valid)
    : name_(std::move(name)),
      train_(std::move(train)),
      valid_(std::move(valid)),
      values_(train_.pixels, 1) {
  NUMSIM_CHECK(train_.rows == valid_.rows && train_.cols == valid_.cols && valid_.count >= 1,
               "{} x {} and {} x {}",
               train_.rows,
               train_.cols,
               valid_.rows,
               valid_.cols);
  shape_.height = train_.rows;
  shape_.width = train_.cols;
  shape_.channels = 1;
  shape_.classes = std::max(train_.classes, valid_.classes);
  shape_.train_examples = train_.count;
  shape_.valid_examples = valid_.count;
}

size_t ImageSource::TrainBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return train_.count / count;
}

size_t ImageSource::ValidBatches(size_t count, size_t /*length*/) const {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  return valid_.count / count;
}

void ImageSource::StartBatch(size_t count, Batch& batch) const {
  batch.examples = count;
  batch.length = 0;
  batch.tokens.clear();
  batch.targets.resize(count);
  batch.ends.clear();
  batch.concepts.clear();
  batch.values.resize(count * shape_.height * shape_.width);
}

void ImageSource::Write(const ImageSet& set, size_t image, size_t example, Batch& batch) const {
  const size_t pixels = set.rows * set.cols;
  values_.Write(std::span(set.pixels).subspan(image * pixels, pixels),
                std::span(batch.values).subspan(example * pixels, pixels));
  batch.targets[example] = set.labels[image];
}

void ImageSource::TrainBatch(
    uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const {
  const uint64_t batches = TrainBatches(count, length);
  NUMSIM_CHECK(batches >= 1, "no batch of {}", count);
  StartBatch(count, batch);
  const EpochShuffle shuffle(shuffle_seed, index / batches, train_.count);
  for (size_t i = 0; i < count; ++i) {
    Write(train_, shuffle(index % batches * count + i), i, batch);
  }
}

void ImageSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_CHECK(index < ValidBatches(count, length), "validation batch {}", index);
  StartBatch(count, batch);
  for (size_t i = 0; i < count; ++i) Write(valid_, index * count + i, i, batch);
}

std::string ImageSource::Describe() const {
  return fmt::format(
      "{} images of {} x {} and {} classes from {}, {} for "
      "training, {} for validation",
      train_.count + valid_.count,
      shape_.height,
      shape_.width,
      shape_.classes,
      name_,
      train_.count,
      valid_.count);
}

std::unique_ptr<const DataSource> OpenIdxImages(const DataConfig& config) {
  const bool apart = !config.valid_path.empty();
  const std::filesystem::path& valid_path = apart ? config.valid_path : config.path;
  ImageSet train = ReadIdxImages(config.path, true);
  ImageSet valid = ReadIdxImages(valid_path, apart);
  if (train.rows != valid.rows || train.cols != valid.cols) {
    throw Error::Format("{}: validation images of {} x {}, expected {} x {} as for training",
                        valid_path.string(),
                        valid.rows,
                        valid.cols,
                        train.rows,
                        train.cols);
  }
  std::string name = config.path.filename().string();
  if (apart) name += " and " + config.valid_path.filename().string();
  return std::make_unique<ImageSource>(std::move(name), std::move(train), std::move(valid));
}

std::unique_ptr<const DataSource> OpenGeneratedImages(const DataConfig& config) {
  const uint64_t seed = DeriveSeed(config.seed, RandomPurpose::kShapes);
  const size_t train_count = TrainShare(config.size, config.valid_share);
  const auto generate = [&](uint64_t stream, size_t count) {
    return GenerateImages({seed, stream}, count, config.image, config.image, config.classes);
  };
  return std::make_unique<ImageSource>(fmt::format("the generator with seed {}", config.seed),
                                       generate(0, train_count),
                                       generate(1, config.size - train_count));
}

}  // namespace numsim
