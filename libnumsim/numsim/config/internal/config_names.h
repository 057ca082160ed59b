// Finds the known name that is nearest to an unknown one, for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Returns the name that needs the fewest insertions, deletions and replacements of characters; the
// first one of equals. A wrong section (everything before the last '.') counts as at most two
// changes. Requires a nonempty list.
std::string NearestName(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace numsim
