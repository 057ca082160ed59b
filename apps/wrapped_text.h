// Text in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace numsim::apps {

// Prints text in lines of at most 88 characters that begin with `indent` blanks.
void PrintWrapped(size_t indent, const std::string& text);

}  // namespace numsim::apps
