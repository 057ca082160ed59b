// Reads and writes cases as text: one case per line, its columns as hexadecimal digits without a
// prefix, separated by one blank ("38 A1 3C 01"). Digits are written in upper case with leading
// zeros. The reader accepts both cases, a prefix 0x or 0X, and blanks, tabs and carriage returns
// around the columns. It skips lines without columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// Formats rows as text. All rows of the same columns have the same number of bytes.
class RowText {
 public:
  explicit RowText(std::span<const Column> columns);

  // Bytes per row, including the line feed.
  size_t bytes() const { return bytes_; }
  // Writes one row and a line feed to `out`. Requires row[i] < 2^bits of column i, and space for
  // bytes() bytes at `out`.
  void Write(std::span<const uint64_t> row, char* out) const noexcept;
  // Returns the text of the row without the line feed.
  std::string Line(std::span<const uint64_t> row) const;

 private:
  std::vector<int> digits_;
  size_t bytes_ = 0;
};

// Result of ParseRow().
struct ParsedRow {
  enum class Fault { kNone, kNotHexadecimal, kTooLarge, kTooMany };
  Fault fault = Fault::kNone;
  size_t columns = 0;      // columns read without a fault; after a fault, the index of its column
  std::string_view token;  // the token at fault
};
// Reads one line into `row`. Stops at the first fault; more than columns.size() columns are one.
// Requires row.size() == columns.size().
ParsedRow ParseRow(std::string_view line,
                   std::span<const Column> columns,
                   std::span<uint64_t> row) noexcept;

// Reads the open file `descriptor` to its end and adds every case to `total`. Uses all threads. The
// `place` of a case is its line number, counted from 1. All rows must have as many columns as the
// first one: inputs and results, or inputs, results and flags. If `require_flags` is true, the
// flags must be there. Throws Error that begins with `source` and names line and column if a row is
// malformed. Also throws Error if a read fails, if a line is longer than 4 MiB, or if there are no
// cases.
void TallyText(int descriptor,
               std::string_view source,
               const CaseColumns& columns,
               bool require_flags,
               CaseTally& total);

}  // namespace numsim
