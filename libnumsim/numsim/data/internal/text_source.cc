#include <fmt/format.h>

#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/data/internal/generate_text.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/split.h"
#include "numsim/data/internal/utf8_file.h"

namespace numsim {
namespace {

constexpr uint32_t kOffsetDraw = 0;

// Writes sequence `example` of the batch: the bytes starting at `first` as tokens, and for each the
// byte after it as the target.
void WriteSequence(
    std::string_view text, size_t first, size_t example, size_t length, Batch& batch) {
  NUMSIM_CHECK(first + length < text.size(), "byte {} of {}", first + length, text.size());
  for (size_t i = 0; i < length; ++i) {
    batch.tokens[example * length + i] = static_cast<uint8_t>(text[first + i]);
    batch.targets[example * length + i] = static_cast<uint8_t>(text[first + i + 1]);
  }
}

void StartBatch(size_t count, size_t length, Batch& batch) {
  NUMSIM_REQUIRE(count >= 1 && length >= 1,
                 "a batch of {} sequences of {} tokens, expected at least 1 of each",
                 count,
                 length);
  batch.examples = count;
  batch.length = length;
  batch.tokens.resize(count * length);
  batch.targets.resize(count * length);
  batch.ends.clear();
  batch.concepts.clear();
  batch.values.clear();
}

// Returns the number of sequences per epoch. It is the same for every offset below `length`,
// because the byte after the last sequence must exist, too.
size_t TrainSequences(size_t bytes, size_t length) {
  return bytes < length ? 0 : (bytes - length) / length;
}

void CheckPart(const std::filesystem::path& path, std::string_view part, const std::string& text) {
  if (text.size() >= 2) return;
  throw Error::Format("{}: {} bytes for {}, expected 2 or more", path.string(), text.size(), part);
}

}  // namespace

TextSource::TextSource(std::string name,
                       std::string train,
                       std::string valid,
                       std::optional<double> entropy_bound)
    : name_(std::move(name)),
      train_(std::move(train)),
      valid_(std::move(valid)),
      entropy_bound_(entropy_bound) {
  shape_.vocabulary = 256;
  shape_.train_examples = train_.size();
  shape_.valid_examples = valid_.size();
}

size_t TextSource::TrainBatches(size_t count, size_t length) const {
  NUMSIM_REQUIRE(count >= 1 && length >= 1,
                 "a batch of {} sequences of {} tokens, expected at least 1 of each",
                 count,
                 length);
  return TrainSequences(train_.size(), length) / count;
}

void TextSource::TrainBatch(
    uint64_t shuffle_seed, uint64_t index, size_t count, size_t length, Batch& batch) const {
  const uint64_t batches = TrainBatches(count, length);
  NUMSIM_REQUIRE(batches >= 1,
                 "TrainBatch: the data do not fill a batch of {} sequences of {} tokens",
                 count,
                 length);
  StartBatch(count, length, batch);
  const uint64_t epoch = index / batches;
  const uint64_t offset = EpochDraw(shuffle_seed, epoch, kOffsetDraw, length);
  const EpochShuffle shuffle(shuffle_seed, epoch, TrainSequences(train_.size(), length));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t sequence = shuffle(index % batches * count + i);
    WriteSequence(train_, offset + sequence * length, i, length, batch);
  }
}

size_t TextSource::ValidBatches(size_t count, size_t length) const {
  NUMSIM_REQUIRE(count >= 1 && length >= 1,
                 "a batch of {} sequences of {} tokens, expected at least 1 of each",
                 count,
                 length);
  return (valid_.size() - 1) / length / count;
}

void TextSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_REQUIRE(index < ValidBatches(count, length),
                 "ValidBatch: batch {}, expected less than {}",
                 index,
                 ValidBatches(count, length));
  StartBatch(count, length, batch);
  for (size_t i = 0; i < count; ++i) {
    WriteSequence(valid_, (index * count + i) * length, i, length, batch);
  }
}

std::string TextSource::Describe() const {
  return fmt::format("{} bytes of {}, {} for training, {} for validation",
                     train_.size() + valid_.size(),
                     name_,
                     train_.size(),
                     valid_.size());
}

std::unique_ptr<const DataSource> OpenTextFile(const DataConfig& config) {
  std::string train = ReadUtf8File(config.path), valid;
  std::string name = config.path.filename().string();
  if (!config.valid_path.empty()) {
    valid = ReadUtf8File(config.valid_path);
    name += " and " + config.valid_path.filename().string();
    CheckPart(config.path, "training", train);
    CheckPart(config.valid_path, "validation", valid);
  } else {
    if (train.size() < 2) CheckPart(config.path, "training and validation", train);
    const size_t cut = NextCharacter(train, TrainShare(train.size(), config.valid_share));
    valid = train.substr(cut);
    train.resize(cut);
    CheckPart(config.path, "training", train);
    CheckPart(config.path, "validation", valid);
  }
  return std::make_unique<TextSource>(
      std::move(name), std::move(train), std::move(valid), std::nullopt);
}

std::unique_ptr<const DataSource> OpenGeneratedText(const DataConfig& config) {
  const TextModel model(config.seed);
  const size_t train_bytes = TrainShare(config.size, config.valid_share);
  const size_t valid_bytes = config.size - train_bytes;
  GeneratedText train = GenerateText(model, config.seed, 0, train_bytes);
  GeneratedText valid = GenerateText(model, config.seed, 1, valid_bytes);
  const double bound = valid.nats / static_cast<double>(valid_bytes);
  return std::make_unique<TextSource>(fmt::format("generated text of seed {}", config.seed),
                                      std::move(train.text),
                                      std::move(valid.text),
                                      bound);
}

}  // namespace numsim
