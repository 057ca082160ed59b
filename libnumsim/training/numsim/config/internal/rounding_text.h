// Rounding modes as text of a configuration.
#pragma once

#include <string>

#include "numsim/rounding/rounding.h"

namespace numsim {

// Returns "rne, rna, ..., sr[:BITS[:a, b or c]]".
std::string RoundingTexts();

// Parses e.g. "rne", "sr", "sr:16", "sr:16:b". Throws Error listing these forms.
Rounding ParseRounding(const std::string& text);

// Returns text that ParseRounding reads back to the same rounding.
std::string RoundingText(const Rounding& rounding);

}  // namespace numsim
