// Cases as text: one case a line, its columns as hexadecimal digits without prefix, one blank
// between them ("38 A1 3C 01"). Written in upper case with leading zeros; read in either case, with
// blanks, tabs and carriage returns around the columns. Lines without columns are skipped.
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

// Writes rows: every row of the same columns takes as many bytes.
class RowText {
 public:
  explicit RowText(std::span<const Column> columns);

  // Of a row, line feed included.
  size_t bytes() const { return bytes_; }
  // Requires row[i] < 2^bits of column i and bytes() bytes at `out`.
  void Write(std::span<const uint64_t> row, char* out) const noexcept;
  // The row without line feed.
  std::string Line(std::span<const uint64_t> row) const;

 private:
  std::vector<int> digits_;
  size_t bytes_ = 0;
};

// Reads one line of at most row.size() == columns.size() columns.
struct ParsedRow {
  enum class Fault { kNone, kNotHexadecimal, kTooLarge, kTooMany };
  Fault fault = Fault::kNone;
  size_t columns = 0;      // read without fault, so at a fault the index of its column
  std::string_view token;  // at fault
};
ParsedRow ParseRow(std::string_view line,
                   std::span<const Column> columns,
                   std::span<uint64_t> row) noexcept;

// Reads the open file `descriptor` to its end and adds every case to `total`, on all threads;
// `place` of a case is the number of its line, from 1 on. All rows must have as many columns as the
// first: inputs and results, or those and the flags, which `require_flags` demands. Throws Error
// that begins with `source` and names line and column for anything else; also when a read fails, a
// line is longer than 4 MiB, or there is no case at all.
void TallyText(int descriptor,
               std::string_view source,
               const CaseColumns& columns,
               bool require_flags,
               CaseTally& total);

}  // namespace numsim
