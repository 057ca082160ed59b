#include "numsim/data/tokenizer.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/data/internal/pieces.h"
#include "numsim/data/internal/text_words.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim {
namespace {

constexpr size_t kWordsOfTask = 256;

// U+2581 and its likes are written as bytes: the library would take it for a space.
std::vector<uint16_t> Pieces(const PieceModel& pieces, std::string_view word) {
  if (!StandsApart(word)) return pieces.Encode(word);
  std::vector<uint16_t> tokens;
  for (const char byte : word) tokens.push_back(pieces.Byte(static_cast<uint8_t>(byte)));
  return tokens;
}

}  // namespace

Tokenizer::Tokenizer(std::string model, const std::string& name)
    : model_(std::move(model)),
      name_(name),
      digest_(Sha256OfText(model_)),
      pieces_(std::make_unique<PieceModel>(model_, name)) {
  for (size_t token = 0; token < pieces_->Size(); ++token) texts_.push_back(pieces_->Text(token));
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::Train(std::string_view text, size_t vocabulary) {
  if (vocabulary < kLeastTokenizer || vocabulary > kMostTokenizer) {
    throw KeyError::Format("data.vocabulary",
                           "{}, expected {} .. {} for a tokenizer",
                           vocabulary,
                           kLeastTokenizer,
                           kMostTokenizer);
  }
  const TextWords words = FindWords(text);
  std::vector<CountedWord> counted;
  for (size_t i = 0; i < words.words.size(); ++i) {
    if (!StandsApart(words.words[i])) counted.push_back({words.words[i], words.counts[i]});
  }
  if (counted.empty()) throw Error("the text has no words, so it gives no tokenizer");
  Tokenizer tokenizer(TrainPieces(counted, vocabulary), "the trained tokenizer");
  if (tokenizer.Size() == vocabulary) return tokenizer;
  throw KeyError::Format("data.vocabulary",
                         "{}, but a text of {} bytes for training has pieces for no more than {}",
                         vocabulary,
                         text.size(),
                         tokenizer.Size());
}

Tokenizer Tokenizer::Read(const std::filesystem::path& path) {
  return Tokenizer(ReadText(path), path.string());
}

std::vector<uint16_t> Tokenizer::Encode(std::string_view text) const {
  const TextWords words = FindWords(text);
  std::vector<std::vector<uint16_t>> encoded(words.words.size());
  ParallelFor(words.words.size(), kWordsOfTask, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      encoded[i] = Pieces(*pieces_, words.words[i]);
      if (Decode(encoded[i]) == words.words[i]) continue;
      throw Error::Format("{}: changes '{}' into '{}'; expected a tokenizer that keeps every text",
                          name_,
                          words.words[i],
                          Decode(encoded[i]));
    }
  });
  size_t count = 0;
  for (const uint32_t word : words.sequence) count += encoded[word].size();
  std::vector<uint16_t> tokens;
  tokens.reserve(count);
  for (const uint32_t word : words.sequence) {
    tokens.insert(tokens.end(), encoded[word].begin(), encoded[word].end());
  }
  return tokens;
}

std::string Tokenizer::Decode(std::span<const uint16_t> tokens) const {
  std::string text;
  for (const uint16_t token : tokens) {
    if (token >= Size()) throw Error::Format("token {}, expected less than {}", token, Size());
    text += texts_[token];
  }
  return text;
}

}  // namespace numsim
