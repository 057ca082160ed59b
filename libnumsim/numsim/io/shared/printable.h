// Text from files and other programs, made fit for a message of one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace numsim {

// Returns `text` with control characters as \xNN, cut after `limit` bytes of input with "...".
// UTF-8 passes through.
std::string Printable(std::string_view text, size_t limit = 80);

}  // namespace numsim
