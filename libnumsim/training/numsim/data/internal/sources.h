// The sources of training data, one class per kind.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/data/image_set.h"
#include "numsim/data/internal/caption_set.h"
#include "numsim/data/internal/pixel_values.h"
#include "numsim/data/source.h"

namespace numsim {

// Base of the sources whose examples are independent of each other, such as images. It implements
// the batches that DataSource specifies by shuffling the examples that a derived class writes one
// by one.
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

  DataShape shape_;  // must be complete when the derived constructor returns

 private:
  // Resizes the fields of `batch` that this kind of data uses to `count` examples. All other fields
  // are already empty.
  virtual void MakeRoom(size_t count, Batch& batch) const = 0;
  // Writes example `row` of the given part as example `example` of the batch.
  virtual void Write(Part part, uint64_t row, size_t example, Batch& batch) const = 0;

  void StartBatch(size_t count, Batch& batch) const;
};

// A sequence of tokens for training and one for validation.
struct TokenParts {
  std::string name;  // for Describe
  std::string_view unit = "bytes";
  size_t vocabulary = 256;
  std::vector<uint16_t> train, valid;
  std::optional<double> entropy_bound;  // of `valid`, in nats per token
  // Of pieces of a text alone, as DataSource specifies; and what Describe adds.
  std::vector<uint16_t> token_bytes = {};
  std::vector<std::pair<std::string, std::string>> digests = {};
  std::string note = {};
};

// A text for training and one for validation.
struct TextParts {
  std::string name;  // for Describe
  std::string train, valid;
  std::optional<double> valid_nats = {};  // a lower bound of the loss on `valid`
};

// Returns the pieces of both parts under the tokenizer of `config`, which is trained on the first.
// Requires config.tokenizer == kBpe. Throws Error as the functions of Tokenizer do, and if the
// tokenizer of a file does not have config.vocabulary entries, or a part is a single token.
TokenParts TokenizeText(const DataConfig& config, const TextParts& text);

// Text: bytes or other tokens.
class TextSource final : public DataSource {
 public:
  explicit TextSource(TokenParts parts);
  // One token per byte.
  TextSource(std::string name,
             std::string_view train,
             std::string_view valid,
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
  std::optional<double> EntropyBound() const override { return parts_.entropy_bound; }
  std::span<const uint16_t> TokenBytes() const override { return parts_.token_bytes; }
  std::vector<std::pair<std::string, std::string>> Digests() const override {
    return parts_.digests;
  }
  std::string Describe() const override;

 private:
  TokenParts parts_;
  DataShape shape_;
};

// Opens a UTF-8 file (utf8_file.h). Without config.valid_path, the end of the file is used for
// validation, starting at the first character that begins at or after byte (1 - valid_share) *
// size. Throws Error naming the file if either part would have fewer than two bytes.
std::unique_ptr<const DataSource> OpenTextFile(const DataConfig& config);

// Generates text (generate_text.h): part 0 of the seed for training and part 1 for validation, so
// they share no document.
std::unique_ptr<const DataSource> OpenGeneratedText(const DataConfig& config);

// Generates tokens with Zipf frequencies (zipf_tokens.h): part 0 of the seed for training and part 1
// for validation.
std::unique_ptr<const DataSource> OpenZipf(const DataConfig& config);

// Labelled images (image_set.h). The values are those of PixelValues, with the mean and deviation
// of the training images; the targets are the labels.
class ImageSource final : public ExampleSource {
 public:
  // Requires two non-empty sets with images of the same size. `name` is for Describe.
  ImageSource(std::string name, ImageSet train, ImageSet valid);

  std::string Describe() const override;

 private:
  void MakeRoom(size_t count, Batch& batch) const override;
  void Write(Part part, uint64_t row, size_t example, Batch& batch) const override;

  std::string name_;
  ImageSet train_, valid_;
  PixelValues values_;
};

// Opens a folder of idx files. Trains on its files train-* and validates on its files t10k-*, or on
// the files train-* of config.valid_path if that is set. Throws Error as ReadIdxImages does, and if
// training and validation images differ in size.
std::unique_ptr<const DataSource> OpenIdxImages(const DataConfig& config);

// Generates images with GenerateImages: stream 0 of the seed for training and stream 1 for
// validation.
std::unique_ptr<const DataSource> OpenGeneratedImages(const DataConfig& config);

// Normally distributed features, for a student that learns from a teacher. Rows hold independent
// normal values of mean 0 and deviation 1, generated on demand. Row i of the training data is
// values i * features and following of stream 0 of the seed; validation uses stream 1.
class FeatureSource final : public ExampleSource {
 public:
  FeatureSource(uint64_t seed, size_t features, size_t train_rows, size_t valid_rows);

