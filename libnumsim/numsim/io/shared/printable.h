// Makes text from files and other programs printable in a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace numsim {

// Returns `text` with control characters written as \xNN. Longer text is cut after `limit` bytes of
// input, followed by "...". UTF-8 is kept.
std::string Printable(std::string_view text, size_t limit = 80);

}  // namespace numsim
