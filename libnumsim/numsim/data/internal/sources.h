// The sources of training data, one class per kind.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "numsim/data/image_set.h"
#include "numsim/data/internal/caption_set.h"
#include "numsim/data/internal/pixel_values.h"
#include "numsim/data/source.h"

namespace numsim {

// Sources whose examples stand for themselves: batches are single examples, shuffled.

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

// Text as bytes.

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

// Labelled images (image_set.h).

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

// Normal features, for a student that learns from a teacher.

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

// An epoch of batches in which no concept occurs twice.

// Examples grouped by concept, and how many batches of `count` an epoch has. With B batches each
// concept takes part with at most B of its examples; B is the largest number for which enough
// examples are left to fill B batches. Where no concept has more than examples / count examples,
// every example takes part, and B is as large as without the rule.
class DistinctBatches {
 public:
  // Requires count >= 1.
  DistinctBatches(std::span<const int32_t> concepts, size_t count);

  size_t Batches() const { return batches_; }

  // The examples of an epoch: batch b has order[b * count] and up. (seed, epoch) decides it. The
  // concepts come in a random order, the examples of each in a random order and at most B of them,
  // and they are dealt out to the batches in turn. So examples of a concept lie in neighbouring
  // batches, and batches are filled evenly; what is over count is left out of the epoch.
  std::vector<uint32_t> Order(uint64_t seed, uint64_t epoch) const;

 private:
  size_t count_, batches_ = 0;
  std::vector<uint32_t> examples_;  // by concept
  std::vector<size_t> ends_;        // of each concept's examples
};

// Images with captions, for CLIP.

// Tokens of a caption: a start token, its bytes, an end token, then padding.
inline constexpr int32_t kStartToken = 256, kEndToken = 257, kPadToken = 258;
inline constexpr size_t kCaptionVocabulary = 259;
// The longest sequence, as in [CLIP]. Longer captions lose their end, at the end of a character.
inline constexpr size_t kMaxCaptionTokens = 77;

// The bytes of `caption` that are kept. Requires UTF-8.
std::string_view KeptCaption(std::string_view caption);

// Sequences are as long as the longest caption of training and validation together needs, at most
// kMaxCaptionTokens. Values are those of PixelValues, made from the training images. A batch's ends
// are places from 0 to length - 1; its concepts are those of the set.
class CaptionSource final : public DataSource {
 public:
  // Requires sets of images of one shape, neither empty. Concepts are compared within a set alone.
  CaptionSource(std::string name, CaptionSet train, CaptionSet valid, bool distinct_concepts);

  const DataShape& shape() const override { return shape_; }
  // With distinct concepts an epoch's order is made once and kept, for the last few (shuffle_seed,
  // epoch, count) that were asked for.
  void TrainBatch(uint64_t shuffle_seed,
                  uint64_t index,
                  size_t count,
                  size_t length,
                  Batch& batch) const override;
  size_t TrainBatches(size_t count, size_t length) const override;
  // Concepts may occur twice.
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const override;
  size_t ValidBatches(size_t count, size_t length) const override;
  std::string Describe() const override;

 private:
  struct Order {
    uint64_t seed, epoch;
    size_t count;
    std::vector<uint32_t> examples;
  };

  std::shared_ptr<const DistinctBatches> DistinctOf(size_t count) const;
  std::shared_ptr<const Order> OrderOf(uint64_t seed, uint64_t epoch, size_t count) const;
  void StartBatch(size_t count, Batch& batch) const;
  void Write(const CaptionSet& set, size_t image, size_t example, Batch& batch) const;

  std::string name_;
  CaptionSet train_, valid_;
  bool distinct_concepts_;
  PixelValues values_;
  DataShape shape_;
  mutable std::mutex mutex_;  // of what is kept
  mutable std::vector<std::pair<size_t, std::shared_ptr<const DistinctBatches>>> distinct_;
  mutable std::vector<std::shared_ptr<const Order>> orders_;  // the last one asked for first
};

// A folder (caption_set.h). Without config.valid_path validation is what meta.tsv says, or else
// valid_share of the concepts, at least one, drawn by config.seed. Throws Error naming the folder
// where training or validation has no image, or where the two folders' images differ in shape.
std::unique_ptr<const DataSource> OpenCaptions(const DataConfig& config);

// generate_shapes.h.
std::unique_ptr<const DataSource> OpenGeneratedShapes(const DataConfig& config);

}  // namespace numsim
