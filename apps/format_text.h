// Formats codes and values for display.
#pragma once

#include <string>

#include "numsim/formats/format_spec.h"

namespace numsim::apps {

// Returns a text such as "0x34", with as many digits as the format needs.
std::string CodeText(const FormatSpec& format, uint32_t code);

// Returns the bits of a code as sign, exponent and mantissa fields, as in "0 0110 100".
std::string BitsText(const FormatSpec& format, uint32_t code);

// Returns the shortest text that parses to the same float32, such as "0.78125", "inf", "nan", "-0".
std::string ValueText(float value);

// Returns "zero", "subnormal", "normal", "infinity", "NaN" or "unused".
std::string ClassText(ValueClass value_class);

}  // namespace numsim::apps
