// Computes the SHA-256 of bytes and of files [FIPS180-4].
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace numsim {

// The digest of bytes that are added piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text);
  // Returns the digest of everything that was added so far as 64 lower-case hexadecimal digits, as
  // sha256sum prints it. More may be added afterwards.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the digest of a regular file, or of its first `length` bytes, as Sha256::Hex does. Throws
// Error naming the path if it cannot be read or is shorter.
std::string Sha256Hex(const std::filesystem::path& path);
Sha256 Sha256OfStart(const std::filesystem::path& path, uint64_t length);

}  // namespace numsim
