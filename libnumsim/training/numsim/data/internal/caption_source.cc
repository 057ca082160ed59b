#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/data/internal/generate_shapes.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/split.h"
#include "numsim/data/utf8_file.h"

namespace numsim {
namespace {

constexpr size_t kOrdersKept = 8;
constexpr uint64_t kSplitEpoch = ~uint64_t{0};  // outside the epochs of any training run

// Returns the number of tokens that the longest caption of the set needs.
size_t LongestSequence(const CaptionSet& set) {
  size_t longest = 0;
  for (const std::string& caption : set.captions) {
    longest = std::max(longest, KeptCaption(caption).size() + 2);
  }
  return longest;
}

// Returns, per image, true if it is for validation. Assigns valid_share of the concepts to
// validation: at least one but not all of them, unless there is only one concept.
std::vector<bool> SplitConcepts(const CaptionSet& set, double valid_share, uint64_t seed) {
  const auto concepts =
      1 + static_cast<size_t>(*std::max_element(set.concepts.begin(), set.concepts.end()));
  std::vector<bool> valid(set.count);
  if (concepts < 2) return valid;
  const EpochShuffle shuffle(seed, kSplitEpoch, concepts);
  const size_t train = TrainShare(concepts, valid_share);
  for (size_t i = 0; i < set.count; ++i) {
    valid[i] = shuffle(static_cast<uint64_t>(set.concepts[i])) >= train;
  }
  return valid;
}

// Returns the images for training (part == false) or validation (part == true).
CaptionSet Part(const CaptionSet& set, const std::vector<bool>& valid, bool part) {
  std::vector<size_t> images;
  for (size_t i = 0; i < set.count; ++i) {
    if (valid[i] == part) images.push_back(i);
  }
  return Subset(set, images);
}

std::unique_ptr<const DataSource> OpenTwoFolders(const DataConfig& config) {
  CaptionSet train = ReadCaptionFolder(config.path).set;
  CaptionSet valid = ReadCaptionFolder(config.valid_path).set;
  if (train.height != valid.height || train.width != valid.width ||
      train.channels != valid.channels) {
    throw Error::Format(
        "{}: validation images of {} x {} x {}, expected {} x "
        "{} x {} as for training",
        config.valid_path.string(),
        valid.height,
        valid.width,
        valid.channels,
        train.height,
        train.width,
        train.channels);
  }
  return std::make_unique<CaptionSource>(
      config.path.filename().string() + " and " + config.valid_path.filename().string(),
      std::move(train),
      std::move(valid),
      config.distinct_concepts);
}

}  // namespace

std::string_view KeptCaption(std::string_view caption) {
  size_t kept = kMaxCaptionTokens - 2;
  if (caption.size() <= kept) return caption;
  while (NextCharacter(caption, kept) != kept) --kept;
  return caption.substr(0, kept);
}

CaptionSource::CaptionSource(std::string name,
                             CaptionSet train,
                             CaptionSet valid,
                             bool distinct_concepts)
    : name_(std::move(name)),
      train_(std::move(train)),
      valid_(std::move(valid)),
      distinct_concepts_(distinct_concepts),
      values_(train_.pixels, train_.channels) {
  NUMSIM_CHECK(train_.height == valid_.height && train_.width == valid_.width &&
                   train_.channels == valid_.channels && valid_.count >= 1,
               "sets of {} and {} images",
               train_.count,
               valid_.count);
  shape_.vocabulary = kCaptionVocabulary;
  shape_.length = std::max(LongestSequence(train_), LongestSequence(valid_));
  shape_.height = train_.height;
  shape_.width = train_.width;
  shape_.channels = train_.channels;
  shape_.train_examples = train_.count;
  shape_.valid_examples = valid_.count;
}

std::shared_ptr<const DistinctBatches> CaptionSource::DistinctOf(size_t count) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [kept_count, kept] : distinct_) {
    if (kept_count == count) return kept;
  }
  if (distinct_.size() == kOrdersKept) distinct_.erase(distinct_.begin());
  auto made = std::make_shared<const DistinctBatches>(train_.concepts, count);
  distinct_.emplace_back(count, made);
  return made;
}

std::shared_ptr<const CaptionSource::Order> CaptionSource::OrderOf(uint64_t seed,
                                                                   uint64_t epoch,
                                                                   size_t count) const {
  const std::shared_ptr<const DistinctBatches> batches = DistinctOf(count);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(orders_.begin(), orders_.end(), [&](const auto& order) {
    return order->seed == seed && order->epoch == epoch && order->count == count;
  });
  if (found == orders_.end()) {
    if (orders_.size() == kOrdersKept) orders_.pop_back();
    orders_.insert(
        orders_.begin(),
        std::make_shared<const Order>(Order{seed, epoch, count, batches->Order(seed, epoch)}));
  } else {
    std::rotate(orders_.begin(), found, found + 1);
  }
  return orders_.front();
}

