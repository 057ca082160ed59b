// Finds the key that an unknown one probably stands for, for error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// A key, or several joined by " and ", and the names, separated by blanks, by which other programs
// know it. They serve only as hints: a configuration does not accept them.
struct OtherNames {
  std::string_view key;
  // Lower case, words joined by '_'. A name with a section holds in that section alone and goes
  // before one without a section, which holds in all.
  std::string_view names;
};
std::span<const OtherNames> AllOtherNames();

// Returns the key that `wrong` probably stands for: the key that has this other name (in upper or
// lower case, with '_' or '-'), else the one of `names` that needs the fewest changed characters,
// where a wrong section (everything before the last '.') counts as at most two. Returns "" if the
// names after the section differ by more than a typo. A key of [[linear.override]] is only compared
// with `names`.
std::string KeyHint(std::string_view wrong, const std::vector<std::string>& names);

// Returns the section that `wrong` is probably a typo, a short form or a long form of; "" if none.
std::string SectionHint(std::string_view wrong, const std::vector<std::string>& sections);

}  // namespace numsim
