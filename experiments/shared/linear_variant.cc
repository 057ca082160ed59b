#include "experiments/shared/linear_variant.h"

#include <algorithm>

#include "numsim/base/error.h"

namespace numsim::experiments {

VariantFormats SplitFormats(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  VariantFormats formats{std::string(text.substr(0, slash)), {}};
  if (slash < text.size()) formats.gradient_format = text.substr(slash + 1);
  if (formats.format.empty() || text.ends_with('/')) throw Error("a format is missing");
  return formats;
}

LinearOptions ParseLinearVariant(std::string_view text) {
  try {
    LinearOptions options;
    const size_t colon = std::min(text.find(':'), text.size());
    options.kind = text.substr(0, colon);
    if (colon < text.size()) {
      const VariantFormats formats = SplitFormats(text.substr(colon + 1));
      options.format = formats.format;
      options.gradient_format = formats.gradient_format;
    }
    MakeLinearRecipe(options);
    return options;
  } catch (const Error& error) {
    throw Error::Format("is not KIND[:FORMAT[/GRADIENT_FORMAT]]: {}", error.what());
  }
}

LinearOptions ParseLinearVariant(std::string_view option, std::string_view text) {
  try {
    return ParseLinearVariant(text);
  } catch (const Error& error) {
    throw Error::Format("--{}: '{}' {}", option, text, error.what());
  }
}

}  // namespace numsim::experiments
