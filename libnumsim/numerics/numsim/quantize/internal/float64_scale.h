// Scales from absolute maxima of float64.
#pragma once

#include "numsim/quantize/scale.h"

namespace numsim {

// The absolute maximum of the elements that share a scale, and that of the whole tensor.
struct Float64Maxima {
  double group = 0;
  double tensor = 0;
};

// Returns the scale of such elements: what ScaleFactory gives if the maxima are float32 numbers, else
// the same rule with each quotient rounded once. Requires finite maxima >= 0. Throws ScaleError if the
// scale is beyond float32.
Scale ScaleOfFloat64(const FormatSpec& format, ScaleRule rule, Float64Maxima absmax);

// Returns the scale T of the tensor under a rule with TakesTensorMaximum.
float TensorScaleOfFloat64(const FormatSpec& format, ScaleRule rule, double absmax);

}  // namespace numsim
