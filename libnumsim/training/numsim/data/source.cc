#include "numsim/data/source.h"

#include <fmt/format.h>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/data/internal/generate_shapes.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/internal/zipf_tokens.h"
#include "numsim/data/tokenizer.h"

namespace numsim {
namespace {

constexpr Keyword<DataKind> kDataKinds[] = {{"text", DataKind::kText},
                                            {"generated-text", DataKind::kGeneratedText},
                                            {"images", DataKind::kImages},
                                            {"generated-images", DataKind::kGeneratedImages},
                                            {"captions", DataKind::kCaptions},
                                            {"generated-shapes", DataKind::kGeneratedShapes},
                                            {"gaussian", DataKind::kGaussian},
                                            {"zipf", DataKind::kZipf}};

constexpr Keyword<TokenizerKind> kTokenizerKinds[] = {{"bytes", TokenizerKind::kBytes},
                                                      {"bpe", TokenizerKind::kBpe}};

bool ReadsFiles(DataKind kind) {
  return kind == DataKind::kText || kind == DataKind::kImages || kind == DataKind::kCaptions;
}

// Returns what to do so that a path is read: the kind of data that reads such files.
std::string_view FileHint(DataKind kind) {
  switch (kind) {
    case DataKind::kGeneratedText:
      return "; set data.kind=text";
    case DataKind::kGeneratedImages:
      return "; set data.kind=images";
    case DataKind::kGeneratedShapes:
      return "; set data.kind=captions";
    default:
      return "";
  }
}

void CheckRange(std::string_view field, size_t value, size_t least, size_t most) {
  if (value >= least && value <= most) return;
  throw KeyError::Format(
      fmt::format("data.{}", field), "{}, expected {} .. {}", value, least, most);
}

// The range of the vocabulary of a tokenizer is that of its training, or of its file.
void CheckTokenizer(const DataConfig& config) {
  if (config.tokenizer == TokenizerKind::kBytes) {
    if (config.tokenizer_path.empty()) return;
    throw KeyError("data.tokenizer_path", "tokens are bytes; set data.tokenizer=bpe");
  }
  if (config.kind != DataKind::kText && config.kind != DataKind::kGeneratedText) {
    throw KeyError::Format("data.tokenizer",
                           "{}, but {} is no text to tokenize; expected bytes",
                           ToString(config.tokenizer),
                           ToString(config.kind));
  }
  if (TokenizerLibrary().empty()) {
    throw KeyError::Format("data.tokenizer",
                           "{}, but this build of numsim has no SentencePiece; install "
                           "libsentencepiece-dev and build again",
                           ToString(config.tokenizer));
  }
}

void CheckDataConfig(const DataConfig& config) {
  const std::string_view kind = ToString(config.kind);
  if (ReadsFiles(config.kind)) {
    if (config.path.empty()) {
      throw KeyError::Format("data.path", "missing, but {} reads files", kind);
    }
  } else {
    const std::string message = fmt::format("{} reads no files{}", kind, FileHint(config.kind));
    if (!config.path.empty()) throw KeyError("data.path", message);
    if (!config.valid_path.empty()) throw KeyError("data.valid_path", message);
    // A size above 2^40 is surely a mistake.
    CheckRange("size", config.size, 2, size_t{1} << 40);
  }
  if (!(config.valid_share > 0 && config.valid_share < 1)) {
    throw KeyError::Format(
        "data.valid_share", "{}, expected above 0 and below 1", config.valid_share);
  }
  if (config.kind == DataKind::kGeneratedImages) {
    CheckRange("classes", config.classes, 1, 256);
    CheckRange("image", config.image, 1, 1024);
  }
  if (config.kind == DataKind::kGeneratedShapes) {
    CheckRange("image", config.image, kLeastShapeImage, kMostShapeImage);
  }
  CheckTokenizer(config);
  if (config.kind == DataKind::kZipf) CheckRange("vocabulary", config.vocabulary, 2, kMostTokens);
  if (config.kind == DataKind::kGaussian) CheckRange("features", config.features, 1, 1 << 24);
}

}  // namespace

DataKind ParseDataKind(std::string_view text) {
  return ParseKeyword(kDataKinds, "data.kind", text);
}
std::string_view ToString(DataKind kind) { return KeywordToString(kDataKinds, kind); }

std::string DataKindNames() { return KeywordNames(kDataKinds); }

TokenizerKind ParseTokenizerKind(std::string_view text) {
  return ParseKeyword(kTokenizerKinds, "data.tokenizer", text);
}
std::string_view ToString(TokenizerKind kind) { return KeywordToString(kTokenizerKinds, kind); }

std::string TokenizerKindNames() { return KeywordNames(kTokenizerKinds); }

size_t DefaultDataSize(DataKind kind) {
  switch (kind) {
    case DataKind::kGeneratedText:
    case DataKind::kGaussian:
    case DataKind::kZipf:
      return size_t{1} << 20;
    case DataKind::kGeneratedImages:
    case DataKind::kGeneratedShapes:
      return size_t{1} << 14;
    default:
      return 0;
  }
}

void DataSource::CheckBatch(size_t count, size_t length) const {
  const auto check = [&](std::string_view part, size_t batches, size_t single, size_t examples) {
    if (batches >= 1) return;
    const bool text = shape().length == 0 && shape().vocabulary != 0;
    if (text && single == 0) {
      throw KeyError::Format("model.context",
                             "{} {} of {} are too few for a sequence of {}",
                             examples,
                             shape().unit,
                             part,
                             length);
    }
    throw KeyError::Format("train.batch",
                           "{} {} of {} do not fill a batch of {}{}",
                           examples,
                           shape().unit,
                           part,
                           count,
                           text ? fmt::format(" sequences of {}", length) : "");
  };
  check("training", TrainBatches(count, length), TrainBatches(1, length), shape().train_examples);
  check("validation", ValidBatches(count, length), ValidBatches(1, length), shape().valid_examples);
}

std::unique_ptr<const DataSource> OpenData(const DataConfig& given) {
  DataConfig config = given;
  if (config.size == 0) config.size = DefaultDataSize(config.kind);
  CheckDataConfig(config);
  switch (config.kind) {
    case DataKind::kText:
      return OpenTextFile(config);
    case DataKind::kGeneratedText:
      return OpenGeneratedText(config);
    case DataKind::kImages:
      return OpenIdxImages(config);
    case DataKind::kGeneratedImages:
      return OpenGeneratedImages(config);
    case DataKind::kCaptions:
      return OpenCaptions(config);
    case DataKind::kGeneratedShapes:
      return OpenGeneratedShapes(config);
    case DataKind::kGaussian:
      return OpenFeatures(config);
    case DataKind::kZipf:
      return OpenZipf(config);
  }
  NUMSIM_CHECK(false, "kind {}", static_cast<int>(config.kind));
  return nullptr;
}

}  // namespace numsim
