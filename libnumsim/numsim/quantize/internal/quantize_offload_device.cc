#include "numsim/backend/device_context.h"
#include "numsim/quantize/internal/quantize_offload.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

// Returns an array of codes in host memory as bytes.
std::span<const uint8_t> Bytes(const void* codes, size_t bytes) {
  return {static_cast<const uint8_t*>(codes), bytes};
}
std::span<uint8_t> Bytes(void* codes, size_t bytes) {
  return {static_cast<uint8_t*>(codes), bytes};
}

}  // namespace

void AbsmaxOnDevice(std::span<const float> in,
                    MatrixShape shape,
                    const ScaleLayout& layout,
                    std::span<float> absmax) {
  DeviceStream& stream = ThreadStream();
  const DeviceArray<float> values = OnDevice(in, stream);
  DeviceArray<float> maxima(absmax.size());
  Absmax({values.data(), shape, ThreadPlace()}, layout, maxima.span());
  CopyToHost(DeviceSpan<const float>(maxima.span()), absmax, stream);
}

float AbsmaxOfAllOnDevice(std::span<const float> in) {
  DeviceStream& stream = ThreadStream();
  const DeviceArray<float> values = OnDevice(in, stream);
  DeviceArray<float> maximum(1);
  AbsmaxOfAll({values.data(), MatrixShape{1, in.size()}, ThreadPlace()}, maximum.span());
  return OnHost(DeviceSpan<const float>(maximum.span()), stream)[0];
}

void QuantizeOnDevice(const EncodePlan& plan,
                      std::span<const float> in,
                      MatrixShape shape,
                      const ScaleLayout& layout,
                      std::span<const float> inv_scales,
                      void* codes,
                      const ArrayRandom& random,
                      bool transpose) {
  DeviceStream& stream = ThreadStream();
  const DeviceArray<float> values = OnDevice(in, stream);
  const DeviceArray<float> factors = OnDevice(inv_scales, stream);
  DeviceArray<uint8_t> result(in.size() * static_cast<size_t>(plan.format.StorageBytes()));
  Quantize(plan,
           {values.data(), shape, ThreadPlace()},
           layout,
           factors.span(),
           transpose ? nullptr : result.data(),
           transpose ? result.data() : nullptr,
           random);
  CopyToHost(DeviceSpan<const uint8_t>(result.span()), Bytes(codes, result.size()), stream);
}

void DequantizeOnDevice(const FormatSpec& format,
                        const void* codes,
                        MatrixShape shape,
                        const ScaleLayout& layout,
                        std::span<const float> scales,
                        std::span<float> out) {
  DeviceStream& stream = ThreadStream();
  const size_t bytes = out.size() * static_cast<size_t>(format.StorageBytes());
  const DeviceArray<uint8_t> from = OnDevice(Bytes(codes, bytes), stream);
  const DeviceArray<float> factors = OnDevice(scales, stream);
  DeviceArray<float> values(out.size());
  Dequantize(format, from.data(), layout, factors.span(), {values.data(), shape, ThreadPlace()});
  CopyToHost(DeviceSpan<const float>(values.span()), out, stream);
}

}  // namespace numsim
