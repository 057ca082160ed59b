// Names of enumerators. One constexpr list serves printing, parsing and the error message that
// lists the valid names.
#pragma once

#include <string>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim {

template <typename Enum>
struct Keyword {
  std::string_view text;
  Enum value;
};

// Returns the name of `value`. Requires `value` to be in the list.
template <typename Enum, size_t N>
std::string_view KeywordToString(const Keyword<Enum> (&keywords)[N], Enum value) {
  for (const Keyword<Enum>& keyword : keywords) {
    if (keyword.value == value) return keyword.text;
  }
  NUMSIM_CHECK(false, "enumerator {} without a name", static_cast<int>(value));
  return {};
}

// Returns the names, separated by ", ".
template <typename Enum, size_t N>
std::string KeywordNames(const Keyword<Enum> (&keywords)[N]) {
  std::string names;
  for (const Keyword<Enum>& keyword : keywords) {
    if (!names.empty()) names += ", ";
    names += keyword.text;
  }
  return names;
}

// Returns the enumerator named `text`. Throws Error "WHAT 'TEXT' is not one of ..." if there is
// none, with the nearest name.
template <typename Enum, size_t N>
Enum ParseKeyword(const Keyword<Enum> (&keywords)[N],
                  std::string_view what,
                  std::string_view text) {
  for (const Keyword<Enum>& keyword : keywords) {
    if (keyword.text == text) return keyword.value;
  }
  throw NotOneOf(what, text, KeywordNames(keywords));
}

}  // namespace numsim
