// Formats that are a table of values, such as NF4: codes stand for any 2 to 256 float32 numbers.
//
// The FormatSpec of such a format has the number of its table and the width of its codes. Tables
// live as long as the process. They serve casts, quantised matrices and their error measures on the
// host; everything else takes formats from ParseFormat, which refuses tables by name.
//
// Rounding. Let the values in ascending order have the positions 0, 1, ... A number between two of
// them is rounded to one of the two. With t the one of smaller magnitude (the lower one if both are
// equal), which takes the place of the neighbour toward zero:
//   nearest even   the nearer one; a tie goes to the even position
//   nearest away   the nearer one; a tie goes to the one that is not t
//   toward zero    t
//   up, down       the higher, the lower one
//   to odd         the odd position
//   stochastic     rounding.h, with nu = |x - t| / (distance of the two)
// A number beyond the ends, or an infinity, becomes the end under every mode and overflow policy. A
// NaN becomes the highest value and is invalid, as in other formats without NaN. -0 is 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/formats/format_table.h"

namespace numsim {

// A format whose codes stand for the values of a list.
struct ValueTable {
  std::string name;
  std::string source;  // keys of docs/references.md
  std::string note;
  FormatSpec spec;
  std::vector<float> by_code;   // the value of each code; NaN for codes that stand for nothing
  std::vector<float> values;    // ascending, each once
  std::vector<uint8_t> codes;   // codes[i] is the code of values[i]: of several the lowest
  float largest = 0;            // the largest magnitude
  float smallest_positive = 0;  // 0 if no value is positive
};

// Returns the tables with names, such as nf4, in the order of docs/formats.md.
std::span<const ValueTable* const> NamedTables();

// Returns the table with a name, in any case, or nullptr.
const ValueTable* FindTable(std::string_view name);

// Returns the table of a format. Requires format.IsTable().
const ValueTable& TableOf(const FormatSpec& format);

// Returns true if this is the format of a table of the process.
bool IsTableFormat(const FormatSpec& format);

// Returns the format whose code c stands for by_code[c], under the name "table:" + `file`. The same
// name and values give the same format. Throws Error unless there are 2 to 256 finite values, at
// least two of them different, and if this is the 200th table of the process.
Format AddTable(std::string_view file, std::span<const float> by_code);

// Parses what ParseFormat does, and names of tables. It does not read files: see ParseCastFormat
// (io/table_file.h).
Format ParseFormatOrTable(std::string_view text);

// Throws Error that names the format if it is a table of values: `who` does not take these.
void RefuseTable(const FormatSpec& format, std::string_view who);

// Returns the 256 values of the dynamic 8-bit map of bitsandbytes in ascending order [bitsandbytes8],
// [torchao]. For e = 0 .. 6 the interval [10^(-e-1), 10^-e] is cut into 2^(6-e) (signed) or 2^(7-e)
// (unsigned) equal parts, and the middle of each part is a value, as are its negative (signed), 0 and
// 1. Each is the float32 nearest to the exact number; PyTorch computes its map in float32 and is up to
// 2 ulp away.
std::vector<float> DynamicMapValues(bool is_signed);

}  // namespace numsim
