// A CSV file of --rows, none of whose cells is believed unchecked.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {

class RowsTable {
 public:
  // Reads the file. Throws Error naming file and line unless its columns are these, in any order.
  RowsTable(const std::filesystem::path& path, const std::vector<std::string>& columns);

  const std::filesystem::path& Path() const { return path_; }
  const std::string& Sha256() const { return sha256_; }  // of the file
  size_t Size() const { return table_.rows.size(); }
  size_t Line(size_t row) const { return lines_[row]; }

  std::string Text(size_t row, std::string_view column) const { return table_.Text(row, column); }
  // Return the cell as a number, and as a whole number of at least 0. Throw Bad if it is none.
  double Number(size_t row, std::string_view column) const;
  double Count(size_t row, std::string_view column) const;

  // Returns an Error "FILE:LINE: column COLUMN: WHAT".
  Error Bad(size_t row, std::string_view column, const std::string& what) const;

 private:
  void CheckColumns(const std::vector<std::string>& columns) const;

  std::filesystem::path path_;
  std::string sha256_;
  Table table_;
  std::vector<size_t> lines_;  // of the rows
};

bool Has(const std::vector<std::string>& names, std::string_view name);

// Returns true for the same text, and for two texts of the same number: 1e-5 and 0.00001.
bool SameCell(const std::string& a, const std::string& b);

}  // namespace numsim::experiments
