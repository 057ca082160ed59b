#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/split.h"

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

void ImageSource::MakeRoom(size_t count, Batch& batch) const {
  batch.targets.resize(count);
  batch.values.resize(count * shape_.height * shape_.width);
}

void ImageSource::Write(Part part, uint64_t row, size_t example, Batch& batch) const {
  const ImageSet& set = part == Part::kTrain ? train_ : valid_;
  const size_t pixels = set.rows * set.cols;
  values_.Write(std::span(set.pixels).subspan(row * pixels, pixels),
                std::span(batch.values).subspan(example * pixels, pixels));
  batch.targets[example] = set.labels[row];
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
