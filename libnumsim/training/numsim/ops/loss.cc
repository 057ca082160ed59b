#include "numsim/ops/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/require.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/row_loops.h"

namespace numsim {
namespace {

// Returns e^x for x <= 0, including -infinity; NaN for NaN.
double ExpOfNegative(double x) {
  if (std::isnan(x)) return x;
  return x < -699 ? 0 : Exp(x);
}

RowLoss CrossEntropyOfRow(
    const double* x, size_t n, size_t target, double weight, double* gradient) {
  const double max = *std::max_element(x, x + n), score = x[target];
  const bool correct = std::find(x, x + n, max) == x + target;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double term = ExpOfNegative(x[i] - max);
    if (gradient != nullptr) gradient[i] = term;
    sum += term;
  }
  if (!(sum > 0)) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    if (gradient != nullptr) std::fill_n(gradient, n, kNan);
    return {.loss = kNan, .correct = false};
  }
  if (gradient != nullptr) {
    const double factor = weight / sum;
    for (size_t i = 0; i < n; ++i) gradient[i] *= factor;
    gradient[target] -= weight;
  }
  return {.loss = Log(sum) + (max - score), .correct = correct};
}

double SquaredErrorOfRow(
    const double* y, const double* target, size_t n, double weight, double* gradient) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double error = y[i] - target[i];
    if (gradient != nullptr) gradient[i] = error * weight;
    sum += error * error;
  }
  return sum;
}

// Returns room for the results of `rows` rows, in memory of the calling thread.
RowLoss* RowResults(size_t rows) {
  thread_local std::vector<RowLoss> results;
  if (results.size() < rows) results.resize(rows);
  return results.data();
}

LossSum Total(const RowLoss* rows, size_t count, size_t counted) {
  LossSum total{.counted = counted};
  for (size_t i = 0; i < count; ++i) {
    total.sum += rows[i].loss;
    total.correct += rows[i].correct ? 1 : 0;
  }
  return total;
}

size_t CountTargets(IndexRef targets, size_t cols) {
  size_t counted = 0;
  for (size_t i = 0; i < targets.rows; ++i) {
    const int32_t target = targets.data[i];
    NUMSIM_REQUIRE(target >= -1 && (target == -1 || static_cast<size_t>(target) < cols),
                   "CrossEntropy: target {} of {} classes in row {}",
                   target,
                   cols,
                   i);
    if (target >= 0) ++counted;
  }
  return counted;
}

template <typename T>
void CheckGradient(const char* operation, MatrixSpan<const T> x, MatrixSpan<T> gradient) {
  if (gradient.data != nullptr) CheckShape(operation, gradient, x.rows, x.cols);
}

template <typename T>
T* RowOrNone(MatrixSpan<T> x, size_t row) {
  return x.data == nullptr ? nullptr : x.Row(row);
}

}  // namespace

template <typename T>
LossSum CrossEntropy(In<T> logits, IndexRef targets, double factor, MatrixSpan<T> gradient) {
  constexpr const char* kName = "cross entropy";
  const Place place = PlaceOf<T>(kName, logits, targets, gradient);
  CheckShape(kName, targets, logits.rows, 1);
  CheckGradient<T>(kName, logits, gradient);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::CrossEntropy(place, logits, targets, factor, gradient);
  }
  const size_t counted = CountTargets(targets, logits.cols);
  const T weight = counted == 0 ? T{} : static_cast<T>(factor / static_cast<double>(counted));
  RowLoss* const results = RowResults(logits.rows);
  ForRows(logits.rows, 8 * logits.cols, [&](size_t i) {
    T* const row = RowOrNone(gradient, i);
    results[i] = {};
    if (targets.data[i] >= 0) {
      const size_t target = static_cast<size_t>(targets.data[i]);
      results[i] = CrossEntropyOfRow(logits.Row(i), logits.cols, target, weight, row);
    } else if (row != nullptr) {
      std::fill_n(row, logits.cols, T{});
    }
  });
  return Total(results, logits.rows, counted);
}

template <typename T>
LossSum SquaredError(In<T> y, In<T> target, double factor, MatrixSpan<T> gradient) {
  constexpr const char* kName = "squared error";
  const Place place = PlaceOf<T>(kName, y, target, gradient);
  CheckShape(kName, target, y.rows, y.cols);
  CheckGradient<T>(kName, y, gradient);
  NUMSIM_REQUIRE(y.cols != 0, "SquaredError: y is {} x 0, expected columns", y.rows);
  const T weight =
      y.rows == 0 ? T{} : static_cast<T>(2 * factor / static_cast<double>(y.Elements()));
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::SquaredError(place, y, target, weight, gradient);
  }
  RowLoss* const results = RowResults(y.rows);
  ForRows(y.rows, y.cols, [&](size_t i) {
    T* const row = RowOrNone(gradient, i);
    const double sum = SquaredErrorOfRow(y.Row(i), target.Row(i), y.cols, weight, row);
    results[i] = {.loss = sum / static_cast<double>(y.cols), .correct = false};
  });
  return Total(results, y.rows, y.rows);
}

template <typename T>
size_t CountBestOfClass(MatrixSpan<T> scores, IndexRef classes) {
  constexpr const char* kName = "counting of retrievals";
  CheckPlaces(kName, scores, classes);
  const size_t n = scores.rows;
  CheckShape(kName, scores, n, n);
  CheckShape(kName, classes, n, 1);
  RowLoss* const results = RowResults(n);
  ForRows(n, n, [&](size_t i) {
    const T* const row = scores.Row(i);
    const T* const best = std::max_element(row, row + n);
    const bool nan = std::any_of(row, row + n, [](T x) { return std::isnan(x); });
    results[i] = {.loss = 0, .correct = !nan && classes.data[best - row] == classes.data[i]};
  });
  return Total(results, n, n).correct;
}

#define NUMSIM_INSTANTIATE(T)                                               \
  template LossSum CrossEntropy<T>(In<T>, IndexRef, double, MatrixSpan<T>); \
  template LossSum SquaredError<T>(In<T>, In<T>, double, MatrixSpan<T>);    \
  template size_t CountBestOfClass<T>(MatrixSpan<T>, IndexRef);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
