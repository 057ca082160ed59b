// Tokenizers that were trained before: one file each in CacheFolder()/tokenizers. It has three lines,
//   numsim tokenizer
//   KEY      SHA-256 of what decides the training
//   DIGEST   SHA-256 of the model
// and then the model. The name of the file is KEY. A file of which that is not true is replaced.
#include <cstdlib>
#include <optional>
#include <string>

#include "numsim/base/error.h"
#include "numsim/data/internal/pieces.h"
#include "numsim/data/tokenizer.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/directory_lock.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim {

namespace fs = std::filesystem;

namespace {

// Raise it when words or tokens of the same model change (text_words.h, tokenizer.cc).
constexpr int kVersion = 1;

std::string KeyOf(std::string_view text, size_t vocabulary) {
  return Sha256OfText(
      fmt::format("{}\n{}\n{}\n{}", kVersion, PieceRecipe(), vocabulary, Sha256OfText(text)));
}

std::string Head(const std::string& key, std::string_view model) {
  return fmt::format("numsim tokenizer\n{}\n{}\n", key, Sha256OfText(model));
}

// Returns the tokenizer of an entry, or nothing if the file is not there, damaged or of another size.
std::optional<Tokenizer> Recall(const fs::path& entry, const std::string& key, size_t vocabulary) {
  try {
    const std::string bytes = ReadText(entry);
    const size_t head = Head(key, "").size();
    if (bytes.size() <= head) return std::nullopt;
    std::string model = bytes.substr(head);
    if (!bytes.starts_with(Head(key, model))) return std::nullopt;
    Tokenizer tokenizer(std::move(model), entry.string());
    if (tokenizer.Size() != vocabulary) return std::nullopt;
    return tokenizer;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Returns the value of an environment variable if it is an absolute path.
fs::path AbsoluteOf(const char* variable) {
  const char* const value = std::getenv(variable);
  fs::path path = value == nullptr ? "" : value;
  return path.is_absolute() ? path : fs::path();
}

}  // namespace

fs::path CacheFolder() {
  if (const char* const own = std::getenv("NUMSIM_CACHE_DIR"); own != nullptr && *own != '\0') {
    return own;
  }
  if (const fs::path cache = AbsoluteOf("XDG_CACHE_HOME"); !cache.empty()) return cache / "numsim";
  if (const fs::path home = AbsoluteOf("HOME"); !home.empty()) return home / ".cache" / "numsim";
  return {};
}

Tokenizer Tokenizer::TrainOrRecall(std::string_view text, size_t vocabulary) {
  const fs::path cache = CacheFolder();
  if (cache.empty() || TokenizerLibrary().empty()) return Train(text, vocabulary);
  const fs::path folder = cache / "tokenizers";
  const std::string key = KeyOf(text, vocabulary);
  const fs::path entry = folder / key;
  if (auto known = Recall(entry, key, vocabulary)) return std::move(*known);
  std::optional<DirectoryLock> lock;
  try {
    fs::create_directories(folder);
    lock.emplace(folder / (key + ".lock"), DirectoryLock::IfHeld::kWait);
    SweepTemporaries(folder);
  } catch (const std::exception&) {  // a cache that cannot be written
    return Train(text, vocabulary);
  }
  if (auto known = Recall(entry, key, vocabulary)) return std::move(*known);  // of another process
  Tokenizer tokenizer = Train(text, vocabulary);
  try {
    WriteFileAtomically(entry, Head(key, tokenizer.Model()) + tokenizer.Model());
  } catch (const Error&) {  // a full disk, for example
  }
  return tokenizer;
}

}  // namespace numsim
