// How codes, values and formats are written for people.
#pragma once

#include <string>

#include "numsim/formats/format_spec.h"

namespace numsim::apps {

// "0x34", as many digits as the format needs.
std::string CodeText(const FormatSpec& format, uint32_t code);

// The code's bits as sign, exponent and mantissa fields: "0 0110 100".
std::string BitsText(const FormatSpec& format, uint32_t code);

// Shortest text that reads back to the same float32: "0.78125", "inf", "nan", "-0".
std::string ValueText(float value);

// zero, subnormal, normal, infinity, NaN, unused.
std::string ClassText(ValueClass value_class);

}  // namespace numsim::apps
