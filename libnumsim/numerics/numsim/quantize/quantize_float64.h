// Quantisation of float64 matrices on the host, from their exact values.
//
// The exact product of an element and its inverse scale is rounded once, to the code: neither the
// element nor the product is rounded to float32 before. Scales are float32 numbers, as for float32
// matrices: those of MakeScale() if the absolute maximum is a float32, else computed by the same
// rules from the exact maximum, each quotient rounded once. The calls throw ScaleError if a scale is
// beyond float32, and Error as those of quantized_matrix.h do. Results do not depend on the backend
// and the thread count.
#pragma once

#include <span>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/stats/float64_error_measures.h"

namespace numsim {

// An Error about a scale that float32 cannot hold. Does not name the matrix.
class ScaleError : public Error {
 public:
  using Error::Error;
};

// Writes absmax[s] = the largest |x| over the finite elements that share scale s, or 0. Requires
// layout.Count(rows, cols) maxima.
void Absmax(MatrixSpan<const double> in, const ScaleLayout& layout, std::span<double> absmax);

// Return codes and scales, and their exact values: out = value of the code * scale. Quantize() takes
// formats of up to 16 bits and the order kInput.
QuantizedMatrix Quantize(MatrixSpan<const double> in, const QuantizeOptions& options);
std::vector<float> FakeQuantize(std::span<const double> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<double> out);

// Quantises and dequantises the matrix under `options` and returns measures of the error. Overflows
// count as in QuantizationError() of a float32 matrix.
Float64ErrorMeasures QuantizationError(std::span<const double> in,
                                       MatrixShape shape,
                                       const QuantizeOptions& options);

}  // namespace numsim
