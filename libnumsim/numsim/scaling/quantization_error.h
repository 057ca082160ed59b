// The error that quantising a matrix makes.
#pragma once

#include <span>

#include "numsim/scaling/quantized_matrix.h"
#include "numsim/stats/error_measures.h"

namespace numsim {

// Quantises and dequantises the matrix under `options` and measures the error. An element counts as
// an overflow when it lies at or beyond the midpoint between the largest finite value and the next
// that the format would have, in units of its scale, whatever the rounding makes of it.
ErrorMeasures QuantizationError(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options);

// The same of a matrix that is quantised already: `in` is what it was made from, `dequantized`
// receives its values. Requires a matrix that is not transposed and spans of its shape.
ErrorMeasures QuantizationError(std::span<const float> in,
                                const QuantizedMatrix& matrix,
                                std::span<float> dequantized);

// absmax for formats of up to 8 bits, none (a plain cast) for wider ones, as they are used.
ScaleRule UsualScaleRule(const FormatSpec& format);

}  // namespace numsim
