// Makes text from files and other programs printable in a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace numsim {

// Returns `text` with control characters of ASCII, and bytes that are not UTF-8, written as \xNN, and
// with other characters that are not seen or turn the direction of writing as \uNNNN. Longer text is
// cut after at most `limit` bytes of input, between characters, followed by "...".
std::string Printable(std::string_view text, size_t limit = 80);

// Returns a message as Printable does, of some 1800 bytes at most: of a very long word, and of a very
// long message, the middle becomes "...".
std::string PrintableMessage(std::string_view message);

}  // namespace numsim