  std::string Describe() const override;

 private:
  void MakeRoom(size_t count, Batch& batch) const override;
  void Write(Part part, uint64_t row, size_t example, Batch& batch) const override;

  uint64_t seed_;
};

// Opens the features that `config` describes; config.size counts the rows of both parts.
std::unique_ptr<const DataSource> OpenFeatures(const DataConfig& config);

// Batches of `count` examples in which no concept occurs twice. With B batches per epoch, each
// concept takes part with at most B of its examples. B is the largest number for which enough
// examples remain to fill B batches. If no concept has more than examples / count examples, then
// every example may take part, and B is as large as without the restriction.
class DistinctBatches {
 public:
  // Requires count >= 1.
  DistinctBatches(std::span<const int32_t> concepts, size_t count);

  // Returns B, the number of batches per epoch.
  size_t Batches() const { return batches_; }

  // Returns the examples of an epoch: batch b consists of order[b * count] to order[b * count +
  // count - 1]. Depends only on (seed, epoch). The concepts are visited in a random order, with at
  // most B examples each, also in a random order. The examples are dealt to the batches in turn. So
  // examples of the same concept go to neighbouring batches, and the batches fill evenly; examples
  // beyond `count` per batch are left out of the epoch.
  std::vector<uint32_t> Order(uint64_t seed, uint64_t epoch) const;

 private:
  size_t count_, batches_ = 0;
  std::vector<uint32_t> examples_;  // sorted by concept
  std::vector<size_t> ends_;        // end of each concept's examples in examples_
};

// Images with captions, for CLIP.

// The tokens of a caption are a start token, its bytes, an end token, then padding.
inline constexpr int32_t kStartToken = 256, kEndToken = 257, kPadToken = 258;
inline constexpr size_t kCaptionVocabulary = 259;
// The maximum sequence length, as in [CLIP]. Longer captions are truncated at a character boundary.
inline constexpr size_t kMaxCaptionTokens = 77;

// Returns the prefix of `caption` that fits into a sequence. Requires valid UTF-8.
std::string_view KeptCaption(std::string_view caption);

// The sequence length is that of the longest caption of both training and validation, at most
// kMaxCaptionTokens. The values are those of PixelValues, with the mean and deviation of the
// training images. In a batch, `ends` holds positions from 0 to length - 1, and `concepts` the
// numbers of the set.
class CaptionSource final : public DataSource {
 public:
  // Requires two non-empty sets with images of the same shape. Concept numbers are compared only
  // within one set.
  CaptionSource(std::string name, CaptionSet train, CaptionSet valid, bool distinct_concepts);

  const DataShape& shape() const override { return shape_; }
  // With distinct_concepts, the order of an epoch is computed once; the most recently used orders
  // are cached by (shuffle_seed, epoch, count).
  void TrainBatch(uint64_t shuffle_seed,
                  uint64_t index,
                  size_t count,
                  size_t length,
                  Batch& batch) const override;
  size_t TrainBatches(size_t count, size_t length) const override;
  // Writes a validation batch. A concept may occur more than once.
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
  mutable std::mutex mutex_;  // guards distinct_ and orders_, which are caches
  mutable std::vector<std::pair<size_t, std::shared_ptr<const DistinctBatches>>> distinct_;
  mutable std::vector<std::shared_ptr<const Order>> orders_;  // most recently requested first
};

// Opens a folder in the format of ReadCaptionFolder (caption_set.h). Without config.valid_path,
// meta.tsv decides which images are for validation; if it does not, valid_share of the concepts (at
// least one) is drawn with config.seed. Throws Error naming the folder if training or validation
// would have no images, or if the images of two folders differ in shape.
std::unique_ptr<const DataSource> OpenCaptions(const DataConfig& config);

// Generates images of shapes with captions (generate_shapes.h).
std::unique_ptr<const DataSource> OpenGeneratedShapes(const DataConfig& config);

}  // namespace numsim
