#include "numsim/cast/internal/nearest_grid.h"

#include <cmath>

#include "numsim/formats/decode.h"

namespace numsim {

std::optional<NearestGrid> MakeNearestGrid(const EncodePlan& plan) noexcept {
  const FormatSpec& format = plan.format;
  const int least = format.MinExponent();
  const int spacing = format.SubnormalExponent();
  const bool rounds_so =
      plan.rounding.mode == RoundingMode::kNearestEven && plan.overflow == Overflow::kSaturate;
  const bool has_values = format.IsSigned() && format.zero != Zero::kNone &&
                          format.HasPlainGrid() && format.mantissa_bits >= 1 &&
                          format.mantissa_bits <= 21;
  const bool in_range =
      least >= -126 && least <= 127 && spacing + 23 <= 126 && format.MaxExponent() <= 127;
  if (!rounds_so || !has_values || !in_range) return std::nullopt;
  NearestGrid grid;
  grid.cut = 23 - format.mantissa_bits;
  grid.min_normal = std::ldexp(1.0f, least);
  grid.shift = std::ldexp(1.5f, spacing + 23);
  grid.half_spacing = std::ldexp(0.5f, spacing);
  grid.max = Decode(format, format.MaxFiniteCode());
  grid.negative_zero = format.sign == Sign::kSignMagnitude && format.zero == Zero::kSigned;
  return grid;
}

}  // namespace numsim
