// The nearest of a list of names to one that is not in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Of the names with the fewest insertions, deletions and replacements of characters the first; a
// name that is right but for its section counts as two changes. Requires a list that is not empty.
std::string NearestName(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace numsim
