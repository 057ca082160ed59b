// Computes the SHA-256 of files [FIPS180-4].
#pragma once

#include <filesystem>
#include <string>

namespace numsim {

// Returns the digest of a regular file as 64 lower-case hexadecimal digits, as sha256sum prints it.
// Throws Error naming the path if it cannot be read.
std::string Sha256Hex(const std::filesystem::path& path);

}  // namespace numsim
