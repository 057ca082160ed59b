// Scales from absolute maxima of float64.
#pragma once

#include "numsim/quantize/scale.h"

namespace numsim {

// Returns the scale of elements with this absolute maximum, in a tensor with that one: what
// ScaleFactory gives for a float32, and its rule with quotients rounded once for any other number.
// Requires finite maxima >= 0. Throws ScaleError if the scale is beyond float32.
struct Float64Maxima {
  double group = 0;
  double tensor = 0;
};
Scale ScaleOfFloat64(const FormatSpec& format, ScaleRule rule, Float64Maxima absmax);

// Returns the scale T of the tensor under a rule with TakesTensorMaximum.
float TensorScaleOfFloat64(const FormatSpec& format, ScaleRule rule, double absmax);

}  // namespace numsim
