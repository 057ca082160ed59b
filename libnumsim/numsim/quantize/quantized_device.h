// quantized_matrix.h on the device: scales and codes in as few passes over memory as there can be.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// QuantizedMatrix whose arrays lie on the device. Arrays keep their memory when the matrix is made
// again, so that a step of training allocates nothing after the first.
struct DeviceQuantizedMatrix {
  FormatSpec format;
  MatrixShape shape;  // of the input
  ScaleLayout layout;
  // Codes in the order of the input, and those of the transpose: shape.cols x shape.rows. Each is
  // there only if it was asked for (has_codes, has_transposed).
  DeviceArray<uint8_t> codes, transposed;  // StorageBytes() bytes an element
  bool has_codes = false, has_transposed = false;
  DeviceArray<float> scales;  // at least layout.Count(rows, cols)

  size_t ScaleCount() const { return layout.Count(shape.rows, shape.cols); }
};

// What to make of a matrix.
struct DeviceQuantizeOptions {
  FormatSpec format;  // at most 16 bits
  Rounding rounding;
  Overflow overflow = Overflow::kSaturate;
  ScaleLayout layout;
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  ArrayRandom random;
  bool codes = true;        // in the order of the input
  bool transposed = false;  // of the transpose; both: one read of the input for both
};

// Memory that Quantize needs beside its result; keeps what it had. One for each stream.
struct DeviceQuantizeScratch {
  DeviceArray<float> inv_scales;
};

// Codes and scales equal those of Quantize (quantize/quantized_matrix.h) of the same values, for
// every layout, format of up to 16 bits, rounding, scale rule. The host waits for nothing: scales
// are made on the device.
void Quantize(const DeviceMatrix& in,
              const DeviceQuantizeOptions& options,
              DeviceQuantizedMatrix& out,
              DeviceQuantizeScratch& scratch,
              DeviceStream& stream);

// QuantizeUnder: layout kTensor and a scale known to the host.
void QuantizeUnder(const Scale& scale,
                   const DeviceMatrix& in,
                   const DeviceQuantizeOptions& options,
                   DeviceQuantizedMatrix& out,
                   DeviceQuantizeScratch& scratch,
                   DeviceStream& stream);

// For tests and tools: copies to the host, the codes in the order of the input where they are
// there, else those of the transpose.
QuantizedMatrix ToHost(const DeviceQuantizedMatrix& matrix, DeviceStream& stream);

// Quantize of quantized_matrix.h under the backend cuda.
QuantizedMatrix QuantizeOnDevice(std::span<const float> in,
                                 MatrixShape shape,
                                 const QuantizeOptions& options);

}  // namespace numsim
