// CSV tables: a header row, one record per row, '.' as the decimal point, the shortest number text
// that reads back to the same double, RFC 4180 quoting, '\n' line ends.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/cell.h"

namespace numsim {

// A table in memory. Texts are without CSV quoting.
struct Table {
  std::vector<std::string> columns = {};
  std::vector<Row> rows = {};

  // Returns the index of a column. Throws Error naming the column if there is none.
  size_t Column(std::string_view name) const;
  // Return a cell as text or as a number (cell.h). Throw Error naming the column if there is none,
  // and naming column and record if a text is not a number.
  std::string Text(size_t row, std::string_view column) const;
  double Number(size_t row, std::string_view column) const;

 private:
  const Cell& At(size_t row, std::string_view column) const;
};

// Returns the table as CSV: a line of column names, then a line per row.
std::string ToCsv(const Table& table);

// Writes the table, replacing the file atomically (see atomic_file.h). Throws Error if it cannot be
// written.
void WriteCsv(const std::filesystem::path& path, const Table& table);

// Returns true if there is the file PATH, or PATH.gz instead, which the functions below then read.
// Throws Error naming it if both are there.
bool HasCsv(const std::filesystem::path& path);
// Returns the text of a table. If the file is gzip, which its content decides, it is decompressed.
// Throws Error naming a file that cannot be read.
std::string ReadCsvText(const std::filesystem::path& path);
// Reads a table. Throws Error as ReadCsvText does, and naming file and line for a missing header, a row
// whose length differs from the header's, or bad quoting.
Table ReadCsv(const std::filesystem::path& path);
// Parses a table from text; `file` is its name in errors.
Table ParseCsv(std::string_view text, const std::string& file);

}  // namespace numsim
