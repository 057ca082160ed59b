// Conversion of matrices to codes under given scales, and back. scale.h computes scales.
//
// Matrices are contiguous, rows x cols, of float32 or of another Element, which counts as the equal
// float32. All arguments of a call are at one place, where it runs; on a device it returns before it
// is done. Multiplication by a scale is one float32 product in the default floating-point
// environment; the product is then rounded to a code by the exact rule. The bits do not depend on the
// place, the backend or the thread count. Under the backend cuda all functions except FakeQuantize
// copy host arguments to the device and run there. All functions throw Error if a size does not fit
// the shape or the layout, if a block or tile has no elements, or if a device refuses.
//
// A device serves any address aligned to the elements' own size. It runs at the speed of memory if
// data are aligned to 16 bytes, rows (and columns, for transposed codes) are multiples of 16 bytes,
// codes have one byte and are rounded to nearest even (int8, e4m3fn and e5m2 with saturation; other
// formats with mantissa bits and without a subnormal gap), and each scale is shared by a whole
// matrix, row or column or by a multiple of 8 columns.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/backend/float_matrix.h"
#include "numsim/base/matrix_shape.h"
#include "numsim/cast/cast.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim {

// Writes absmax[s] = the largest |x| over the finite elements that share scale s, or 0 if there are
// none. Infinities and NaN are ignored, so that they do not spoil the scale of their neighbours.
// Requires layout.Count(rows, cols) maxima.
void Absmax(ConstFloatSpan in, const ScaleLayout& layout, MatrixSpan<float> absmax);

// Returns the largest |x|, infinities included; a quiet NaN if any element is NaN; 0 for an empty
// span.
float AbsmaxOfAll(std::span<const float> in);
// Writes the same to absmax[0], the only element of absmax.
void AbsmaxOfAll(ConstFloatSpan in, MatrixSpan<float> absmax);

// Writes codes(r, c) = the code of in(r, c) * inv_scale(r, c), the product rounded to float32.
// In a stochastic mode, element (r, c) uses the random bits of index
// random.first_index + r * cols + c. With `transpose` the codes are stored as the cols x rows
// matrix codes^T, which equals transposing after quantising.
// Requires as many codes as elements, layout.Count(rows, cols) scales, no overlap, and a code type of
// plan.format.StorageBytes() bytes. If a product of two numbers is NaN, it has the sign that x86
// gives it.
void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              MatrixSpan<uint8_t> codes,
              const ArrayRandom& random = {},
              bool transpose = false);
void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              MatrixSpan<uint16_t> codes,
              const ArrayRandom& random = {},
              bool transpose = false);

// Writes out = Dequantize(Quantize(in)) without storing codes. Serves every format, also those of
// more than 16 bits. `in` and `out` may be the same span. Requires spans of shape.Elements() values
// and of layout.Count(rows, cols) scales.
void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  std::span<const float> inv_scales,
                  std::span<const float> scales,
                  std::span<float> out,
                  const ArrayRandom& random = {});

// Writes out(r, c) = the value of codes(r, c) * scale(r, c), the product rounded to float32 and then
// to the element of `out`. Codes must not be transposed. Requires as many codes as elements of `out`,
// layout.Count(rows, cols) scales, and a code type of format.StorageBytes() bytes.
void Dequantize(const FormatSpec& format,
                MatrixSpan<const uint8_t> codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out);
void Dequantize(const FormatSpec& format,
                MatrixSpan<const uint16_t> codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out);

// Writes out[i] = in[i] rounded to the element of `out` (nearest even, nonsaturating). A NaN
// becomes some NaN. Requires equal numbers of elements; shapes may differ.
void Convert(ConstFloatSpan in, FloatSpan out);

}  // namespace numsim
