// How the columns of a case are written for people.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/oracle/operation.h"

namespace numsim::apps {

// Bits and value: "0x34  0 0110 100  0.75"; integers "0xFF  -1".
std::string ColumnText(const Column& column, uint64_t value);

// Flags by name: "0x05 overflow inexact", "0x00 none".
std::string FlagsText(Flags flags);

}  // namespace numsim::apps
