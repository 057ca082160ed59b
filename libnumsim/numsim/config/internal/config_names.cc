#include "numsim/config/internal/config_names.h"

#include <algorithm>
#include <numeric>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Returns the Levenshtein distance.
size_t Changes(std::string_view x, std::string_view y) {
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

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string NearestName(std::string_view wrong, const std::vector<std::string>& names) {
  NUMSIM_CHECK(!names.empty(), "no name to compare '{}' with", wrong);
  const std::string* nearest = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    const size_t elsewhere = 2 + Changes(LastPart(wrong), LastPart(name));
    const size_t changes = std::min(Changes(wrong, name), elsewhere);
    if (nearest != nullptr && changes >= least) continue;
    nearest = &name;
    least = changes;
  }
  return *nearest;
}

}  // namespace numsim
