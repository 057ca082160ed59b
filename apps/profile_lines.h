// The lines of `numsim inspect --profile`.
#pragma once

#include <string>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/exact_number.h"

namespace numsim::apps {

// Returns the result of converting `value` with profile `name`; "all" stands for each profile that
// defines the format. The source type is float32 if the value is a float32, else float64, to which
// the value is rounded. If the profile does not support float64, it is rounded to float32 instead. A
// stochastic profile gives two codes and the number of random words that select each. Throws Error
// if the profile does not define the conversion.
std::string ProfileLines(const std::string& name, const Format& format, const ExactNumber& value);

}  // namespace numsim::apps
