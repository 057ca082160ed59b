#include "numsim/updates/internal/update_scan.h"

#include <array>
#include <bit>

#include "numsim/backend/backend.h"
#include "numsim/updates/internal/step_sums_simd.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

uint32_t MagnitudeBits(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu; }

}  // namespace

Scan ScanBlock(const float* weights, const float* update, size_t n) {
  Scan scan;
  std::array<double, kPartialSums> squares = {};
  size_t i = 0;
  if (!UsesScalarReference()) {
    i = AddScanSimd(weights, update, n, squares.data(), scan.weights, scan.update);
  }
  for (; i < n; ++i) {
    scan.weights = std::max(scan.weights, MagnitudeBits(weights[i]));
    scan.update = std::max(scan.update, MagnitudeBits(update[i]));
    const double value = static_cast<double>(update[i]);
    squares[i % kPartialSums] += value * value;
  }
  for (const double square : squares) scan.update_square += square;
  return scan;
}

Scan ScanArrays(std::span<const float> weights, std::span<const float> update) {
  return SumOverBlocks<Scan>(weights.size(), [&](size_t begin, size_t count) {
    return ScanBlock(weights.data() + begin, update.data() + begin, count);
  });
}

}  // namespace numsim
