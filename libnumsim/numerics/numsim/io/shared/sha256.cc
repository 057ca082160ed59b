#include "numsim/io/shared/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {}
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context;
};

namespace {

// OpenSSL fails for want of memory alone.
void Require(bool good) {
  if (!good) throw Error("OpenSSL cannot compute SHA-256");
}

Sha256 DigestOf(const InputFile& file, uint64_t length) {
  constexpr uint64_t kChunk = uint64_t{1} << 20;
  Sha256 digest;
  std::vector<std::byte> buffer;
  for (uint64_t offset = 0; offset < length; offset += buffer.size()) {
    buffer.resize(std::min(length - offset, kChunk));
    file.Read(offset, buffer);
    digest.Add(buffer);
  }
  return digest;
}

}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(state_->context != nullptr &&
          EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Sha256::Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }

std::string Sha256::Hex() const {
  const State copy;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  Require(copy.context != nullptr && EVP_MD_CTX_copy_ex(copy.context, state_->context) == 1 &&
          EVP_DigestFinal_ex(copy.context, digest, &length) == 1);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

Sha256 Sha256OfStart(const std::filesystem::path& path, uint64_t length) {
  return DigestOf(InputFile(path), length);
}

std::string Sha256Hex(const std::filesystem::path& path) {
  const InputFile file(path);
  return DigestOf(file, file.Size()).Hex();
}

std::string Sha256OfText(std::string_view text) {
  Sha256 digest;
  digest.Add(text);
  return digest.Hex();
}

}  // namespace numsim
