#include "numsim/train/internal/what_if_error.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/quantize.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/stats/error_measures.h"

namespace numsim {
namespace {

constexpr size_t kRowGrain = size_t{1} << 14;  // elements that are worth starting a thread for

// Computes the scales of all groups of elements, and their absmax.
void FillScales(std::span<const float> values,
                MatrixShape shape,
                const WhatIfRecipe& recipe,
                const Scale& delayed,
                WhatIfScratch& scratch) {
  const size_t count = recipe.layout.Count(shape.rows, shape.cols);
  for (std::vector<float>* list : {&scratch.absmax, &scratch.scales, &scratch.inv_scales}) {
    list->resize(count);
  }
  Absmax(HostMatrix(values, shape), recipe.layout, scratch.absmax);
  const ScaleFactory factory(recipe.format.spec, recipe.scale_rule);
  for (size_t i = 0; i < count; ++i) {
    const Scale scale = recipe.delayed.has_value() ? delayed : factory(scratch.absmax[i]);
    scratch.scales[i] = scale.scale;
    scratch.inv_scales[i] = scale.inv_scale;
  }
}

// Returns the number of neighbouring elements of a row that share a scale.
size_t SharedBy(const ScaleLayout& layout, size_t cols) {
  switch (layout.granularity) {
    case Granularity::kTensor:
    case Granularity::kRow:
      return cols;
    case Granularity::kColumn:
      return 1;
    case Granularity::kBlock:
    case Granularity::kTile:
      return layout.block;
  }
  return cols;
}

size_t SaturatedIn(std::span<const float> values, float inv_scale, double limit) {
  size_t saturated = 0;
  for (const float x : values) {
    const float scaled = std::abs(x) * inv_scale;
    saturated += std::isfinite(x) && static_cast<double>(scaled) > limit ? 1 : 0;
  }
  return saturated;
}

// Returns the number of finite elements beyond the format's range.
size_t Saturated(std::span<const float> values,
                 MatrixShape shape,
                 const WhatIfRecipe& recipe,
                 std::span<const float> inv_scales) {
  const double limit = static_cast<double>(MaxFinite(recipe.format.spec)) * (1 + 0x1p-22);
  const size_t cols = shape.cols, width = std::min(SharedBy(recipe.layout, cols), cols);
  const size_t grain = std::max<size_t>(1, kRowGrain / std::max<size_t>(1, cols));
  std::atomic<size_t> saturated = 0;  // of whole numbers, so the order of additions does not matter
  ParallelFor(shape.rows, grain, [&](size_t begin, size_t end) {
    size_t chunk = 0;
    for (size_t row = begin; row < end; ++row) {
      for (size_t col = 0; col < cols; col += width) {
        chunk += SaturatedIn(values.subspan(row * cols + col, std::min(width, cols - col)),
                             inv_scales[recipe.layout.Index(row, col, cols)],
                             limit);
      }
    }
    saturated += chunk;
  });
  return saturated;
}

void SetScaleRange(const WhatIfScratch& scratch, WhatIfError& error) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (size_t i = 0; i < scratch.scales.size(); ++i) {
    if (scratch.absmax[i] == 0) continue;
    low = std::min(low, static_cast<double>(scratch.scales[i]));
    high = std::max(high, static_cast<double>(scratch.scales[i]));
  }
  if (high == 0) return;
  error.scale_min = low;
  error.scale_max = high;
}

}  // namespace

WhatIfError MeasureWhatIf(std::span<const float> values,
                          MatrixShape shape,
                          const WhatIfRecipe& recipe,
                          const Scale& delayed,
                          RandomStream random,
                          WhatIfScratch& scratch) {
  FillScales(values, shape, recipe, delayed, scratch);
  const std::span<float> quantized = scratch.quantized.Resize(shape.rows, shape.cols).Span();
  FakeQuantize(MakeEncodePlan(recipe.format.spec, recipe.rounding, Overflow::kSaturate),
               values,
               shape,
               recipe.layout,
               scratch.inv_scales,
               scratch.scales,
               quantized,
               {.stream = random});
  const ErrorMeasures sums =
      MeasureError(values, quantized, std::numeric_limits<double>::infinity());
  WhatIfError error;
  const size_t finite = sums.elements - sums.nonfinite;
  if (finite > 0) {
    error.overflow = static_cast<double>(Saturated(values, shape, recipe, scratch.inv_scales)) /
                     static_cast<double>(finite);
  }
  error.underflow = sums.UnderflowShare();
  error.sqnr_db = sums.SqnrDb();
  error.mse = sums.error_square / static_cast<double>(sums.measured);
  error.signal_to_noise = std::sqrt(sums.signal_square / sums.error_square);
  SetScaleRange(scratch, error);
  return error;
}

}  // namespace numsim
