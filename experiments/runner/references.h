// The sources that texts of the program cite by a key in square brackets. docs/references.md is the
// only list; the build compiles its text into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim::experiments {

// Returns the entry of docs/references.md with that key, without the key and on one line: authors,
// title, place and year; "" if there is none.
std::string ReferenceOf(std::string_view key);

// Returns the keys in square brackets that have an entry, each once, in the order of the text.
std::vector<std::string> KeysCitedBy(std::string_view text);

// Returns authors, title and year of the entry, "B. Noune, P. Jones: A Title, 2022"; without the
// authors or the year where the entry has none.
std::string ShortReferenceOf(std::string_view key);

}  // namespace numsim::experiments
