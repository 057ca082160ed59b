// Sources of training data: what a training reads its batches from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// A batch of training examples, on the host.

// Fields that a kind of data does not have stay empty. Memory is kept from batch to batch.
struct Batch {
  size_t examples = 0;
  // Text: examples x length tokens, one sequence after another.
  size_t length = 0;
  std::vector<int32_t> tokens;
  // Language models: the token that follows each token, or -1 where none is to be predicted.
  // Classifiers: a label for each example.
  std::vector<int32_t> targets;
  // Captions: the place in its sequence of each example's end token, whose row is the caption's.
  std::vector<int32_t> ends;
  // Captions: two examples of one concept have equal numbers; each counts as right for the other.
  std::vector<int32_t> concepts;
  // Images: examples x (height x width x channels), channels last, about mean 0 and deviation 1.
  // Students: examples x features.
  std::vector<float> values;
};

enum class DataKind : uint8_t {
  kText,             // a UTF-8 file as bytes
  kGeneratedText,    // generate_text.h
  kImages,           // a folder of idx files (image_set.h): Fashion-MNIST
  kGeneratedImages,  // labelled images of image_set.h
  kCaptions,         // a folder with images .npy and captions.txt
  kGeneratedShapes,  // generate_shapes.h: images of shapes with captions
  kGaussian,         // normal features for a student
};
// text generated-text images generated-images captions generated-shapes gaussian.
DataKind ParseDataKind(std::string_view text);
std::string_view ToString(DataKind kind);

struct DataConfig {
  DataKind kind = DataKind::kGeneratedText;
  std::filesystem::path path;  // of the kinds that read files
  // A second file or folder for validation. Without one: of text the last valid_share of the bytes;
  // of idx images the t10k files; of captions meta.tsv's column `split` where there is one, else a
  // share of the concepts (distinct captions).
  std::filesystem::path valid_path;
  double valid_share = 0.1;
  // Generated: bytes of text, images, rows of features; training and validation together. 0:
  // DefaultDataSize(kind).
  size_t size = 0;
  uint64_t seed = 0;     // of what is generated, and of the share of concepts for validation
  size_t classes = 10;   // generated-images
  size_t image = 28;     // generated images: height and width; shapes: 16 to 64
  size_t features = 64;  // gaussian
  bool distinct_concepts = true;  // captions: no concept twice in a batch
};

// 2^20 bytes of generated text, 16384 generated images or shapes, 2^20 rows of features; 0 for
// kinds that read files.
size_t DefaultDataSize(DataKind kind);

// What a model has to know of its data.
struct DataShape {
  size_t vocabulary = 0;  // text and captions: tokens are below it
  size_t length = 0;      // captions: tokens of a sequence; text: 0, any
  size_t height = 0, width = 0, channels = 0;
  size_t classes = 0;
  size_t features = 0;
  size_t train_examples = 0, valid_examples = 0;  // text: bytes
};

// Immutable once made; any number of threads may read.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual const DataShape& shape() const = 0;

  // Batch `index` of training with that many examples (text: sequences of `length` tokens; other
  // kinds take no notice of `length`): a pure function of (shuffle_seed, index) and of these two.
  // An epoch visits the examples in an order shuffled by (shuffle_seed, epoch); those that do not
  // fill a last batch are left out of the epoch. Text is cut into sequences of `length` tokens,
  // beginning at an offset that is drawn for each epoch. Captions with distinct_concepts:
  // distinct_order.h. Fields of the batch that the kind does not have become empty; the others keep
  // their memory. Requires 1 <= count, and an epoch that fills a batch (CheckBatch).
  virtual void TrainBatch(
      uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const = 0;

  // Batches of an epoch of training: batch `index` belongs to epoch index / TrainBatches.
  virtual size_t TrainBatches(size_t count, size_t length) const = 0;

  // Validation batch `index`, in the order of the data; examples beyond the last full batch are
  // left out. Requires index < ValidBatches(count, length).
  virtual void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const = 0;
  virtual size_t ValidBatches(size_t count, size_t length) const = 0;

  // Throws Error naming "train.batch" or "model.context" when the data do not fill one batch of
  // training and one of validation. Requires 1 <= count; for text 1 <= length.
  void CheckBatch(size_t count, size_t length) const;

  // A lower bound of the loss on validation data, in nats a token, where it is known: generated
  // text (generate_text.h, also for how far a part of the data may deviate).
  virtual std::optional<double> EntropyBound() const { return std::nullopt; }
  // One line for logs and manifests: "1115394 bytes of tinyshakespeare.txt, 1003854 for training".
  virtual std::string Describe() const = 0;
};

// Throws Error naming "data.FIELD" or the file at fault: also for a path that the kind does not
// read.
std::unique_ptr<const DataSource> OpenData(const DataConfig& given);

}  // namespace numsim
