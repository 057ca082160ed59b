#include "numsim/stats/error_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/stats/internal/error_terms.h"

namespace numsim {
namespace {

using error_terms::kDecibelPerNeper;
using error_terms::Share;

// Elements per block of the sum. The size is fixed so that the thread count does not change the
// order of additions.
constexpr size_t kBlock = size_t{1} << 14;

ErrorMeasures MeasureBlock(const float* x, const float* y, size_t n, double limit) {
  ErrorMeasures sums;
  sums.elements = n;
  for (size_t i = 0; i < n; ++i) {
    const double from = static_cast<double>(x[i]);
    const double to = static_cast<double>(y[i]);
    if (!std::isfinite(from)) {
      ++sums.nonfinite;
      continue;
    }
    const bool lost = !std::isfinite(to);
    if (lost || std::abs(from) >= limit) ++sums.overflow;
    if (lost) continue;
    if (from != 0 && to == 0) ++sums.underflow;
    const double error = to - from;
    ++sums.measured;
    sums.signal_square += from * from;
    sums.error_square += error * error;
    sums.error_sum += error;
    sums.max_error = std::max(sums.max_error, std::abs(error));
    sums.max_signal = std::max(sums.max_signal, std::abs(from));
  }
  return sums;
}

}  // namespace

double ErrorMeasures::SqnrDb() const {
  if (signal_square == 0) return std::numeric_limits<double>::quiet_NaN();
  if (error_square == 0) return std::numeric_limits<double>::infinity();
  return kDecibelPerNeper * Log(signal_square / error_square);
}

double ErrorMeasures::RelativeError() const { return std::sqrt(error_square / signal_square); }

double ErrorMeasures::MeanError() const {
  return measured == 0 ? 0.0 : error_sum / static_cast<double>(measured);
}

double ErrorMeasures::UnderflowShare() const { return Share(underflow, elements - nonfinite); }
double ErrorMeasures::OverflowShare() const { return Share(overflow, elements - nonfinite); }

void ErrorMeasures::Merge(const ErrorMeasures& other) {
  elements += other.elements;
  nonfinite += other.nonfinite;
  underflow += other.underflow;
  overflow += other.overflow;
  measured += other.measured;
  signal_square += other.signal_square;
  error_square += other.error_square;
  error_sum += other.error_sum;
  max_error = std::max(max_error, other.max_error);
  max_signal = std::max(max_signal, other.max_signal);
}

ErrorMeasures MeasureError(std::span<const float> x, std::span<const float> y, double limit) {
  RequireSize(y.size(), x.size(), "MeasureError", "y");
  std::vector<ErrorMeasures> blocks((x.size() + kBlock - 1) / kBlock);
  ParallelFor(blocks.size(), 1, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      const size_t begin = b * kBlock;
      const size_t n = std::min(kBlock, x.size() - begin);
      blocks[b] = MeasureBlock(x.data() + begin, y.data() + begin, n, limit);
    }
  });
  ErrorMeasures total;
  for (const ErrorMeasures& block : blocks) total.Merge(block);
  return total;
}

}  // namespace numsim
