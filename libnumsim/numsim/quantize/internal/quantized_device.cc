#include "numsim/quantize/internal/quantized_device.h"

#include "numsim/backend/device_context.h"
#include "numsim/quantize/internal/quantized_launch.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

// Memory of one call.
struct QuantizeScratch {
  DeviceArray<float> inv_scales, absmax;
};

QuantizeScratch& ScratchOf(Place place) { return place.Context().Get<QuantizeScratch>(); }

DeviceSpan<float> ScalesOf(QuantizedMatrix& matrix) {
  const MatrixSpan<float> scales = matrix.scales.View();
  return {scales.data, scales.Elements()};
}

void QuantizeUnderInvScales(In<float> in,
                            const QuantizeOptions& options,
                            DeviceSpan<const float> inv_scales,
                            QuantizedMatrix& result) {
  Quantize(MakeEncodePlan(options.format, options.rounding, options.overflow),
           in,
           options.layout,
           inv_scales,
           result.HasCodes() ? result.codes.View().data : nullptr,
           result.HasTransposed() ? result.transposed.View().data : nullptr,
           options.random);
}

// Quantises with the layout kRow and codes in the order of the input, reading each row once.
// Returns false and does nothing if that is not possible.
bool QuantizeRows(In<float> in,
                  const QuantizeOptions& options,
                  const ScaleFactory& maker,
                  QuantizedMatrix& result) {
  if (options.layout.granularity != Granularity::kRow || options.order != CodeOrder::kInput ||
      options.scale_rule == ScaleRule::kNone) {
    return false;
  }
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  return QuantizeRowsOnDevice(
      {plan, in, maker, options.random, result.codes.View().data, ScalesOf(result).data()});
}

}  // namespace

void QuantizeOnDevice(In<float> in, const QuantizeOptions& options, QuantizedMatrix& result) {
  const ScaleFactory maker(options.format, options.scale_rule);
  if (QuantizeRows(in, options, maker, result)) return;
  const DeviceSpan<float> scales = ScalesOf(result);
  if (scales.empty()) return;
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.inv_scales.Reserve(scales.size());
  const DeviceSpan<float> inv_scales = scratch.inv_scales.first(scales.size());
  const bool has_maxima = options.scale_rule != ScaleRule::kNone;
  if (has_maxima) Absmax(in, options.layout, scales);
  MakeScalesOnDevice(maker, has_maxima, scales, inv_scales, in.place.Stream());
  QuantizeUnderInvScales(in, options, inv_scales, result);
}

void QuantizeUnderOnDevice(const Scale& scale,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result) {
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.inv_scales.Reserve(1);
  SetScaleOnDevice(scale, ScalesOf(result).data(), scratch.inv_scales.data(), in.place.Stream());
  QuantizeUnderInvScales(in, options, scratch.inv_scales.first(1), result);
}

void QuantizeUnderOnDevice(DelayedScale& delayed,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result) {
  const float* const current = delayed.CurrentAtPlace().data;  // the scale and its inverse
  DeviceStream& stream = in.place.Stream();
  device_memory::CopyWithin(current, ScalesOf(result).data(), sizeof(float), stream);
  QuantizeUnderInvScales(in, options, {current + 1, 1}, result);
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.absmax.Reserve(1);
  AbsmaxOfAll(in, scratch.absmax.first(1));
  delayed.RecordAtPlace(scratch.absmax.data());
}

void DequantizeOnDevice(const QuantizedMatrix& matrix, bool scaled, MatrixSpan<float> out) {
  DeviceSpan<const float> scales(matrix.scales.View().data, matrix.scales.View().Elements());
  if (!scaled) {
    QuantizeScratch& scratch = ScratchOf(out.place);
    scratch.inv_scales.Reserve(2);
    SetScaleOnDevice(
        {}, scratch.inv_scales.data(), scratch.inv_scales.data() + 1, out.place.Stream());
    scales = scratch.inv_scales.first(1);
  }
  Dequantize(
      matrix.format, matrix.CodeBytes().data, scaled ? matrix.layout : ScaleLayout{}, scales, out);
}

}  // namespace numsim
