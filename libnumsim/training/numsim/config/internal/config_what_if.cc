// The keys of [what_if].
#include "numsim/config/shared/config_table.h"

namespace numsim {

ConfigRows<WhatIfConfig> WhatIfRows() {
  using W = WhatIfConfig;
  const auto same = [](const std::string& text) { return text; };
  const auto write = [](const WhatIfRecipe& recipe) { return ToString(recipe); };
  return {
      WholeRow("every", &W::every, 1, "steps between measurements, which what_if.csv records"),
      TextsRow("recipes",
               &W::recipes,
               ParseWhatIfRecipe,
               write,
               "recipes under which X, W and G of linear layers are measured; empty: none",
               "array of FORMAT SCALING OPTION..."),
      TextsRow("layers",
               &W::layers,
               same,
               same,
               "patterns of the names of the layers that are measured; '*' matches any characters",
               "array of patterns"),
  };
}

}  // namespace numsim
