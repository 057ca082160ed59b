// Names of Tininess: after, before.
#pragma once

#include <string_view>

#include "numsim/rounding/flags.h"

namespace numsim {

std::string_view Name(Tininess tininess);
// Inverse of Name. Throws Error that names the value and lists the valid ones.
Tininess ParseTininess(std::string_view text);

}  // namespace numsim
