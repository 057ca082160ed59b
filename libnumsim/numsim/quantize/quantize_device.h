// The functions of quantize.h for contiguous matrices in device memory, in the order of the stream
// of the matrix's place. Results are the same bit for bit. Inputs are float32 or bf16; a bf16 value
// counts as the float32 equal to it. If the product of two numbers is NaN, it has the sign that x86
// gives it.
//
// Any shape is served, and any address aligned to the elements' own size. Calls run at the speed of
// memory if data are aligned to 16 bytes, rows (and columns, for transposed codes) are multiples of
// 16 bytes, codes have one byte and are rounded to nearest even (int8, e4m3fn and e5m2 with
// saturation; other formats with mantissa bits and without a subnormal gap), and each scale is
// shared by a whole matrix, row or column or by a multiple of 8 columns.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/matrix.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// Writes the absolute maxima that Absmax of quantize.h writes.
void Absmax(In<float> in, const ScaleLayout& layout, DeviceSpan<float> absmax);

// Writes absmax[0] = the largest |x|, infinities included; a quiet NaN if any element is NaN; 0 for
// an empty matrix. Requires absmax.size() == 1.
void AbsmaxOfAll(In<float> in, DeviceSpan<float> absmax);

// Writes the codes that Quantize of quantize.h writes: to `codes` in the order of the input, and to
// `transposed` as the cols x rows matrix codes^T. Either may be null; for both, the input is read
// once. A code has plan.format.StorageBytes() bytes, 1 or 2.
void Quantize(const EncodePlan& plan,
              In<float> in,
              const ScaleLayout& layout,
              DeviceSpan<const float> inv_scales,
              void* codes,
              void* transposed,
              const ArrayRandom& random = {});

// Writes the scales and codes that QuantizeInto of quantized_matrix.h computes, to memory of the
// caller: for arrays of other libraries. `codes` and `transposed` are as for Quantize above, and
// `options.order` is not read. Under a rule with two levels, `tensor_scale` receives the scale of the
// tensor unless it is empty. Requires scales.size() == options.layout.Count(rows, cols).
void QuantizeScaled(In<float> in,
                    const QuantizeOptions& options,
                    void* codes,
                    void* transposed,
                    DeviceSpan<float> scales,
                    DeviceSpan<float> tensor_scale = {});

// Does what QuantizeUnder of quantized_matrix.h does under a delayed scale, with codes in memory of the
// caller, and writes the current scale to `scale`, one number. Requires the layout kTensor and a
// `delayed` at the place of the matrix.
void QuantizeDelayed(DelayedScale& delayed,
                     In<float> in,
                     const QuantizeOptions& options,
                     void* codes,
                     void* transposed,
                     DeviceSpan<float> scale);

// Writes out(r, c) = the value of codes(r, c) * scale(r, c), the product rounded to float32. For a
// bf16 result it is then rounded to bf16 (nearest even, nonsaturating).
void Dequantize(const FormatSpec& format,
                const void* codes,
                const ScaleLayout& layout,
                DeviceSpan<const float> scales,
                MatrixSpan<float> out);

// Writes the transpose of `in`, a matrix of the given shape, to `out`: for operands and scales that a
// GEMM needs transposed. `bytes` is the size of an element, 1, 2 or 4.
void Transpose(const void* in, MatrixShape shape, size_t bytes, void* out, DeviceStream& stream);

// Writes out[i] = in[i] converted to the element type of `out`. Conversion to bf16 rounds to
// nearest even, nonsaturating, and drops NaN payloads; conversion to float32 is exact. Requires
// equal numbers of elements; shapes may differ.
void Convert(In<float> in, MatrixSpan<float> out);

}  // namespace numsim
