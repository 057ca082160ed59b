// The corrected scales of the rule ms-eden (ScaleRule::kMsEden).
#pragma once

#include <span>

#include "numsim/base/matrix_shape.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Replaces the scales S T of blocks by S' T. `tensor` is T. The inverse scales stay: elements are
// rounded under S T. Requires options that the rule allows.
void CorrectScales(std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   float tensor,
                   std::span<float> scales,
                   std::span<const float> inv_scales);

}  // namespace numsim
