// The functions of quantized_matrix.h for matrices in device memory. Scales and codes are computed
// in as few passes over memory as possible.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// A quantised matrix whose arrays are in device memory. The arrays keep their memory when the
// matrix is quantised again, so that training allocates nothing after its first step.
struct DeviceQuantizedMatrix {
  FormatSpec format;
  MatrixShape shape;  // of the input
  ScaleLayout layout;
  // Codes in the order of the input, and codes of the transpose, shape.cols x shape.rows. Each is
  // present only if it was requested (has_codes, has_transposed).
  DeviceArray<uint8_t> codes, transposed;  // StorageBytes() bytes per element
  bool has_codes = false, has_transposed = false;
  DeviceArray<float> scales;  // at least layout.Count(rows, cols)

  size_t ScaleCount() const { return layout.Count(shape.rows, shape.cols); }
};

// QuantizeOptions for the device, with a choice of the orders in which codes are written.
struct DeviceQuantizeOptions {
  FormatSpec format = {};  // at most 16 bits
  Rounding rounding = {};
  Overflow overflow = Overflow::kSaturate;
  ScaleLayout layout = {};
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  ArrayRandom random = {};
  bool codes = true;        // write codes in the order of the input
  bool transposed = false;  // write codes of the transpose; with both, the input is read once
};

// Memory that Quantize needs besides its result. It is kept between calls. Use one per stream.
struct DeviceQuantizeScratch {
  DeviceArray<float> inv_scales;
};

// Quantises a matrix. Codes and scales equal those of Quantize (quantize/quantized_matrix.h) for
// the same values, for every layout, rounding, scale rule and format of up to 16 bits. Scales are
// computed on the device, so the host does not wait.
void Quantize(const DeviceMatrix& in,
              const DeviceQuantizeOptions& options,
              DeviceQuantizedMatrix& out,
              DeviceQuantizeScratch& scratch,
              DeviceStream& stream);

// Does what QuantizeUnder of quantized_matrix.h does, with a scale known to the host. Requires the
// layout kTensor.
void QuantizeUnder(const Scale& scale,
                   const DeviceMatrix& in,
                   const DeviceQuantizeOptions& options,
                   DeviceQuantizedMatrix& out,
                   DeviceQuantizeScratch& scratch,
                   DeviceStream& stream);

// Returns a copy of the matrix in host memory, for tests and tools. Copies the codes in the order
// of the input if they are present, else those of the transpose.
QuantizedMatrix ToHost(const DeviceQuantizedMatrix& matrix, DeviceStream& stream);

// Implements Quantize of quantized_matrix.h under the backend cuda: copies the input to the device,
// quantises it there and copies the result back.
QuantizedMatrix QuantizeOnDevice(std::span<const float> in,
                                 MatrixShape shape,
                                 const QuantizeOptions& options);

}  // namespace numsim
