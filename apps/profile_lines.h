// The lines of `numsim inspect --profile`.
#pragma once

#include <string>

#include "numsim/formats/format_table.h"

namespace numsim::apps {

// Returns the result of converting `value` with profile `name`; "all" stands for each profile that
// defines the format. The source type is float32 if the value is a float32, else float64. If the
// profile does not support float64, the value is rounded to float32 first. A stochastic profile
// gives two codes and the number of random words that select each. Throws Error if the profile does
// not define the conversion.
std::string ProfileLines(const std::string& name, const Format& format, double value);

}  // namespace numsim::apps
