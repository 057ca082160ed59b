#include "numsim/quantize/quantized_device.h"

#include "numsim/base/require.h"
#include "numsim/quantize/internal/quantized_launch.h"
#include "numsim/quantize/quantize_device.h"
#include "numsim/quantize/shared/require_scales.h"

namespace numsim {
namespace {

// Reserves memory for the results that the options request.
void Prepare(MatrixShape shape, const DeviceQuantizeOptions& options, DeviceQuantizedMatrix& out) {
  RequireCodeBytes(2, options.format.Bits(), "Quantize", "codes");
  RequireLayout(options.layout, "Quantize");
  out.format = options.format;
  out.shape = shape;
  out.layout = options.layout;
  out.has_codes = options.codes;
  out.has_transposed = options.transposed;
  const size_t bytes = shape.Elements() * static_cast<size_t>(options.format.StorageBytes());
  if (options.codes) out.codes.Reserve(bytes);
  if (options.transposed) out.transposed.Reserve(bytes);
  out.scales.Reserve(out.ScaleCount());
}

void QuantizeUnderInvScales(const DeviceMatrix& in,
                            const DeviceQuantizeOptions& options,
                            DeviceSpan<const float> inv_scales,
                            DeviceQuantizedMatrix& out,
                            DeviceStream& stream) {
  Quantize(MakeEncodePlan(options.format, options.rounding, options.overflow),
           in,
           options.layout,
           inv_scales,
           options.codes ? out.codes.data() : nullptr,
           options.transposed ? out.transposed.data() : nullptr,
           stream,
           options.random);
}

// Quantises with the layout kRow and codes in the order of the input, reading each row once.
// Returns false and does nothing if that is not possible.
bool QuantizeRows(const DeviceMatrix& in,
                  const DeviceQuantizeOptions& options,
                  const ScaleFactory& maker,
                  DeviceQuantizedMatrix& out,
                  DeviceStream& stream) {
  if (options.layout.granularity != Granularity::kRow || options.transposed || !options.codes ||
      options.scale_rule == ScaleRule::kNone) {
    return false;
  }
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  return QuantizeRowsOnDevice(plan, in, maker, out.codes.data(), out.scales.data(), stream);
}

}  // namespace

void Quantize(const DeviceMatrix& in,
              const DeviceQuantizeOptions& options,
              DeviceQuantizedMatrix& out,
              DeviceQuantizeScratch& scratch,
              DeviceStream& stream) {
  Prepare(in.shape, options, out);
  const ScaleFactory maker(options.format, options.scale_rule);
  if (QuantizeRows(in, options, maker, out, stream)) return;
  const size_t count = out.ScaleCount();
  if (count == 0) return;
  scratch.inv_scales.Reserve(count);
  const DeviceSpan<float> scales = out.scales.first(count);
  const DeviceSpan<float> inv_scales = scratch.inv_scales.first(count);
  // Under kNone the maxima are not read.
  if (options.scale_rule != ScaleRule::kNone) Absmax(in, options.layout, scales, stream);
  MakeScalesOnDevice(maker, scales, inv_scales, stream);
  QuantizeUnderInvScales(in, options, inv_scales, out, stream);
}

void QuantizeUnder(const Scale& scale,
                   const DeviceMatrix& in,
                   const DeviceQuantizeOptions& options,
                   DeviceQuantizedMatrix& out,
                   DeviceQuantizeScratch& scratch,
                   DeviceStream& stream) {
  NUMSIM_REQUIRE(options.layout.granularity == Granularity::kTensor,
                 "QuantizeUnder: one scale for the layout {}, expected tensor",
                 ToString(options.layout));
  Prepare(in.shape, options, out);
  scratch.inv_scales.Reserve(1);
  SetScaleOnDevice(scale, out.scales.data(), scratch.inv_scales.data(), stream);
  QuantizeUnderInvScales(in, options, scratch.inv_scales.first(1), out, stream);
}

QuantizedMatrix ToHost(const DeviceQuantizedMatrix& matrix, DeviceStream& stream) {
  NUMSIM_REQUIRE(matrix.has_codes || matrix.has_transposed, "ToHost: the matrix has no codes");
  QuantizedMatrix result;
  result.format = matrix.format;
  result.shape = matrix.shape;
  result.layout = matrix.layout;
  result.transposed = !matrix.has_codes;
  const size_t n = matrix.shape.Elements();
  const uint8_t* codes = matrix.has_codes ? matrix.codes.data() : matrix.transposed.data();
  result.scales.resize(matrix.ScaleCount());
  if (!result.scales.empty()) {
    CopyToHost(DeviceSpan<const float>(matrix.scales.data(), result.scales.size()),
               std::span(result.scales),
               stream);
  }
  if (n == 0) return result;
  if (matrix.format.StorageBytes() == 1) {
    result.codes8.resize(n);
    CopyToHost(DeviceSpan<const uint8_t>(codes, n), std::span(result.codes8), stream);
  } else {
    result.codes16.resize(n);
    const auto* wide = reinterpret_cast<const uint16_t*>(codes);
    CopyToHost(DeviceSpan<const uint16_t>(wide, n), std::span(result.codes16), stream);
  }
  return result;
}

QuantizedMatrix QuantizeOnDevice(std::span<const float> in,
                                 MatrixShape shape,
                                 const QuantizeOptions& options) {
  RequireSize(in.size(), shape, "Quantize", "in");
  DeviceStream& stream = ThreadStream();
  const DeviceArray<float> values = OnDevice(in, stream);
  const DeviceQuantizeOptions on_device = {.format = options.format,
                                           .rounding = options.rounding,
                                           .overflow = options.overflow,
                                           .layout = options.layout,
                                           .scale_rule = options.scale_rule,
                                           .random = options.random,
                                           .codes = !options.transpose,
                                           .transposed = options.transpose};
  DeviceQuantizedMatrix matrix;
  DeviceQuantizeScratch scratch;
  Quantize({values.data(), DeviceElement::kFloat32, shape}, on_device, matrix, scratch, stream);
  return ToHost(matrix, stream);
}

}  // namespace numsim
