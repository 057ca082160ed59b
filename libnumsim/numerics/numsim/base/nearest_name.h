// Finds the known name that a mistyped one probably stands for, and words the error about it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/base/error.h"

namespace numsim {

// Returns the least number of insertions, deletions and replacements of bytes that turn x into y
// (the Levenshtein distance).
size_t EditDistance(std::string_view x, std::string_view y);

// Returns true if `changes` are few enough for a name of `length` bytes to be a mistyped one: about
// one in three bytes. A name of one byte allows none, one of two to four bytes allows one.
bool IsLikelyTypo(size_t changes, size_t length);

// Returns the name with the least EditDistance to `wrong`, the first one of equals; "" if no name
// is so near that `wrong` is likely to be a typo of it.
std::string NearestName(std::string_view wrong, const std::vector<std::string>& names);

// Returns "; did you mean NAME?" with the nearest name of a list "A, B, C", to be added to a message
// that lists it; "" if there is none.
std::string DidYouMean(std::string_view wrong, std::string_view list);

// Returns the Error "WHAT 'WRONG' is not one of LIST", with the nearest name of the list "A, B, C".
Error NotOneOf(std::string_view what, std::string_view wrong, std::string_view list);

}  // namespace numsim
