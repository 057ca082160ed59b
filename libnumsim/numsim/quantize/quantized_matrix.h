// Quantised tensors: codes with the scales that they were made under.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numsim/quantize/quantize.h"
#include "numsim/quantize/scale.h"
#include "numsim/stats/error_measures.h"

namespace numsim {

struct QuantizeOptions {
  FormatSpec format;  // at most 16 bits
  Rounding rounding;
  Overflow overflow = Overflow::kSaturate;
  ScaleLayout layout;
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  ArrayRandom random;
  bool transpose = false;  // store codes^T; layout and random draws still refer to the input
};

// A rows x cols float32 matrix as codes, one byte or two each as the format needs.
//
// NaN and infinities of the input: scales come from finite elements alone; NaN takes the format's
// NaN rule and an infinity overflows, so under kSaturate it becomes the largest value. Elements
// that share a scale and are all zero (or have no finite element) get scale 1; zeros are zero
// codes.
struct QuantizedMatrix {
  FormatSpec format;
  MatrixShape shape;  // of the input; codes are shape.cols x shape.rows when transposed
  ScaleLayout layout;
  bool transposed = false;
  std::vector<uint8_t> codes8;
  std::vector<uint16_t> codes16;
  std::vector<float> scales;  // layout.Count(rows, cols); value = code value * scale
};

// Requires in.size() == shape.Elements() and a format of at most 16 bits.
QuantizedMatrix Quantize(std::span<const float> in,
                         MatrixShape shape,
                         const QuantizeOptions& options);

// The same into a matrix whose memory is used again, whatever it held.
void QuantizeInto(std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result);

// The same under one scale that is given, made from another tensor or an earlier step: for options
// with layout kTensor; options.scale_rule is not read.
void QuantizeUnder(const Scale& scale,
                   std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result);

// out(r, c) = value of the code * its scale, rounded to float32. Requires a matrix that is not
// transposed and out.size() == shape.Elements().
void Dequantize(const QuantizedMatrix& matrix, std::span<float> out);

// Quantize then Dequantize, without the codes. For any format, of up to 32 bits. Returns the
// scales.
std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out);

// The error that quantising a matrix makes.

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
