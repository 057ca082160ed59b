// Formats codes and values for display, and warns of formats that are easily confused.
#pragma once

#include <string>
#include <string_view>

#include "numsim/formats/format_spec.h"

namespace numsim::apps {

// Returns a text such as "0x34", with as many digits as the format needs.
std::string CodeText(const FormatSpec& format, uint32_t code);

// Returns the bits of a code as sign, exponent and mantissa fields, as in "0 0110 100".
std::string BitsText(const FormatSpec& format, uint32_t code);

// Returns the shortest text that parses to the same float32, such as "0.78125", "inf", "nan", "-0".
std::string ValueText(float value);

// Returns the class of a code; in a table of values kZero, kNormal, and kUnused for codes that stand for
// nothing.
ValueClass ClassOf(const FormatSpec& format, uint32_t code);

// Returns "zero", "subnormal", "normal", "infinity", "NaN" or "unused".
std::string ClassText(ValueClass value_class);

// From now on, prints the note of each name of a format that the library reads and that means
// different formats in different texts (FormatNote), once each, on stderr.
void PrintFormatNotes();

// Returns the help text of an option that takes a format: `help`, then the note on e4m3 in parentheses.
std::string FormatHelp(std::string_view help);

}  // namespace numsim::apps
