// The argument of --rows.
#pragma once

#include <filesystem>
#include <string>

namespace numsim::experiments {

// The file of a table.
struct RowsArgument {
  std::string table;  // empty: that of the trainings
  std::filesystem::path path;
};
// Parses [TABLE=]FILE.
RowsArgument ParseRowsArgument(const std::string& text);

}  // namespace numsim::experiments
