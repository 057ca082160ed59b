// Text in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace numsim::experiments {

// Returns the text in lines of at most 88 characters that begin with `indent` blanks, broken at blanks. A word
// that is longer than a line has a line of its own.
std::vector<std::string> WrappedLines(size_t indent, const std::string& text);

}  // namespace numsim::experiments
