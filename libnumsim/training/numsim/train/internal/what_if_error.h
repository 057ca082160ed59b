// The error that quantising a tensor under a what-if recipe would make.
#pragma once

#include <span>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/base/matrix_shape.h"
#include "numsim/cast/cast.h"
#include "numsim/config/what_if_config.h"

namespace numsim {

// Gradients whose norm is below this multiple of their quantisation noise train less effectively
// [FP4AllTheWay].
inline constexpr double kEffectiveGradientToNoise = 1.7320508075688772;  // sqrt(3)

// NaN and infinite elements enter nothing.
struct WhatIfError {
  // Fraction of elements with |x| * inv_scale, as rounded to float32, above the format's largest
  // value by more than 2^-22 of it. The allowance is for rounding: the absmax of a tensor under its
  // own scale is no overflow.
  double overflow = 0;
  double underflow = 0;  // fraction of elements that were nonzero and became zero
  double sqnr_db = 0;    // 10 log10(sum x^2 / sum (x - q)^2); inf without error, NaN without signal
  double mse = 0;        // NaN if nothing is finite
  // Over the groups of elements with a nonzero element; 1 if there are none.
  double scale_min = 1, scale_max = 1;
  // ||x|| / ||x - q||: inf without error, NaN without signal.
  double signal_to_noise = 0;
};

// Memory that successive measurements reuse.
struct WhatIfScratch {
  std::vector<float> absmax, scales, inv_scales;
  Buffer<float> quantized;
};

// Quantises the row-major tensor under `recipe` and measures the error. `delayed` is the current
// scale if the recipe's scaling is delayed, and not read otherwise. Random bits, if the rounding
// mode draws, are those of the element's index in `random`. Bits do not depend on the thread count.
WhatIfError MeasureWhatIf(std::span<const float> values,
                          MatrixShape shape,
                          const WhatIfRecipe& recipe,
                          const Scale& delayed,
                          RandomStream random,
                          WhatIfScratch& scratch);

}  // namespace numsim
