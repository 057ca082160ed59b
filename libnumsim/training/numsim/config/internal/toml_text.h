// Checks of TOML text before toml++ parses it: toml++ fails badly on what they refuse.
#pragma once

#include <string_view>

namespace numsim {

// The longest key of a configuration has four parts: linear.override.0.layers.
inline constexpr int kMostKeyParts = 8;

// Throws Error "NAME:LINE: ..." for a line of very many dots, and for a character outside of strings
// and comments that is not ASCII.
void CheckTomlText(std::string_view document, std::string_view name);

// Returns the position of the first byte outside of strings and comments that is not ASCII, or npos.
// The part of a key after a dot counts as no string.
size_t FindNonAscii(std::string_view document);

}  // namespace numsim
