// The options of commands that draw figures: --width, --font and --panels.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "numsim/plot/figure.h"

namespace numsim::apps {

struct FigureArguments {
  double width = 0, font = 8;
  std::string panels = {};
};

// Adds the options, which store what is given in `arguments`.
void AddFigureOptions(CLI::App* sub, FigureArguments& arguments);

// Returns the style that the options describe. Throws Error for panels that are neither numbers nor
// letters.
FigureStyle StyleOf(const FigureArguments& arguments);

}  // namespace numsim::apps
