// The distinct values of a table column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/csv.h"

namespace numsim::experiments {

// Returns each value of the column once, in the order of first appearance. Requires that the table
// has the column.
std::vector<std::string> Distinct(const Table& table, std::string_view column);

}  // namespace numsim::experiments
