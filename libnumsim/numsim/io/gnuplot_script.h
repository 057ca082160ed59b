// Figures as gnuplot scripts.
#pragma once

#include <string>
#include <string_view>

#include "numsim/io/figure.h"

namespace numsim {

// Returns a script for gnuplot 5.2 or newer that holds the figure's data and writes NAME.svg and
// NAME.pdf into the current directory. The same figure gives the same text.
// Requires a name without '/', at least one panel, and positive limits on log axes.
std::string GnuplotScript(const Figure& figure);

// Returns a gnuplot expression for the text, which no character of it can leave: gnuplot runs
// `commands` in backquotes found within double quotes, so only single quotes are used.
// Line feeds stay, other control characters become blanks.
std::string GnuplotText(std::string_view text);

}  // namespace numsim
