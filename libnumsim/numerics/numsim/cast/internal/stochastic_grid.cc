#include "numsim/cast/internal/stochastic_grid.h"

#include <algorithm>
#include <cmath>

#include "numsim/formats/decode.h"

namespace numsim {

std::optional<StochasticGrid> MakeStochasticGrid(const EncodePlan& plan) noexcept {
  constexpr int kMantissaBits = 52, kMostUndecided = 20;
  const FormatSpec& format = plan.format;
  const Rounding& rounding = plan.rounding;
  const bool rounds_so = rounding.mode == RoundingMode::kStochastic &&
                         rounding.variant == StochasticVariant::kA &&
                         plan.overflow == Overflow::kSaturate;
  const bool has_values = format.IsSigned() && format.zero != Zero::kNone && format.HasPlainGrid();
  const int cut = kMantissaBits - format.mantissa_bits;
  if (!rounds_so || !has_values || cut < rounding.random_bits + 2) return std::nullopt;
  StochasticGrid grid;
  grid.cut = cut;
  grid.random_bits = rounding.random_bits;
  grid.undecided_bits = std::min(cut - rounding.random_bits, kMostUndecided);
  grid.min_normal = std::ldexp(1.0, format.MinExponent());
  grid.max = static_cast<double>(Decode(format, format.MaxFiniteCode()));
  grid.negative_zero = format.sign == Sign::kSignMagnitude && format.zero == Zero::kSigned;
  return grid;
}

}  // namespace numsim
