// Splits comma-separated lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Returns the pieces between commas. An empty text has one piece, which is empty.
std::vector<std::string> SplitList(std::string_view text);

// Splits a list of format names. A piece KEY=VALUE without a base continues the custom format
// before it, so "e4m3fn,e4m3:bias=8,inf=none" has two formats.
std::vector<std::string> SplitFormatList(std::string_view text);

}  // namespace numsim
