// The loss of storing a moment.
#pragma once

#include <cstddef>

#include "numsim/base/host_device.h"

namespace numsim {

// Quantisation error statistics of one Store(), for telemetry.
struct MomentLoss {
  size_t nonzero = 0;    // number of finite nonzero elements
  size_t flushed = 0;    // number of them that were stored as zero
  size_t saturated = 0;  // number of them beyond the largest value that can be stored
  double signal_square = 0, error_square = 0;  // over finite elements

  NUMSIM_HOST_DEVICE MomentLoss& operator+=(const MomentLoss& other) {
    nonzero += other.nonzero;
    flushed += other.flushed;
    saturated += other.saturated;
    signal_square += other.signal_square;
    error_square += other.error_square;
    return *this;
  }
};

// Sums are taken over parts of so many elements, and the parts are added in order.
inline constexpr size_t kMomentLossPart = size_t{16} * 1024;

// Adds one element x that was stored as `stored`. `saturates`: x is beyond the largest value that
// can be stored.
NUMSIM_HOST_DEVICE inline void AddLoss(float x, float stored, bool saturates, MomentLoss& loss) {
  if (!(x - x == 0)) return;  // not finite
  const double error = static_cast<double>(stored) - static_cast<double>(x);
  loss.signal_square += static_cast<double>(x) * static_cast<double>(x);
  loss.error_square += error * error;
  if (x == 0) return;
  ++loss.nonzero;
  if (stored == 0) ++loss.flushed;
  if (saturates) ++loss.saturated;
}

}  // namespace numsim
