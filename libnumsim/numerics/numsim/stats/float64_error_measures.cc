#include "numsim/stats/float64_error_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/elementary.h"
#include "numsim/base/require.h"
#include "numsim/stats/internal/error_terms.h"

namespace numsim {
namespace {

using error_terms::kDecibelPerNeper;
using error_terms::Share;

constexpr double kDecibelPerFactor4 = 6.020599913279624;  // 10 log10(4)

// Returns the e with 2^e <= x < 2^(e+1), or 0 for x = 0.
int ExponentOf(double x) { return x == 0 ? 0 : std::ilogb(x); }

}  // namespace

double Float64ErrorMeasures::SqnrDb() const {
  if (signal_square == 0) return std::numeric_limits<double>::quiet_NaN();
  if (error_square == 0) return std::numeric_limits<double>::infinity();
  return kDecibelPerNeper * Log(signal_square / error_square) +
         kDecibelPerFactor4 * (signal_exponent - error_exponent);
}

double Float64ErrorMeasures::RelativeError() const {
  return std::ldexp(std::sqrt(error_square / signal_square), error_exponent - signal_exponent);
}

double Float64ErrorMeasures::MeanError() const {
  if (measured == 0) return 0;
  return std::ldexp(error_sum / static_cast<double>(measured), error_exponent);
}

double Float64ErrorMeasures::UnderflowShare() const {
  return Share(underflow, elements - nonfinite);
}
double Float64ErrorMeasures::OverflowShare() const { return Share(overflow, elements - nonfinite); }

void Float64ErrorMeasures::Merge(const Float64ErrorMeasures& other) {
  elements += other.elements;
  nonfinite += other.nonfinite;
  underflow += other.underflow;
  overflow += other.overflow;
  measured += other.measured;
  max_error = std::max(max_error, other.max_error);
  max_signal = std::max(max_signal, other.max_signal);
  // Sums change to the units of the larger maximum, as if all pairs had been measured together.
  const int signal = ExponentOf(max_signal), error = ExponentOf(max_error);
  signal_square = std::ldexp(signal_square, 2 * (signal_exponent - signal)) +
                  std::ldexp(other.signal_square, 2 * (other.signal_exponent - signal));
  error_square = std::ldexp(error_square, 2 * (error_exponent - error)) +
                 std::ldexp(other.error_square, 2 * (other.error_exponent - error));
  error_sum = std::ldexp(error_sum, error_exponent - error) +
              std::ldexp(other.error_sum, other.error_exponent - error);
  signal_exponent = signal;
  error_exponent = error;
}

Float64ErrorMeasures MeasureError(std::span<const double> x,
                                  std::span<const double> y,
                                  std::span<const double> limits,
                                  const std::function<size_t(size_t)>& limit_of) {
  RequireSize(y.size(), x.size(), "MeasureError", "y");
  Float64ErrorMeasures sums;
  sums.elements = x.size();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) {
      ++sums.nonfinite;
      continue;
    }
    const bool lost = !std::isfinite(y[i]);
    if (lost || std::abs(x[i]) >= limits[limit_of(i)]) ++sums.overflow;
    if (lost) continue;
    ++sums.measured;
    if (x[i] != 0 && y[i] == 0) ++sums.underflow;
    sums.max_error = std::max(sums.max_error, std::abs(y[i] - x[i]));
    sums.max_signal = std::max(sums.max_signal, std::abs(x[i]));
  }
  sums.signal_exponent = ExponentOf(sums.max_signal);
  sums.error_exponent = ExponentOf(sums.max_error);
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    const double signal = std::ldexp(x[i], -sums.signal_exponent);
    const double error = std::ldexp(y[i] - x[i], -sums.error_exponent);
    sums.signal_square += signal * signal;
    sums.error_square += error * error;
    sums.error_sum += error;
  }
  return sums;
}

}  // namespace numsim
