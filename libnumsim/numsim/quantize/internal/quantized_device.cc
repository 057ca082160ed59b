#include "numsim/quantize/internal/quantized_device.h"

#include "numsim/backend/device_context.h"
#include "numsim/base/require.h"
#include "numsim/quantize/internal/quantized_launch.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

// Memory of one call.
struct QuantizeScratch {
  DeviceArray<float> inv_scales, absmax;  // absmax: of the tensor
};

QuantizeScratch& ScratchOf(Place place) { return place.Context().Get<QuantizeScratch>(); }

DeviceSpan<float> ScalesOf(QuantizedMatrix& matrix) {
  const MatrixSpan<float> scales = matrix.scales.View();
  return {scales.data, scales.Elements()};
}

uint8_t* CodesOf(QuantizedMatrix& matrix) {
  return matrix.HasCodes() ? matrix.codes.View().data : nullptr;
}
uint8_t* TransposedOf(QuantizedMatrix& matrix) {
  return matrix.HasTransposed() ? matrix.transposed.View().data : nullptr;
}

void QuantizeUnderInvScales(In<float> in,
                            const QuantizeOptions& options,
                            DeviceSpan<const float> inv_scales,
                            void* codes,
                            void* transposed) {
  Quantize(MakeEncodePlan(options.format, options.rounding, options.overflow),
           in,
           options.layout,
           inv_scales,
           codes,
           transposed,
           options.random);
}

// Quantises with the layout kRow and codes in the order of the input, reading each row once.
// Returns false and does nothing if that is not possible.
bool QuantizeRows(In<float> in,
                  const QuantizeOptions& options,
                  const ScaleFactory& maker,
                  void* codes,
                  void* transposed,
                  DeviceSpan<float> scales) {
  if (options.layout.granularity != Granularity::kRow || codes == nullptr ||
      transposed != nullptr || options.scale_rule == ScaleRule::kNone ||
      TakesTensorMaximum(options.scale_rule)) {
    return false;
  }
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  return QuantizeRowsOnDevice(
      {plan, in, maker, options.random, static_cast<uint8_t*>(codes), scales.data()});
}

// The scale of the tensor that a rule with two levels gives, if it is wanted.
struct TensorScaleOut {
  const ScaleFactory& maker;
  DeviceSpan<float> scale;  // one number, or empty

  void Write(const float* tensor_absmax, DeviceStream& stream) const {
    if (scale.empty()) return;
    MakeTensorScaleOnDevice(maker, tensor_absmax, scale.data(), stream);
  }
};

// Writes the absolute maximum of the finite elements to scratch memory, and returns its address.
const float* TensorMaximum(In<float> in) {
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.absmax.Reserve(1);
  Absmax(in, ScaleLayout{}, scratch.absmax.first(1));
  return scratch.absmax.data();
}

// Quantises blocks of 16 or 32 elements, reading each once after the maximum of the tensor, if the
// rule takes one. Returns false and does nothing if that is not possible.
bool QuantizeBlocks(In<float> in,
                    const QuantizeOptions& options,
                    const TensorScaleOut& out,
                    void* codes,
                    void* transposed,
                    DeviceSpan<float> scales) {
  if (codes == nullptr || transposed != nullptr || options.scale_rule == ScaleRule::kNone) {
    return false;
  }
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  if (!CanQuantizeBlocksOnDevice(plan, in, options.layout, codes)) return false;
  const float* tensor = nullptr;
  if (TakesTensorMaximum(options.scale_rule)) {
    tensor = TensorMaximum(in);
    out.Write(tensor, in.place.Stream());
  }
  QuantizeBlocksOnDevice({plan,
                          in,
                          options.layout.block,
                          out.maker,
                          tensor,
                          static_cast<uint8_t*>(codes),
                          scales.data()});
  return true;
}

}  // namespace

void QuantizeScaled(In<float> in,
                    const QuantizeOptions& options,
                    void* codes,
                    void* transposed,
                    DeviceSpan<float> scales,
                    DeviceSpan<float> tensor_scale) {
  const ScaleFactory maker(options.format, options.scale_rule);
  const TensorScaleOut out{maker, tensor_scale};
  if (QuantizeRows(in, options, maker, codes, transposed, scales)) return;
  if (QuantizeBlocks(in, options, out, codes, transposed, scales)) return;
  if (scales.empty() && tensor_scale.empty()) return;
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.inv_scales.Reserve(scales.size());
  const DeviceSpan<float> inv_scales = scratch.inv_scales.first(scales.size());
  const bool has_maxima = options.scale_rule != ScaleRule::kNone;
  if (has_maxima) Absmax(in, options.layout, scales);
  const float* tensor_absmax = nullptr;
  if (TakesTensorMaximum(options.scale_rule)) {
    tensor_absmax = TensorMaximum({scales.data(), {1, scales.size()}, in.place});
    out.Write(tensor_absmax, in.place.Stream());
  }
  MakeScalesOnDevice(maker, has_maxima, tensor_absmax, scales, inv_scales, in.place.Stream());
  QuantizeUnderInvScales(in, options, inv_scales, codes, transposed);
}

void QuantizeOnDevice(In<float> in, const QuantizeOptions& options, QuantizedMatrix& result) {
  const MatrixSpan<float> tensor_scale = result.tensor_scale.View();
  QuantizeScaled(in,
                 options,
                 CodesOf(result),
                 TransposedOf(result),
                 ScalesOf(result),
                 {tensor_scale.data, tensor_scale.Elements()});
}

void QuantizeUnderOnDevice(const Scale& scale,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result) {
  QuantizeScratch& scratch = ScratchOf(in.place);
  scratch.inv_scales.Reserve(1);
  SetScaleOnDevice(scale, ScalesOf(result).data(), scratch.inv_scales.data(), in.place.Stream());
  QuantizeUnderInvScales(
      in, options, scratch.inv_scales.first(1), CodesOf(result), TransposedOf(result));
}

void QuantizeUnderOnDevice(DelayedScale& delayed,
                           In<float> in,
                           const QuantizeOptions& options,
                           QuantizedMatrix& result) {
  QuantizeDelayed(delayed, in, options, CodesOf(result), TransposedOf(result), ScalesOf(result));
}

void QuantizeDelayed(DelayedScale& delayed,
                     In<float> in,
                     const QuantizeOptions& options,
                     void* codes,
                     void* transposed,
                     DeviceSpan<float> scale) {
  NUMSIM_REQUIRE(delayed.place() == in.place && scale.size() == 1,
                 "QuantizeDelayed: a scale on the {} and {} of its copy, the matrix on the {}",
                 ToString(delayed.place()),
                 scale.size(),
                 ToString(in.place));
  const float* const current = delayed.CurrentAtPlace().data;  // the scale and its inverse
  DeviceStream& stream = in.place.Stream();
  device_memory::CopyWithin(current, scale.data(), sizeof(float), stream);
  QuantizeUnderInvScales(in, options, {current + 1, 1}, codes, transposed);
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
