#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/data/internal/generate_text.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/split.h"
#include "numsim/data/internal/zipf_tokens.h"
#include "numsim/data/utf8_file.h"

namespace numsim {
namespace {

constexpr uint32_t kOffsetDraw = 0;

// Writes sequence `example` of the batch: the tokens starting at `first`, and for each the token
// after it as the target.
void WriteSequence(
    std::span<const uint16_t> text, size_t first, size_t example, size_t length, Batch& batch) {
  NUMSIM_CHECK(first + length < text.size(), "token {} of {}", first + length, text.size());
  for (size_t i = 0; i < length; ++i) {
    batch.tokens[example * length + i] = text[first + i];
    batch.targets[example * length + i] = text[first + i + 1];
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
// because the token after the last sequence must exist, too.
size_t TrainSequences(size_t tokens, size_t length) {
  return tokens < length ? 0 : (tokens - length) / length;
}

void CheckPart(const std::filesystem::path& path, std::string_view part, const std::string& text) {
  if (text.size() >= 2) return;
  throw Error::Format("{}: {} bytes for {}, expected 2 or more", path.string(), text.size(), part);
}

std::vector<uint16_t> TokensOf(std::string_view bytes) {
  std::vector<uint16_t> tokens;
  tokens.reserve(bytes.size());
  for (const char byte : bytes) tokens.push_back(static_cast<uint8_t>(byte));
  return tokens;
}

}  // namespace

TextSource::TextSource(TokenParts parts) : parts_(std::move(parts)) {
  shape_.vocabulary = parts_.vocabulary;
  shape_.unit = parts_.unit;
  shape_.train_examples = parts_.train.size();
  shape_.valid_examples = parts_.valid.size();
}

TextSource::TextSource(std::string name,
                       std::string_view train,
                       std::string_view valid,
                       std::optional<double> entropy_bound)
    : TextSource(TokenParts{.name = std::move(name),
                            .train = TokensOf(train),
                            .valid = TokensOf(valid),
                            .entropy_bound = entropy_bound}) {}

size_t TextSource::TrainBatches(size_t count, size_t length) const {
  NUMSIM_REQUIRE(count >= 1 && length >= 1,
                 "a batch of {} sequences of {} tokens, expected at least 1 of each",
                 count,
                 length);
  return TrainSequences(parts_.train.size(), length) / count;
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
  const EpochShuffle shuffle(shuffle_seed, epoch, TrainSequences(parts_.train.size(), length));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t sequence = shuffle(index % batches * count + i);
    WriteSequence(parts_.train, offset + sequence * length, i, length, batch);
  }
}

size_t TextSource::ValidBatches(size_t count, size_t length) const {
  NUMSIM_REQUIRE(count >= 1 && length >= 1,
                 "a batch of {} sequences of {} tokens, expected at least 1 of each",
                 count,
                 length);
  return (parts_.valid.size() - 1) / length / count;
}

void TextSource::ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const {
  NUMSIM_REQUIRE(index < ValidBatches(count, length),
                 "ValidBatch: batch {}, expected less than {}",
                 index,
                 ValidBatches(count, length));
  StartBatch(count, length, batch);
  for (size_t i = 0; i < count; ++i) {
    WriteSequence(parts_.valid, (index * count + i) * length, i, length, batch);
  }
}

std::string TextSource::Describe() const {
  return fmt::format("{} {} of {}, {} for training, {} for validation{}",
                     parts_.train.size() + parts_.valid.size(),
                     parts_.unit,
                     parts_.name,
                     parts_.train.size(),
                     parts_.valid.size(),
                     parts_.note);
}

namespace {

std::unique_ptr<const DataSource> OpenParts(const DataConfig& config, TextParts text) {
  if (config.tokenizer == TokenizerKind::kBpe) {
    return std::make_unique<TextSource>(TokenizeText(config, text));
  }
  std::optional<double> bound = text.valid_nats;
  if (bound) *bound /= static_cast<double>(text.valid.size());
  return std::make_unique<TextSource>(std::move(text.name), text.train, text.valid, bound);
}

}  // namespace

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
  return OpenParts(config,
                   {.name = std::move(name), .train = std::move(train), .valid = std::move(valid)});
}

std::unique_ptr<const DataSource> OpenGeneratedText(const DataConfig& config) {
  const TextModel model(config.seed);
  const size_t train_bytes = TrainShare(config.size, config.valid_share);
  const size_t valid_bytes = config.size - train_bytes;
  GeneratedText train = GenerateText(model, config.seed, 0, train_bytes);
  GeneratedText valid = GenerateText(model, config.seed, 1, valid_bytes);
  return OpenParts(config,
                   {.name = fmt::format("generated text of seed {}", config.seed),
                    .train = std::move(train.text),
                    .valid = std::move(valid.text),
                    .valid_nats = valid.nats});
}

std::unique_ptr<const DataSource> OpenZipf(const DataConfig& config) {
  const ZipfModel model(config.seed, config.vocabulary);
  const size_t train_tokens = TrainShare(config.size, config.valid_share);
  ZipfTokens train = model.Generate(0, train_tokens);
  ZipfTokens valid = model.Generate(1, config.size - train_tokens);
  const double predicted = std::max<double>(1, static_cast<double>(valid.tokens.size()) - 1);
  const double bound = valid.nats / predicted;
  return std::make_unique<TextSource>(
      TokenParts{.name = fmt::format("Zipf frequencies of seed {}", config.seed),
                 .unit = "tokens",
                 .vocabulary = config.vocabulary,
                 .train = std::move(train.tokens),
                 .valid = std::move(valid.tokens),
                 .entropy_bound = bound});
}

}  // namespace numsim
