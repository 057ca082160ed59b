#include "numsim/quantize/internal/quantized_device.h"

#include "numsim/backend/device_context.h"
#include "numsim/cast/cast.h"
#include "numsim/quantize/internal/quantize_device.h"
#include "numsim/quantize/internal/quantized_launch.h"

namespace numsim::cuda {
namespace {

// Memory of one call.
struct QuantizeScratch {
  explicit QuantizeScratch(Place place) : inv_scales(place), absmax(place) {}

  Buffer<float> inv_scales, absmax;  // absmax: of the tensor
};

QuantizeScratch& ScratchOf(Place place) { return place.Context().Get<QuantizeScratch>(); }

EncodePlan PlanOf(const QuantizeOptions& options) {
  return MakeEncodePlan(options.format, options.rounding, options.overflow);
}

void QuantizeWith(MatrixSpan<const float> inv_scales,
                  ConstFloatSpan in,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result) {
  Quantize(PlanOf(options),
           in,
           options.layout,
           inv_scales,
           result.HasCodes() ? result.codes.View().data : nullptr,
           result.HasTransposed() ? result.transposed.View().data : nullptr,
           options.random);
}

// True if scales follow from the maxima of their own elements and codes are wanted in order alone,
// so that a kernel may read each element once.
bool ReadsOnce(const QuantizeOptions& options) {
  return options.order == CodeOrder::kInput && options.scale_rule != ScaleRule::kNone;
}

// Quantises with the layout kRow, reading each row once. Returns false and does nothing if that is
// not possible.
bool QuantizeRows(ConstFloatSpan in,
                  const QuantizeOptions& options,
                  const ScaleFactory& maker,
                  QuantizedMatrix& result) {
  if (options.layout.granularity != Granularity::kRow || !ReadsOnce(options) ||
      TakesTensorMaximum(options.scale_rule)) {
    return false;
  }
  const EncodePlan plan = PlanOf(options);
  return QuantizeRowsOnDevice(
      {plan, in, maker, options.random, result.codes.View().data, result.scales.View().data});
}

// Casts float32 values to codes of 16 bits in their order, without scales, reading them once. Returns
// false and does nothing if that is not what is asked for.
bool CastsUnscaled(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result) {
  if (options.scale_rule != ScaleRule::kNone || options.order != CodeOrder::kInput ||
      in.element != Element::kFloat32 || options.format.StorageBytes() != 2) {
    return false;
  }
  auto* const codes = reinterpret_cast<uint16_t*>(result.codes.View().data);
  Encode(PlanOf(options),
         in.Float32(),
         MatrixSpan<uint16_t>(codes, in.Shape(), in.place),
         options.random);
  return true;
}

// Writes the scale of the tensor of a rule with two levels, from its maximum in device memory.
void WriteTensorScale(const ScaleFactory& maker, const float* absmax, QuantizedMatrix& result) {
  MakeTensorScaleOnDevice(maker, absmax, result.tensor_scale.View().data, result.place().Stream());
}

// Writes the absolute maximum of the finite elements to scratch memory, and returns its address.
const float* TensorMaximum(ConstFloatSpan in) {
  const MatrixSpan<float> absmax = ScratchOf(in.place).absmax.Renew(1);
  cuda::Absmax(in, ScaleLayout{}, absmax);
  return absmax.data;
}

// Quantises blocks of 16 or 32 elements, reading each once after the maximum of the tensor, if the
// rule takes one. Returns false and does nothing if that is not possible.
bool QuantizeBlocks(ConstFloatSpan in,
                    const QuantizeOptions& options,
                    const ScaleFactory& maker,
                    QuantizedMatrix& result) {
  const EncodePlan plan = PlanOf(options);
  uint8_t* const codes = result.codes.View().data;
  if (!ReadsOnce(options) || !CanQuantizeBlocksOnDevice(plan, in, options.layout, codes)) {
    return false;
  }
  const float* tensor = nullptr;
  if (TakesTensorMaximum(options.scale_rule)) {
    tensor = TensorMaximum(in);
    WriteTensorScale(maker, tensor, result);
  }
  QuantizeBlocksOnDevice(
      {plan, in, options.layout.block, maker, tensor, codes, result.scales.View().data});
  return true;
}

}  // namespace

void QuantizeInto(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result) {
  const ScaleFactory maker(options.format, options.scale_rule);
  if (QuantizeRows(in, options, maker, result)) return;
  if (QuantizeBlocks(in, options, maker, result)) return;
  const MatrixSpan<float> scales = result.scales.View();
  const MatrixSpan<float> inv_scales = ScratchOf(in.place).inv_scales.Renew(scales.Elements());
  const bool has_maxima = options.scale_rule != ScaleRule::kNone;
  if (has_maxima) cuda::Absmax(in, options.layout, scales);
  const float* tensor_absmax = nullptr;
  if (TakesTensorMaximum(options.scale_rule)) {
    tensor_absmax = TensorMaximum(scales);
    WriteTensorScale(maker, tensor_absmax, result);
  }
  MakeScalesOnDevice(maker, has_maxima, tensor_absmax, scales, inv_scales);
  if (CastsUnscaled(in, options, result)) return;
  QuantizeWith(inv_scales, in, options, result);
}

void QuantizeUnder(const Scale& scale,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  const MatrixSpan<float> inv_scale = ScratchOf(in.place).inv_scales.Renew(1);
  SetScaleOnDevice(scale, result.scales.View().data, inv_scale.data, in.place.Stream());
  QuantizeWith(inv_scale, in, options, result);
}

void QuantizeUnder(DelayedScale& delayed,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  const MatrixSpan<const float> current = delayed.CurrentAtPlace();  // the scale and its inverse
  CopyMatrix<float>(current.Columns(0, 1), result.scales.View());
  QuantizeWith(current.Columns(1, 1), in, options, result);
  const MatrixSpan<float> absmax = ScratchOf(in.place).absmax.Renew(1);
  cuda::AbsmaxOfAll(in, absmax);
  delayed.RecordAtPlace(absmax.data);
}

void Dequantize(const QuantizedSpan& matrix, bool scaled, FloatSpan out) {
  if (scaled) {
    return Dequantize(matrix.format, matrix.codes.data, matrix.layout, matrix.scales, out);
  }
  const MatrixSpan<float> one = ScratchOf(out.place).inv_scales.Renew(2);
  SetScaleOnDevice({}, one.data, one.data + 1, out.place.Stream());
  Dequantize(matrix.format, matrix.codes.data, ScaleLayout{}, one.Columns(0, 1), out);
}

}  // namespace numsim::cuda
