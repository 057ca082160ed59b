#include "experiments/runner/rows_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "numsim/base/nearest_name.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool SameCell(const std::string& a, const std::string& b) {
  if (a == b) return true;
  try {
    return Cell(a).Number() == Cell(b).Number();
  } catch (const Error&) {
    return false;
  }
}

RowsTable::RowsTable(const std::filesystem::path& path, const std::vector<std::string>& columns)
    : path_(path) {
  const std::string text = ReadCsvText(path);
  sha256_ = Sha256OfText(text);
  table_ = ParseCsv(text, path.string());
  CheckColumns(columns);
  size_t line = 2;
  for (const Row& row : table_.rows) {
    lines_.push_back(line++);
    for (const Cell& cell : row) {
      const std::string cell_text = cell.Text();
      line += static_cast<size_t>(std::count(cell_text.begin(), cell_text.end(), '\n'));
    }
  }
}

Error RowsTable::Bad(size_t row, std::string_view column, const std::string& what) const {
  return Error::Format("{}:{}: column {}: {}", path_.string(), lines_[row], column, what);
}

double RowsTable::Number(size_t row, std::string_view column) const {
  try {
    return Cell(Text(row, column)).Number();
  } catch (const Error&) {
    throw Bad(row, column, fmt::format("expected a number, found '{}'", Text(row, column)));
  }
}

double RowsTable::Count(size_t row, std::string_view column) const {
  constexpr double kMost = 1e18;
  const double number = Number(row, column);
  if (number >= 0 && number <= kMost && number == std::floor(number)) return number;
  throw Bad(row, column, fmt::format("expected a whole number, found '{}'", Text(row, column)));
}

void RowsTable::CheckColumns(const std::vector<std::string>& columns) const {
  const std::string list = fmt::format("{}", fmt::join(columns, ", "));
  for (const std::string& column : table_.columns) {
    if (Has(columns, column)) continue;
    throw Error::Format("{}:1: {}", path_.string(), NotOneOf("column", column, list).what());
  }
  for (const std::string& column : columns) {
    if (Has(table_.columns, column)) continue;
    throw Error::Format(
        "{}:1: has no column {}; expected the columns {}", path_.string(), column, list);
  }
}

}  // namespace numsim::experiments
