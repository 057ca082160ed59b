#include "numsim/moments/moment_coat.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/moments/internal/moment_coat_simd.h"
#include "numsim/moments/shared/moment_element.h"

namespace numsim {
namespace {

constexpr int kSteps = 16;  // k is a multiple of 1/16: COAT's expand_min
// Upper bound of k. Beyond it the magnitudes of a block agree to 2 parts in 10,000, and a larger k
// would bring nothing.
constexpr double kMostSteps = 65536.0 * kSteps;

}  // namespace

CoatFormat::CoatFormat(const FormatSpec& format) noexcept
    : format_(format), max_(MaxFinite(format)) {
  NUMSIM_CHECK(format.IsSigned() && format.zero != Zero::kNone && format.Bits() <= 8,
               "a format of {} bits",
               format.Bits());
  const double max = static_cast<double>(max_);
  log_range_ = Log(std::min(max * max / 2, max / static_cast<double>(MinPositive(format))));
  for (uint32_t code = 0; code <= format.CodeMask(); ++code) {
    const float value = Decode(format, code);
    const bool positive = value != 0 && std::isfinite(value);
    values_[code] = value;
    log_ratio_[code] = positive ? Log(std::abs(static_cast<double>(value)) / max) : 0;
  }
}

CoatBlock CoatFormat::MakeBlock(const float* in, size_t n) const noexcept {
  const MagnitudeRange range = FiniteMagnitudes(in, n);
  if (range.most == 0) return {max_, 1};
  return {range.most, CoatExponent(range.most, range.least, log_range_)};
}

void CoatFormat::Expand(const CoatBlock& block,
                        const float* in,
                        size_t n,
                        float* out) const noexcept {
  uint32_t power = static_cast<uint32_t>(block.exponent * kSteps);
  int roots = 4;  // 2^4 == kSteps
  for (; roots > 0 && power % 2 == 0; --roots) power /= 2;
  Raise({static_cast<double>(block.absmax), roots, power, static_cast<double>(max_)}, in, n, out);
}

void CoatFormat::MakeFactors(float exponent, Factors& factors) const noexcept {
  for (uint32_t code = 0; code <= format_.CodeMask(); ++code) {
    const double value = static_cast<double>(values_[code]);
    factors[code] = value;
    if (value == 0 || !std::isfinite(value)) continue;
    const double factor = Exp(log_ratio_[code] / static_cast<double>(exponent));
    factors[code] = std::copysign(factor, value);
  }
}

bool IsCoatExponent(float exponent) noexcept {
  const double steps = static_cast<double>(exponent) * kSteps;
  return steps >= 1 && steps <= kMostSteps && steps == std::floor(steps);
}

CoatFactorCache::CoatFactorCache() : keys_(kSlots), factors_(kSlots) {}

void CoatFactorCache::Choose(const std::shared_ptr<const CoatFormat>& format) {
  if (format_ != nullptr && format_->format() == format->format()) return;
  format_ = format;
  std::fill(keys_.begin(), keys_.end(), 0);
}

const CoatFormat::Factors& CoatFactorCache::Get(float exponent) {
  const uint32_t key = static_cast<uint32_t>(exponent * kSteps);
  const size_t slot = key % kSlots;
  if (keys_[slot] != key) {
    format_->MakeFactors(exponent, factors_[slot]);
    keys_[slot] = key;
  }
  return factors_[slot];
}

}  // namespace numsim
