// CSV tables: header row, one record a row, '.' decimals, shortest numbers that read back to the
// same double, RFC 4180 quoting, '\n' line ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// A cell in its final text: what is equal as text is equal as a result.
std::string FormatCell(double value);  // shortest round-trip; nan, inf, -inf
std::string FormatCell(int64_t value);
std::string FormatCell(uint64_t value);
std::string FormatCell(int value);
std::string FormatCell(std::string_view text);
inline std::string FormatCell(const char* text) { return FormatCell(std::string_view(text)); }

// A table in memory. Cells are unquoted text.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  // Index of a column. Throws Error naming the column when there is none.
  size_t Column(std::string_view name) const;
  const std::string& Text(size_t row, std::string_view column) const;
  // The cell as a double ("nan", "inf" included). Throws Error when it is not a number.
  double Number(size_t row, std::string_view column) const;
};

std::string ToCsv(const Table& table);

// Replaces the file in one step (see atomic_file.h). Throws Error when it cannot be written.
void WriteCsv(const std::filesystem::path& path, const Table& table);

// Throws Error naming file and line for a missing header, a row of another length or bad quoting.
Table ReadCsv(const std::filesystem::path& path);

}  // namespace numsim
