// The values of a column of a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/csv.h"

namespace numsim::experiments {

// Each value of the column once, in the order of first appearance. Requires the column.
std::vector<std::string> Distinct(const Table& table, std::string_view column);

}  // namespace numsim::experiments
