// Quantised matrices: codes together with their scales. All functions throw Error if a requirement
// on sizes, layouts or formats is not met.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numsim/quantize/quantize.h"
#include "numsim/quantize/scale.h"
#include "numsim/stats/error_measures.h"

namespace numsim {

struct QuantizeOptions {
  FormatSpec format = {};  // at most 16 bits
  Rounding rounding = {};
  Overflow overflow = Overflow::kSaturate;
  ScaleLayout layout = {};
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  ArrayRandom random = {};
  bool transpose = false;  // store codes^T; layout and random bits still refer to the input
};

// A quantised rows x cols float32 matrix. Codes have one or two bytes, as the format needs.
//
// NaN and infinities of the input: scales are computed from finite elements only. NaN is encoded by
// the format's NaN rule. An infinity overflows, so under kSaturate it becomes the largest value. If
// the elements that share a scale are all zero, or none of them is finite, the scale is 1. Zeros
// become zero codes.
struct QuantizedMatrix {
  FormatSpec format;
  MatrixShape shape;  // of the input; codes are shape.cols x shape.rows when transposed
  ScaleLayout layout;
  bool transposed = false;
  std::vector<uint8_t> codes8;
  std::vector<uint16_t> codes16;
  std::vector<float> scales;  // layout.Count(rows, cols); value = code value * scale
};

// Returns the matrix quantised with the scales of options.scale_rule. Requires in.size() ==
// shape.Elements() and a format of at most 16 bits.
QuantizedMatrix Quantize(std::span<const float> in,
                         MatrixShape shape,
                         const QuantizeOptions& options);

// Does what Quantize does, but writes to `result`, whose memory is reused. Its previous contents do
// not matter; if it throws, they stay.
void QuantizeInto(std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result);

// Does what QuantizeInto does, but under a given scale, such as one of another tensor or an earlier
// step. Requires the layout kTensor. options.scale_rule is not read.
void QuantizeUnder(const Scale& scale,
                   std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);

// Writes out(r, c) = the value of the code * its scale, rounded to float32. Requires a matrix that
// is not transposed and out.size() == shape.Elements().
void Dequantize(const QuantizedMatrix& matrix, std::span<float> out);

// Quantises and dequantises without storing codes. Serves every format of up to 32 bits. Returns
// the scales. Requires in.size() == out.size() == shape.Elements().
std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out);

// The error of quantising a matrix.

// Quantises and dequantises the matrix under `options` and returns measures of the error. An
// element counts as an overflow if its magnitude, divided by its scale, is at or beyond the
// midpoint between the largest finite value and the value that would follow it. The rounding mode
// does not matter for this.
ErrorMeasures QuantizationError(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options);

// Returns the error measures of a quantised matrix. `in` is the original matrix; `dequantized`
// receives the dequantised values. Requires a matrix that is not transposed and spans of its size.
ErrorMeasures QuantizationError(std::span<const float> in,
                                const QuantizedMatrix& matrix,
                                std::span<float> dequantized);

// Returns the scale rule that a format is usually used with: kAbsmax for formats of up to 8 bits,
// kNone (a plain cast) for wider ones.
ScaleRule UsualScaleRule(const FormatSpec& format);

}  // namespace numsim
