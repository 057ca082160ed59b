// Formats the columns of a test case for display.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/oracle/operation.h"

namespace numsim::apps {

// Returns code, bits and value, as in "0x34  0 0110 100  0.75", or "0xFF  -1" for integers.
std::string ColumnText(const Column& column, uint64_t value);

// Returns the flags with their names, as in "0x05 overflow inexact" or "0x00 none".
std::string FlagsText(Flags flags);

}  // namespace numsim::apps
