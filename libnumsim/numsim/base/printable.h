// Makes text from files and other programs printable in a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace numsim {

// Returns `text` with control characters, and bytes that are not UTF-8, written as \xNN. Longer text
// is cut after at most `limit` bytes of input, between characters, followed by "...".
std::string Printable(std::string_view text, size_t limit = 80);

}  // namespace numsim
