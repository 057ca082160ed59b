// CSV tables: a header row, one record per row, '.' as the decimal point, the shortest number text
// that reads back to the same double, RFC 4180 quoting, '\n' line ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Return the text of a cell. Equal values have equal text.
std::string FormatCell(double value);  // shortest round-trip text; nan, inf, -inf
std::string FormatCell(int64_t value);
std::string FormatCell(uint64_t value);
std::string FormatCell(int value);
std::string FormatCell(std::string_view text);
inline std::string FormatCell(const char* text) { return FormatCell(std::string_view(text)); }

// A table in memory. Cells hold text without CSV quoting.
struct Table {
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::string>> rows = {};

  // Returns the index of a column. Throws Error naming the column if there is none.
  size_t Column(std::string_view name) const;
  const std::string& Text(size_t row, std::string_view column) const;
  // Returns the cell as a double, including "nan" and "inf". Throws Error if it is not a number.
  double Number(size_t row, std::string_view column) const;
};

std::string ToCsv(const Table& table);

// Writes the table, replacing the file atomically (see atomic_file.h). Throws Error if it cannot be
// written.
void WriteCsv(const std::filesystem::path& path, const Table& table);

// Reads a table. Throws Error naming file and line for a missing header, a row whose length differs
// from the header's, or bad quoting.
Table ReadCsv(const std::filesystem::path& path);

}  // namespace numsim
