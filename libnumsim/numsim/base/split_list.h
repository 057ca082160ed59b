// Texts that are lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// The pieces between commas. An empty text has one piece, which is empty.
std::vector<std::string> SplitList(std::string_view text);

// The same for names of formats: a piece KEY=VALUE without a base continues the custom format
// before it: "e4m3fn,e4m3:bias=8,inf=none" has two.
std::vector<std::string> SplitFormatList(std::string_view text);

}  // namespace numsim
