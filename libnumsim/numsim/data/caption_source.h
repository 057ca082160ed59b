// Images with captions, for CLIP.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "numsim/data/caption_set.h"
#include "numsim/data/distinct_order.h"
#include "numsim/data/pixel_values.h"
#include "numsim/data/source.h"

namespace numsim {

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
