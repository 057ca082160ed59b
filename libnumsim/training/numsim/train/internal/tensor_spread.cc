#include "numsim/train/internal/tensor_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"

namespace numsim {
namespace {

constexpr size_t kSpreadBlock = size_t{1}
                                << 14;  // elements per partial sum, whatever the thread count

// Returns the sums of `measure` over the blocks of `values`, added in their order.
template <typename Sums, typename Measure>
Sums OverBlocks(std::span<const float> values, Measure measure) {
  std::vector<Sums> blocks((values.size() + kSpreadBlock - 1) / kSpreadBlock);
  ParallelFor(blocks.size(), 1, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      const size_t begin = b * kSpreadBlock;
      blocks[b] = measure(values.subspan(begin, std::min(kSpreadBlock, values.size() - begin)));
    }
  });
  Sums total;
  for (const Sums& block : blocks) total.Add(block);
  return total;
}

struct FirstPass {
  size_t finite = 0;
  double sum = 0, absmax = 0;

  void Add(const FirstPass& other) {
    finite += other.finite;
    sum += other.sum;
    absmax = std::max(absmax, other.absmax);
  }
};

FirstPass SumsOf(std::span<const float> block) {
  FirstPass sums;
  for (const float value : block) {
    if (!std::isfinite(value)) continue;
    const double x = static_cast<double>(value);
    ++sums.finite;
    sums.sum += x;
    sums.absmax = std::max(sums.absmax, std::abs(x));
  }
  return sums;
}

struct CentralSums {
  double square = 0, fourth = 0;  // of deviations from the mean

  void Add(const CentralSums& other) {
    square += other.square;
    fourth += other.fourth;
  }
};

CentralSums CentralSumsOf(std::span<const float> block, double mean) {
  CentralSums sums;
  for (const float value : block) {
    if (!std::isfinite(value)) continue;
    const double deviation = static_cast<double>(value) - mean;
    const double square = deviation * deviation;
    sums.square += square;
    sums.fourth += square * square;
  }
  return sums;
}

}  // namespace

TensorSpread MeasureSpread(std::span<const float> values) {
  const FirstPass first = OverBlocks<FirstPass>(values, SumsOf);
  TensorSpread spread;
  spread.nonfinite = values.size() - first.finite;
  spread.absmax = first.absmax;
  spread.kurtosis = std::numeric_limits<double>::quiet_NaN();
  if (first.finite == 0) return spread;
  const auto n = static_cast<double>(first.finite);
  const double mean = first.sum / n;
  const CentralSums central = OverBlocks<CentralSums>(
      values, [mean](std::span<const float> block) { return CentralSumsOf(block, mean); });
  if (central.square > 0) spread.kurtosis = n * central.fourth / (central.square * central.square);
  return spread;
}

}  // namespace numsim
