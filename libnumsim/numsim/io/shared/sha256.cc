#include "numsim/io/shared/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/io/input_file.h"

namespace numsim {

std::string Sha256Hex(const std::filesystem::path& path) {
  constexpr uint64_t kChunk = uint64_t{1} << 20;
  const InputFile file(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<std::byte> buffer(std::min(file.Size(), kChunk));
  for (uint64_t offset = 0; good && offset < file.Size(); offset += buffer.size()) {
    buffer.resize(std::min(file.Size() - offset, kChunk));
    file.Read(offset, buffer);
    good = EVP_DigestUpdate(context.get(), buffer.data(), buffer.size()) == 1;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest, &length) == 1;
  if (!good) throw Error::Format("{}: OpenSSL cannot compute SHA-256", path.string());
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace numsim
