// SentencePiece [SentencePiece]: its trainer of byte pair encodings, and its search for pieces.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <charconv>
#include <map>
#include <unordered_map>

#include "numsim/base/error.h"
#include "numsim/data/internal/pieces.h"
#include "numsim/data/tokenizer.h"

namespace numsim {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581 stands for a space

// Everything that the library lets one choose and that matters here, also where it is the default.
// - Nothing of the text is changed: no normalisation, no space before it, no spaces taken away.
// - One thread: the number would be written into the model.
const std::map<std::string, std::string>& Settings() {
  static const std::map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"input_format", "tsv"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.99995"},
      {"max_sentencepiece_length", "16"},
      {"split_by_unicode_script", "true"},
      {"split_by_number", "true"},
      {"split_digits", "false"},
      {"split_by_whitespace", "true"},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"hard_vocab_limit", "false"},
      {"num_threads", "1"},
  };
  return settings;
}

// Gives the trainer one "WORD<tab>COUNT" after the other.
class CountedLines final : public sentencepiece::SentenceIterator {
 public:
  explicit CountedLines(std::span<const CountedWord> words) : words_(words) { Format(); }
  bool done() const override { return index_ >= words_.size(); }
  void Next() override {
    ++index_;
    Format();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void Format() {
    if (!done()) line_ = fmt::format("{}\t{}", words_[index_].word, words_[index_].count);
  }

  std::span<const CountedWord> words_;
  size_t index_ = 0;
  std::string line_;
};

// Returns the least vocabulary that the message of the trainer names, or 0: "Vocabulary size is smaller
// than required_chars. 300 vs 331. ..."
size_t LeastVocabulary(std::string_view message) {
  constexpr std::string_view kMark = " vs ";
  size_t least = 0;
  if (message.find("required_chars") == message.npos) return 0;
  const size_t at = message.find(kMark);
  if (at == message.npos) return 0;
  std::from_chars(message.data() + at + kMark.size(), message.data() + message.size(), least);
  return least;
}

}  // namespace

std::string_view TokenizerLibrary() { return "SentencePiece " NUMSIM_SENTENCEPIECE_VERSION; }

std::string PieceRecipe() {
  std::string recipe(TokenizerLibrary());
  for (const auto& [name, value] : Settings()) recipe += fmt::format(" {}={}", name, value);
  return recipe;
}

std::string TrainPieces(std::span<const CountedWord> words, size_t vocabulary) {
  std::unordered_map<std::string, std::string> settings(Settings().begin(), Settings().end());
  settings["vocab_size"] = fmt::format("{}", vocabulary);
  settings["minloglevel"] = "2";  // errors alone
  CountedLines lines(words);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (status.ok()) return model;
  const std::string message = status.ToString();
  if (const size_t least = LeastVocabulary(message); least > 0) {
    throw KeyError::Format("data.vocabulary",
                           "{}, but the bytes and the characters of the text need {} or more",
                           vocabulary,
                           least);
  }
  throw Error::Format("the text gives no tokenizer: {}: {}", TokenizerLibrary(), message);
}

struct PieceModel::Library {
  sentencepiece::SentencePieceProcessor processor;
};

PieceModel::PieceModel(std::string_view model, const std::string& name) {
  auto library = std::make_unique<Library>();
  sentencepiece::SentencePieceProcessor& processor = library->processor;
  const auto status =
      processor.LoadFromSerializedProto(absl::string_view(model.data(), model.size()));
  if (model.empty() || !status.ok()) {
    throw Error::Format("{}: not a tokenizer of SentencePiece{}{}",
                        name,
                        model.empty() ? "" : ": ",
                        model.empty() ? "" : status.ToString());
  }
  const int size = processor.GetPieceSize();
  if (size > static_cast<int>(kMostTokenizer)) {
    throw Error::Format("{}: {} entries, expected at most {}", name, size, kMostTokenizer);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const int piece = processor.PieceToId(fmt::format("<0x{:02X}>", byte));
    if (piece < 0 || piece >= size || !processor.IsByte(piece)) {
      throw Error::Format(
          "{}: no entry for the byte 0x{:02X}, expected one for each (byte_fallback)", name, byte);
    }
    bytes_.push_back(static_cast<uint16_t>(piece));
  }
  library_ = std::move(library);
}

PieceModel::~PieceModel() = default;

size_t PieceModel::Size() const { return static_cast<size_t>(library_->processor.GetPieceSize()); }

std::string PieceModel::Text(size_t piece) const {
  const auto id = static_cast<int>(piece);
  const sentencepiece::SentencePieceProcessor& processor = library_->processor;
  if (processor.IsUnknown(id) || processor.IsControl(id)) return {};
  std::string text = processor.IdToPiece(id);
  if (processor.IsByte(id)) {
    unsigned byte = 0;
    std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
    return std::string(1, static_cast<char>(byte));
  }
  for (size_t at = 0; (at = text.find(kSpace, at)) != text.npos; ++at) {
    text.replace(at, kSpace.size(), " ");
  }
  return text;
}

std::vector<uint16_t> PieceModel::Encode(std::string_view word) const {
  std::vector<int> ids;
  const auto status = library_->processor.Encode(absl::string_view(word.data(), word.size()), &ids);
  if (!status.ok()) {
    throw Error::Format("{} finds no pieces: {}", TokenizerLibrary(), status.ToString());
  }
  return {ids.begin(), ids.end()};
}

}  // namespace numsim
