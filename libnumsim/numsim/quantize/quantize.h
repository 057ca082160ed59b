// Matrices to codes under given scales, and back. Scales are made by scale.h.
//
// Matrices are row-major float32, rows x cols. Multiplication by a scale is one float32 product in
// the default floating-point environment; the rounding to codes that follows is the exact rule.
// The bits do not depend on backend or thread count. Under the backend cuda all but FakeQuantize
// run on the device, and throw Error where its memory does not suffice.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/base/matrix_shape.h"
#include "numsim/cast/cast.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim {

// absmax[s] = the largest |x| over the finite elements that share scale s; 0 when there are none.
// Infinities and NaN are left out, so one of them does not spoil the scale of its neighbours.
// Requires in.size() == shape.Elements() and absmax.size() == layout.Count().
void Absmax(std::span<const float> in,
            MatrixShape shape,
            const ScaleLayout& layout,
            std::span<float> absmax);

// The largest |x| with infinities counted in; a quiet NaN if there is one; 0 for none.
float AbsmaxOfAll(std::span<const float> in);

// codes(r, c) = code of in(r, c) * inv_scale(r, c), the product rounded to float32.
// Stochastic draws are those of element r * cols + c. With `transpose` the codes are stored as the
// cols x rows matrix codes^T, which equals quantising first and transposing after.
// Requires codes.size() == shape.Elements(), inv_scales.size() == layout.Count(), no overlap, a
// code type of plan.format.StorageBytes().
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

// out = Dequantize(Quantize(in)) without the codes; any format, also of more than 16 bits. in and
// out may be the same span.
void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  std::span<const float> inv_scales,
                  std::span<const float> scales,
                  std::span<float> out,
                  const ArrayRandom& random = {});

// out(r, c) = value of codes(r, c) * scale(r, c), the product rounded to float32. Not transposed.
// Requires sizes as above.
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
