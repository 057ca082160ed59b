// Names as a text, for errors that list what there is.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string>
#include <vector>

namespace numsim::experiments::study {

// Returns "A, B, C": the name of each row, a member or what a function makes of the row.
template <typename Rows, typename Name>
std::string NameList(const Rows& rows, Name name) {
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const auto& row : rows) names.push_back(std::invoke(name, row));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace numsim::experiments::study
