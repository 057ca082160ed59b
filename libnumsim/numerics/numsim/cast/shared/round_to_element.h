// The rounding of a result on the host to the element of the matrix that holds it.
#pragma once

#include "numsim/backend/float_matrix.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"

namespace numsim {

// Rounds values that an operation has stored as float32. Does nothing for Element::kFloat32. Requires
// a contiguous matrix on the host.
inline void RoundToElement(FloatSpan out) {
  if (out.element == Element::kFloat32) return;
  const MatrixSpan<float> values = out.Float32();
  FakeQuantize(MakeEncodePlan(kBf16, Rounding{}, Overflow::kNonsaturate), values, values);
}

}  // namespace numsim
