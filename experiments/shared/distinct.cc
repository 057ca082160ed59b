#include "experiments/shared/distinct.h"

#include <algorithm>

namespace numsim::experiments {

std::vector<std::string> Distinct(const Table& table, std::string_view column) {
  std::vector<std::string> values;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string value = table.Text(row, column);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

}  // namespace numsim::experiments
