// The lines of `numsim inspect --profile`.
#pragma once

#include <string>

#include "numsim/formats/format_table.h"

namespace numsim::apps {

// Returns what profile `name`, or with "all" each that defines the format, makes of `value`: from
// float32 where the value is one, else from float64, else, where the profile knows no float64, of
// the value rounded to float32. A stochastic profile gives two codes and how many random words
// choose the second. Throws Error when the profile does not define the conversion.
std::string ProfileLines(const std::string& name, const Format& format, double value);

}  // namespace numsim::apps
