// Kinds of linear layers and their formats, as options of experiments write them.
#pragma once

#include <string>
#include <string_view>

#include "numsim/linear/linear_recipe.h"

namespace numsim::experiments {

// FORMAT[/GRADIENT_FORMAT].
struct VariantFormats {
  std::string format;
  std::string gradient_format;  // empty: not given

  friend bool operator==(const VariantFormats&, const VariantFormats&) = default;
};
// The texts alone, whether they are formats or not. Throws Error, without the text, where one is
// missing.
VariantFormats SplitFormats(std::string_view text);

// KIND[:FORMAT[/GRADIENT_FORMAT]]; what is not given stays empty and is the kind's default. Throws
// Error naming the option, also where MakeLinearRecipe does.
LinearOptions ParseLinearVariant(std::string_view option, std::string_view text);

}  // namespace numsim::experiments
