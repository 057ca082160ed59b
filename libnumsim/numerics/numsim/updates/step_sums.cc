#include "numsim/updates/step_sums.h"

#include <array>
#include <cmath>
#include <limits>

#include "numsim/backend/backend.h"
#include "numsim/base/require.h"
#include "numsim/updates/internal/step_sums_simd.h"

namespace numsim {
namespace {

constexpr size_t kLanes = kPartialSums;

double Total(const std::array<double, kLanes>& lanes) {
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// The partial sums (lanes) of two sums and a count.
struct StepLanes {
  std::array<double, kLanes> square = {}, projection = {};
  std::array<uint32_t, kLanes> moved = {};

  void Add(size_t lane, float before, float after, float update) {
    const double d = static_cast<double>(after) - static_cast<double>(before);
    square[lane] += d * d;
    projection[lane] += d * static_cast<double>(update);
    moved[lane] += after != before ? 1 : 0;
  }
};

}  // namespace

double SquaredSumOfBlock(const float* x, size_t n) noexcept {
  std::array<double, kLanes> lanes = {};
  size_t i = UsesScalarReference() ? 0 : AddSquaresSimd(x, n, lanes.data());
  for (; i < n; ++i) {
    const double value = static_cast<double>(x[i]);
    lanes[i % kLanes] += value * value;
  }
  return Total(lanes);
}

StepSums StepSumsOfBlock(const float* before,
                         const float* after,
                         const float* update,
                         size_t n) noexcept {
  StepLanes lanes;
  StepSums sums;
  size_t i = 0;
  if (!UsesScalarReference()) {
    i = AddStepSimd(
        before, after, update, n, lanes.square.data(), lanes.projection.data(), sums.moved);
  }
  for (; i < n; ++i) lanes.Add(i % kLanes, before[i], after[i], update[i]);
  sums.square = Total(lanes.square);
  sums.projection = Total(lanes.projection);
  for (const uint32_t moved : lanes.moved) sums.moved += moved;
  return sums;
}

uint64_t CountBeyond(
    const float* before, const float* update, double alpha, double limit, size_t n) noexcept {
  if (limit == std::numeric_limits<double>::infinity()) return 0;
  uint64_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    const double wanted = static_cast<double>(before[i]) + alpha * static_cast<double>(update[i]);
    count += std::abs(wanted) > limit ? 1 : 0;
  }
  return count;
}

double SquaredSum(std::span<const float> x) {
  return SumOverBlocks<double>(x.size(), [&](size_t begin, size_t count) {
    return SquaredSumOfBlock(x.data() + begin, count);
  });
}

StepSums SumStep(std::span<const float> before,
                 std::span<const float> after,
                 std::span<const float> update,
                 float alpha,
                 double limit) {
  RequireSize(after.size(), before.size(), "SumStep", "after");
  RequireSize(update.size(), before.size(), "SumStep", "update");
  return SumOverBlocks<StepSums>(before.size(), [&](size_t begin, size_t count) {
    const float* const from = before.data() + begin;
    const float* const direction = update.data() + begin;
    StepSums sums = StepSumsOfBlock(from, after.data() + begin, direction, count);
    sums.saturated =
        CountBeyond(from, direction, static_cast<double>(alpha), static_cast<double>(limit), count);
    return sums;
  });
}

}  // namespace numsim
