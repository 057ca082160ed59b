// Texts as pieces.
#include <fmt/format.h>

#include "numsim/base/error.h"
#include "numsim/data/internal/sources.h"
#include "numsim/data/tokenizer.h"
#include "numsim/io/manifest.h"

namespace numsim {
namespace {

Tokenizer TokenizerOf(const DataConfig& config, const std::string& train) {
  if (config.tokenizer_path.empty()) return Tokenizer::TrainOrRecall(train, config.vocabulary);
  Tokenizer tokenizer = Tokenizer::Read(config.tokenizer_path);
  if (tokenizer.Size() == config.vocabulary) return tokenizer;
  throw KeyError::Format("data.vocabulary",
                         "{}, but {} has {} entries",
                         config.vocabulary,
                         config.tokenizer_path.string(),
                         tokenizer.Size());
}

double BytesPerToken(const std::string& text, const std::vector<uint16_t>& tokens) {
  return static_cast<double>(text.size()) / static_cast<double>(tokens.size());
}

void CheckPart(const TextParts& text, std::string_view part, const std::vector<uint16_t>& tokens) {
  if (tokens.size() >= 2) return;
  throw Error::Format("{}: {} token for {}, expected 2 or more", text.name, tokens.size(), part);
}

}  // namespace

TokenParts TokenizeText(const DataConfig& config, const TextParts& text) {
  const Tokenizer tokenizer = TokenizerOf(config, text.train);
  TokenParts parts{.name = text.name,
                   .unit = "tokens",
                   .vocabulary = tokenizer.Size(),
                   .train = tokenizer.Encode(text.train),
                   .valid = tokenizer.Encode(text.valid),
                   .entropy_bound = text.valid_nats};
  CheckPart(text, "training", parts.train);
  CheckPart(text, "validation", parts.valid);
  // The tokens are a function of the text, so whoever predicts them predicts the text.
  if (parts.entropy_bound) *parts.entropy_bound /= static_cast<double>(parts.valid.size());
  for (size_t token = 0; token < tokenizer.Size(); ++token) {
    parts.token_bytes.push_back(static_cast<uint16_t>(tokenizer.Text(token).size()));
  }
  parts.digests = {{"tokenizer", tokenizer.Digest()},
                   {"text", Sha256OfText(text.train + text.valid)}};
  parts.note = fmt::format(
      ", {:.4g} and {:.4g} bytes per token; tokenizer bpe of {} entries, SHA-256 {}; text of {} bytes, "
      "SHA-256 {}",
      BytesPerToken(text.train, parts.train),
      BytesPerToken(text.valid, parts.valid),
      tokenizer.Size(),
      parts.digests[0].second,
      text.train.size() + text.valid.size(),
      parts.digests[1].second);
  return parts;
}

}  // namespace numsim
