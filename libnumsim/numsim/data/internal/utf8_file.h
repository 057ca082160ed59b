// Text files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace numsim {

// The offset of the first byte that belongs to no well-formed UTF-8 sequence, or nullopt.
// Surrogates, overlong sequences and numbers above U+10FFFF are not well-formed (RFC 3629).
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// The least offset >= `offset` at which a character begins, or the end. Requires valid UTF-8.
size_t NextCharacter(std::string_view text, size_t offset);

// The bytes of a UTF-8 file; a byte order mark at its beginning is left out. Throws Error naming
// the file when it cannot be read, is empty, or is not UTF-8: then with the offset of the byte at
// fault.
std::string ReadUtf8File(const std::filesystem::path& path);

}  // namespace numsim
