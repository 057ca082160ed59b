// Parses kinds of linear layers and their formats as the options of experiments write them.
#pragma once

#include <string>
#include <string_view>

#include "numsim/linear/linear_recipe.h"

namespace numsim::experiments {

// The parts of FORMAT[/GRADIENT_FORMAT].
struct VariantFormats {
  std::string format;
  std::string gradient_format;  // empty: not given

  friend bool operator==(const VariantFormats&, const VariantFormats&) = default;
};
// Splits FORMAT[/GRADIENT_FORMAT] without checking that the parts name formats. Throws Error when a
// part is empty; the message does not repeat `text`.
VariantFormats SplitFormats(std::string_view text);

// Parses KIND[:FORMAT[/GRADIENT_FORMAT]]. An omitted format stays empty, which selects the kind's
// default. Throws Error "is not KIND...: why" when the text is malformed or MakeLinearRecipe rejects it.
LinearOptions ParseLinearVariant(std::string_view text);
// Parses the same as the value of an option, which errors name with the text.
LinearOptions ParseLinearVariant(std::string_view option, std::string_view text);

}  // namespace numsim::experiments
