#include "numsim/config/internal/rounding_text.h"

#include <fmt/format.h>

#include "numsim/base/error.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {

std::string RoundingTexts() {
  std::string texts;
  for (const RoundingModeRow& row : kRoundingModes) {
    texts += fmt::format(
        "{}{}{}", texts.empty() ? "" : ", ", row.name, row.draws ? "[:BITS[:a, b or c]]" : "");
  }
  return texts;
}

Rounding ParseRounding(const std::string& text) {
  const size_t bits_at = text.find(':');
  Rounding rounding;
  rounding.mode = ParseRoundingMode(text.substr(0, bits_at));
  if (bits_at == std::string::npos) return rounding;
  const size_t variant_at = text.find(':', bits_at + 1);
  if (variant_at != std::string::npos) {
    rounding.variant = ParseStochasticVariant(text.substr(variant_at + 1));
  }
  const std::string bits = text.substr(bits_at + 1, variant_at - bits_at - 1);
  const bool number = !bits.empty() && bits.size() <= 2 &&
                      bits.find_first_not_of("0123456789") == std::string::npos;
  rounding.random_bits = number ? std::stoi(bits) : 0;
  if (rounding.mode != RoundingMode::kStochastic || rounding.random_bits < 1 ||
      rounding.random_bits > 32) {
    throw Error::Format("'{}' is not one of {}, with 1 to 32 bits", text, RoundingTexts());
  }
  return rounding;
}

std::string RoundingText(const Rounding& rounding) {
  const Rounding plain;
  std::string text(ToString(rounding.mode));
  if (rounding.mode != RoundingMode::kStochastic) return text;
  const bool variant = rounding.variant != plain.variant;
  if (variant || rounding.random_bits != plain.random_bits) {
    text += fmt::format(":{}", rounding.random_bits);
  }
  if (variant) text += fmt::format(":{}", ToString(rounding.variant));
  return text;
}

}  // namespace numsim
