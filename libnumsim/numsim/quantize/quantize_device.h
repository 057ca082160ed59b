// quantize.h on the device, bit for bit. Inputs are float32 or bf16; a bf16 value counts as the
// float32 that it is. A NaN that a product of numbers gives has the sign that x86 gives it.
//
// Any shape and any alignment to the elements' own size. At the speed of memory are: data aligned
// to 16 bytes, rows of whole 16 bytes (columns too where codes are transposed), codes of int8,
// e4m3fn and e5m2 to nearest even that saturate, and scales shared by whole matrices, rows, columns
// or multiples of 8 columns.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/quantize/quantize.h"

namespace numsim {

// As Absmax of quantize.h.
void Absmax(const DeviceMatrix& in,
            const ScaleLayout& layout,
            DeviceSpan<float> absmax,
            DeviceStream& stream);

// *absmax = the largest |x| with infinities counted in; a quiet NaN if there is one.
void AbsmaxOfAll(const DeviceMatrix& in, DeviceSpan<float> absmax, DeviceStream& stream);

// As Quantize of quantize.h under given inv_scales. Codes of plan.format.StorageBytes() bytes, 1
// or 2. Either of the two results may be null: `codes` in the order of the input, `transposed` as
// the cols x rows matrix codes^T. With both, the input is read once.
void Quantize(const EncodePlan& plan,
              const DeviceMatrix& in,
              const ScaleLayout& layout,
              DeviceSpan<const float> inv_scales,
              void* codes,
              void* transposed,
              DeviceStream& stream,
              const ArrayRandom& random = {});

// out(r, c) = value of codes(r, c) * scale(r, c), the product rounded to float32, then, for a bf16
// result, to bf16 (nearest even, nonsaturating).
void Dequantize(const FormatSpec& format,
                const void* codes,
                const ScaleLayout& layout,
                DeviceSpan<const float> scales,
                const MutableDeviceMatrix& out,
                DeviceStream& stream);

// out^T: for operands that a product wants the other way round. Elements of 1 or 2 bytes.
void Transpose(const void* in, MatrixShape shape, size_t bytes, void* out, DeviceStream& stream);

// out[i] = bf16 of in[i] (nearest even, nonsaturating, NaN without its payload), or the float32
// that in[i] is, whichever element out has. Shapes may differ; sizes agree.
void Convert(const DeviceMatrix& in, const MutableDeviceMatrix& out, DeviceStream& stream);

}  // namespace numsim
