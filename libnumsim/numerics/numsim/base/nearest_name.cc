#include "numsim/base/nearest_name.h"

#include <algorithm>
#include <numeric>

#include "numsim/base/printable.h"

namespace numsim {

size_t EditDistance(std::string_view x, std::string_view y) {
  std::vector<size_t> row(y.size() + 1);  // distances to each prefix of y
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < x.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < y.size(); ++j) {
      const size_t replaced = diagonal + (x[i] == y[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

bool IsLikelyTypo(size_t changes, size_t length) { return changes <= (length + 1) / 3; }

std::string NearestName(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string* nearest = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    // At least as many changes as the lengths differ by: the product of the lengths can be large.
    const size_t longer = std::max(wrong.size(), name.size());
    if (!IsLikelyTypo(longer - std::min(wrong.size(), name.size()), wrong.size())) continue;
    const size_t changes = EditDistance(wrong, name);
    if (!IsLikelyTypo(changes, wrong.size()) || (nearest != nullptr && changes >= least)) continue;
    nearest = &name;
    least = changes;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

std::string DidYouMean(std::string_view wrong, std::string_view list) {
  constexpr std::string_view kSeparator = ", ";
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(kSeparator, begin), list.size());
    names.emplace_back(list.substr(begin, end - begin));
    begin = end + kSeparator.size();
  }
  const std::string name = NearestName(wrong, names);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

Error NotOneOf(std::string_view what, std::string_view wrong, std::string_view list) {
  return Error::Format(
      "{} '{}' is not one of {}{}", what, Printable(wrong), list, DidYouMean(wrong, list));
}

}  // namespace numsim
