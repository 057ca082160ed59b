// The configuration of what-if telemetry: the recipes under which tensors would be quantised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/quantize/delayed_scale.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// How a tensor would be quantised. Overflows saturate.
struct WhatIfRecipe {
  Format format = {};       // signed, with a zero
  ScaleLayout layout = {};  // of the tensor as the model stores it, not transposed
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  // Scale from earlier steps; the layout is then kTensor, and scale_rule is not read.
  std::optional<DelayedScalingOptions> delayed = {};
  Rounding rounding = {};
};

// Parses "FORMAT SCALING OPTION...", words separated by blanks; any number of options in any order:
//   FORMAT                            as ParseFormat
//   tensor, row, column, block:N, tile:ROWSxCOLS
//                                     a scale layout; options: a scale rule (default:
//                                     UsualScaleRule), a rounding mode
//   delayed                           delayed scaling of the tensor; options: history:N (default
//                                     1024), max (default) or most-recent, margin:N, a rounding
//                                     mode
// e.g. "e4m3fn tensor", "e2m1 block:32 e8m0 sr", "e5m2 delayed history:16 most-recent". Throws
// Error with the word at fault, what was expected and the nearest valid name.
WhatIfRecipe ParseWhatIfRecipe(std::string_view text);
// Returns the shortest text that reads back to the same recipe.
std::string ToString(const WhatIfRecipe& recipe);

// Which quantisations a training measures without using them ([what_if]).
struct WhatIfConfig {
  uint64_t every = 50;                      // steps between measurements, >= 1
  std::vector<WhatIfRecipe> recipes = {};   // empty: nothing is measured
  std::vector<std::string> layers = {"*"};  // patterns of the names of linear layers
};

// Throws Error naming the key if `every` is 0, a recipe is given twice, or there are recipes but no
// layers.
void CheckWhatIfConfig(const WhatIfConfig& config);

}  // namespace numsim