size_t CaptionSource::TrainBatches(size_t count, size_t /*length*/) const {
  NUMSIM_REQUIRE(count >= 1, "a batch of 0 examples, expected at least 1");
  return distinct_concepts_ ? DistinctOf(count)->Batches() : train_.count / count;
}

size_t CaptionSource::ValidBatches(size_t count, size_t /*length*/) const {
  NUMSIM_REQUIRE(count >= 1, "a batch of 0 examples, expected at least 1");
  return valid_.count / count;
}

void CaptionSource::StartBatch(size_t count, Batch& batch) const {
  batch.examples = count;
  batch.length = shape_.length;
  batch.tokens.resize(count * shape_.length);
  batch.targets.clear();
  batch.ends.resize(count);
  batch.concepts.resize(count);
  batch.values.resize(count * shape_.height * shape_.width * shape_.channels);
}

void CaptionSource::Write(const CaptionSet& set, size_t image, size_t example, Batch& batch) const {
  const size_t pixels = shape_.height * shape_.width * shape_.channels;
  values_.Write(std::span(set.pixels).subspan(image * pixels, pixels),
                std::span(batch.values).subspan(example * pixels, pixels));
  const std::string_view caption = KeptCaption(set.captions[image]);
  const std::span<int32_t> tokens =
      std::span(batch.tokens).subspan(example * shape_.length, shape_.length);
  std::fill(tokens.begin(), tokens.end(), kPadToken);
  tokens[0] = kStartToken;
  for (size_t i = 0; i < caption.size(); ++i) tokens[1 + i] = static_cast<uint8_t>(caption[i]);
  tokens[1 + caption.size()] = kEndToken;
  batch.ends[example] = static_cast<int32_t>(1 + caption.size());
  batch.concepts[example] = set.concepts[image];
}

void CaptionSource::TrainBatch(
    uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const {
  const uint64_t batches = TrainBatches(count, length);
  NUMSIM_REQUIRE(batches >= 1, "TrainBatch: the data do not fill a batch of {}", count);
  StartBatch(count, batch);
  const uint64_t epoch = index / batches, first = index % batches * count;
  if (distinct_concepts_) {
    const std::shared_ptr<const Order> order = OrderOf(shuffle_seed, epoch, count);
    for (size_t i = 0; i < count; ++i) Write(train_, order->examples[first + i], i, batch);
    return;
  }
  const EpochShuffle shuffle(shuffle_seed, epoch, train_.count);
  for (size_t i = 0; i < count; ++i) Write(train_, shuffle(first + i), i, batch);
}

void CaptionSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_REQUIRE(index < ValidBatches(count, length),
                 "ValidBatch: batch {}, expected less than {}",
                 index,
                 ValidBatches(count, length));
  StartBatch(count, batch);
  for (size_t i = 0; i < count; ++i) Write(valid_, index * count + i, i, batch);
}

std::string CaptionSource::Describe() const {
  return fmt::format(
      "{} images of {} x {} x {} with captions from {}, {} for "
      "training, {} for validation",
      train_.count + valid_.count,
      shape_.height,
      shape_.width,
      shape_.channels,
      name_,
      train_.count,
      valid_.count);
}

std::unique_ptr<const DataSource> OpenCaptions(const DataConfig& config) {
  if (!config.valid_path.empty()) return OpenTwoFolders(config);
  CaptionFolder folder = ReadCaptionFolder(config.path);
  const bool has_split = !folder.valid.empty();
  if (!has_split) folder.valid = SplitConcepts(folder.set, config.valid_share, config.seed);
  const auto valid_count = std::count(folder.valid.begin(), folder.valid.end(), true);
  if (valid_count == 0 || static_cast<size_t>(valid_count) == folder.set.count) {
    throw Error::Format("{}: {} of {} images are for validation, expected some and not all{}",
                        config.path.string(),
                        valid_count,
                        folder.set.count,
                        has_split ? " in the column split of meta.tsv" : "");
  }
  return std::make_unique<CaptionSource>(config.path.filename().string(),
                                         Part(folder.set, folder.valid, false),
                                         Part(folder.set, folder.valid, true),
                                         config.distinct_concepts);
}

std::unique_ptr<const DataSource> OpenGeneratedShapes(const DataConfig& config) {
  const size_t train_count = TrainShare(config.size, config.valid_share);
  const ShapeWorld world(config.seed, config.image, config.valid_share);
  return std::make_unique<CaptionSource>(
      fmt::format("the generator of shapes with seed {}", config.seed),
      world.Generate(false, train_count),
      world.Generate(true, config.size - train_count),
      config.distinct_concepts);
}

}  // namespace numsim
