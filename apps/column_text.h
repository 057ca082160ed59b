// Formats the columns of a test case for display.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "numsim/oracle/operation.h"

namespace numsim::apps {

// Returns code, bits and value, as in "0x34  0 0110 100  0.75", or "0xFF  -1" for integers.
std::string ColumnText(const Column& column, uint64_t value);

// Returns the line of a case (case_text.h). A line of more than 100 characters is cut in the middle:
// "38 A1 ... (1016 columns) ... 3C 01".
std::string RowLine(std::span<const Column> columns, std::span<const uint64_t> row);

// Returns the flags with their names, as in "0x05 overflow inexact" or "0x00 none".
std::string FlagsText(Flags flags);

}  // namespace numsim::apps
