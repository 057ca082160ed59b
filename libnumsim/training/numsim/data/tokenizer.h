// Tokenizers: they turn a text into tokens, numbers that stand for frequent pieces of it, and back.
//
// A tokenizer is trained on a text by byte pair encoding [BPE], which the library SentencePiece
// [SentencePiece] does. It loses nothing: Decode(Encode(text)) == text for every text in UTF-8. A text
// is first cut into words, at places that no piece crosses: before a space that follows another
// character and after line ends. No word is longer than about a kilobyte. Characters that are not among
// the pieces become bytes, for which each tokenizer has 256 tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

inline constexpr size_t kLeastTokenizer =
    258;  // 256 bytes, "unknown", which no text has, and a piece
inline constexpr size_t kMostTokenizer = 1 << 16;  // entries

class PieceModel;

// Immutable, so any number of threads may use it.
class Tokenizer {
 public:
  // Loads a model from the bytes of a file of SentencePiece. `name` stands for the file in messages.
  // Throws Error naming it if the bytes are not such a model, or one without tokens for all bytes, and
  // if this build has no SentencePiece.
  Tokenizer(std::string model, const std::string& name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Trains a tokenizer of `vocabulary` entries on a text in UTF-8. The same text, vocabulary and version
  // of SentencePiece give the same bytes, whatever the number of threads (docs/data.md has the
  // exception). Runs on the calling thread: 31 MB of English take half a minute. Throws KeyError of
  // "data.vocabulary" if it is not in kLeastTokenizer .. kMostTokenizer, if the text has more different
  // characters, or if it has too few words; the message then names the largest possible value.
  static Tokenizer Train(std::string_view text, size_t vocabulary);
  // Returns the same, from the cache if it is there (CacheFolder); otherwise trains and adds it. A
  // damaged entry is replaced. If the cache cannot be read or written, it is not used. Of several
  // processes that want the same tokenizer, one trains.
  static Tokenizer TrainOrRecall(std::string_view text, size_t vocabulary);
  // Reads a file of SentencePiece, for example one that holds the bytes of Model().
  static Tokenizer Read(const std::filesystem::path& path);

  // Returns the number of entries: tokens are below it.
  size_t Size() const { return texts_.size(); }
  // Returns the bytes of the model, in the format of SentencePiece, and their SHA-256.
  const std::string& Model() const { return model_; }
  const std::string& Digest() const { return digest_; }
  // Returns the text of a token: bytes, perhaps a part of a character. Requires token < Size().
  const std::string& Text(size_t token) const { return texts_[token]; }

  // Returns the tokens of a text in UTF-8. The result does not depend on the number of threads. Throws
  // Error naming the file if the tokenizer does not give back a word of the text, which one that was
  // trained elsewhere may not.
  std::vector<uint16_t> Encode(std::string_view text) const;
  // Returns the text of the tokens. Throws Error if a token is not below Size().
  std::string Decode(std::span<const uint16_t> tokens) const;

 private:
  std::string model_, name_, digest_;
  std::unique_ptr<const PieceModel> pieces_;
  std::vector<std::string> texts_;
};

// Returns "SentencePiece 0.1.97", or an empty text in a build without it.
std::string_view TokenizerLibrary();

// Returns the folder in which numsim keeps what it can compute again: the environment variable
// NUMSIM_CACHE_DIR, or numsim in XDG_CACHE_HOME, or .cache/numsim in HOME; empty if there is none of
// them. Relative paths of XDG_CACHE_HOME and HOME count as absent.
std::filesystem::path CacheFolder();

}  // namespace numsim
