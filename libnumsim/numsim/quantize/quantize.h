// Conversion of matrices to codes under given scales, and back. scale.h computes scales.
//
// Matrices are row-major float32, rows x cols. Multiplication by a scale is one float32 product in
// the default floating-point environment; the product is then rounded to a code by the exact rule.
// The bits do not depend on the backend or the thread count. Under the backend cuda all functions
// except FakeQuantize run on the device and throw Error if its memory does not suffice. All
// functions throw Error if a size does not fit the shape or the layout, or if a block or tile has
// no elements.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/base/matrix_shape.h"
#include "numsim/cast/cast.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim {

// Writes absmax[s] = the largest |x| over the finite elements that share scale s, or 0 if there are
// none. Infinities and NaN are ignored, so that they do not spoil the scale of their neighbours.
// Requires in.size() == shape.Elements() and absmax.size() == layout.Count(rows, cols).
void Absmax(std::span<const float> in,
            MatrixShape shape,
            const ScaleLayout& layout,
            std::span<float> absmax);

// Returns the largest |x|, infinities included; a quiet NaN if any element is NaN; 0 for an empty
// span.
float AbsmaxOfAll(std::span<const float> in);

// Writes codes(r, c) = the code of in(r, c) * inv_scale(r, c), the product rounded to float32.
// In a stochastic mode, element (r, c) uses the random bits of index
// random.first_index + r * cols + c. With `transpose` the codes are stored as the cols x rows
// matrix codes^T, which equals transposing after quantising.
// Requires in.size() == codes.size() == shape.Elements(), inv_scales.size() ==
// layout.Count(rows, cols), no overlap, and a code type of plan.format.StorageBytes() bytes.
void Quantize(const EncodePlan& plan,
              std::span<const float> in,
              MatrixShape shape,
              const ScaleLayout& layout,
              std::span<const float> inv_scales,
              std::span<uint8_t> codes,
              const ArrayRandom& random = {},
              bool transpose = false);
void Quantize(const EncodePlan& plan,
              std::span<const float> in,
              MatrixShape shape,
              const ScaleLayout& layout,
              std::span<const float> inv_scales,
              std::span<uint16_t> codes,
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

// Writes out(r, c) = the value of codes(r, c) * scale(r, c), the product rounded to float32. Codes
// must not be transposed. Requires spans of shape.Elements() codes and values and of
// layout.Count(rows, cols) scales, and a code type of format.StorageBytes() bytes.
void Dequantize(const FormatSpec& format,
                std::span<const uint8_t> codes,
                MatrixShape shape,
                const ScaleLayout& layout,
                std::span<const float> scales,
                std::span<float> out);
void Dequantize(const FormatSpec& format,
                std::span<const uint16_t> codes,
                MatrixShape shape,
                const ScaleLayout& layout,
                std::span<const float> scales,
                std::span<float> out);

}  // namespace numsim
