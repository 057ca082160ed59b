// Reading and checking of UTF-8 text files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace numsim {

// Returns the offset of the first byte that is not part of a well-formed UTF-8 sequence, or
// nullopt. Surrogates, overlong sequences and code points above U+10FFFF are not well-formed (RFC
// 3629).
std::optional<size_t> FindInvalidUtf8(std::string_view text);

// Returns the least offset >= `offset` at which a character begins, or the size of the text.
// Requires valid UTF-8.
size_t NextCharacter(std::string_view text, size_t offset);

// Returns the bytes of a UTF-8 file without a leading byte order mark. Throws Error naming the file
// if it cannot be read, is empty, or is not valid UTF-8; in the last case also with the offset of
// the offending byte.
std::string ReadUtf8File(const std::filesystem::path& path);

}  // namespace numsim
