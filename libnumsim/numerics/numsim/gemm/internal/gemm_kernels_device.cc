#include "numsim/gemm/internal/gemm_kernels_device.h"

#include <algorithm>
#include <bit>

#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/require.h"
#include "numsim/cast/shared/round_to_element.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_ordered_device.h"
#include "numsim/gemm/internal/gemm_packed.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "numsim/gemm/internal/gemm_tensor_cores_device.h"
#include "numsim/quantize/shared/transpose_device.h"

namespace numsim::cuda {
namespace {

// Memory of one call.
struct KernelScratch {
  explicit KernelScratch(Place place)
      : values_a(place), values_b(place), scales_a(place), scales_b(place) {}

  PackedOperand packed_a, packed_b;
  Buffer<float> values_a, values_b;  // decoded codes
  Buffer<float> scales_a, scales_b;  // segment by segment
};

bool AreInt8(const GemmOperand& a, const GemmOperand& b) {
  return a.format == kInt8 && b.format == kInt8;
}

bool AreCodes(const GemmOperand& a, const GemmOperand& b) { return a.IsCodes() && b.IsCodes(); }

bool FitTensorCores(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  if (!AreCodes(a, b) || !HasScalesOfRows(a) || !HasScalesOfRows(b)) return false;
  if (AreInt8(a, b) && a.inner > kMostProductsOfAnyInt8) return false;
  return MultipliesOnDevice(a.format, b.format, mode);
}

// Returns the segments that the Hopper kernel for blocks sees: a single one may be padded with zeros.
size_t BlockOf(const GemmOperand& a, const GemmOperand& b) {
  const size_t segment = SegmentLength(a, b);
  if (segment < a.inner) return segment;
  return (segment + kBlockProducts - 1) / kBlockProducts * kBlockProducts;
}

// True if tensor cores add up each segment from zero as the mode says, and the Hopper kernel for
// blocks serves the segments.
bool FitBlocks(const GemmOperand& a,
               const GemmOperand& b,
               const AccumulationMode& mode,
               FloatSpan out) {
  if (!AreCodes(a, b) || !MultipliesOnDevice(a.format, b.format, mode)) return false;
  const size_t block = BlockOf(a, b);
  if (!TakesBlocks(a.format, b.format, mode, block)) return false;
  if (AreInt8(a, b) && block > kMostProductsOfAnyInt8) return false;
  return ServesHopperPrepared(a, b, out);
}

// Returns the scales in an order in which those of neighbouring vectors are neighbours, as the
// kernel reads them.
GemmScales BySegments(const GemmScales& scales, Buffer<float>& turned) {
  const size_t count = scales.data.Elements();
  if (scales.segment == 0 || scales.segment_stride != 1 || scales.row_stride <= 1 ||
      count % scales.row_stride != 0) {
    return scales;
  }
  const size_t groups = count / scales.row_stride;
  GemmScales made = scales;
  made.data = turned.Renew(count);
  made.row_stride = 1;
  made.segment_stride = groups;
  Transpose(scales.data.data,
            {groups, scales.row_stride},
            sizeof(float),
            turned.View().data,
            scales.data.place.Stream());
  return made;
}

void MultiplyInBlocks(const GemmOperand& a, const GemmOperand& b, FloatSpan out) {
  const size_t segment = BlockOf(a, b);
  auto& scratch = out.place.Context().Get<KernelScratch>();
  const GemmScales of_a = BySegments(a.scales, scratch.scales_a);
  const GemmScales of_b = BySegments(b.scales, scratch.scales_b);
  const auto kernel = [&](const GemmOperand& left, const GemmOperand& right, FloatSpan result) {
    MultiplyHopperBlocks(left, {of_a, a.rows}, right, {of_b, b.rows}, segment, result);
  };
  MultiplyPrepared(a, b, out, kernel);
}

OrderedOperand InOrder(const GemmOperand& x, Buffer<float>& decoded) {
  OrderedOperand operand;
  operand.values = x.values.data;
  operand.rows = x.rows;
  operand.inner = x.inner;
  operand.transposed = x.transposed;
  if (!x.scales.data.Empty()) {
    operand.scales = x.scales.data.data;
    operand.row_group = x.scales.row_group;
    operand.row_stride = x.scales.row_stride;
    operand.segment_stride = x.scales.segment == 0 ? 0 : x.scales.segment_stride;
  }
  if (!x.IsCodes()) return operand;
  const MatrixSpan<float> values = decoded.Renew(x.rows * x.inner);
  if (x.codes8.data != nullptr) {
    Decode(x.format, x.codes8, values);
  } else {
    Decode(x.format, x.codes16, values);
  }
  operand.values = values.data;
  return operand;
}

void MultiplyInOrder(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     FloatSpan out) {
  auto& scratch = out.place.Context().Get<KernelScratch>();
  const OrderedSums sums = {
      // Sums of int8 products are exact in float64.
      .float64 = mode.kind == AccumulationKind::kFloat64 || mode.kind == AccumulationKind::kExact,
      .promote = mode.kind == AccumulationKind::kChunked ? static_cast<size_t>(mode.chunk) : 0,
      .segment = SegmentLength(a, b),
      .nan = std::bit_cast<float>(NanResult(mode))};
  MultiplyOrdered(InOrder(a, scratch.values_a), InOrder(b, scratch.values_b), sums, out);
}

[[noreturn]] void Refuse(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  throw Error::Format(
      "Gemm: a device has no product of {} x {} of {} by {} x {} of {} under mode {} (tensor cores take "
      "codes with one scale per operand or per row, and Hopper's 8-bit ones also blocks of multiples of "
      "128; Hopper's modes are hopper-fp8-fast, hopper-fp8 and, for bf16 and fp16, trunc:25,16 and "
      "trunc:25,16,PROMOTE)",
      a.rows,
      a.inner,
      ToString(a.format),
      b.rows,
      b.inner,
      ToString(b.format),
      ToString(mode));
}

// The operands of an offloaded call, on the device.
class OffloadedOperands {
 public:
  OffloadedOperands(const GemmOperand& a, const GemmOperand& b, bool encode)
      : a_(CopyOf(a, encode)), b_(CopyOf(b, encode)) {}

  const GemmOperand& a() const { return a_; }
  const GemmOperand& b() const { return b_; }
  OffloadedCall& call() { return call_; }

 private:
  // Encodes values there. They are on the grid of the format, so any rounding gives their codes.
  template <typename Code>
  MatrixSpan<const Code> Encoded(const FormatSpec& format, MatrixSpan<const float> values) {
    const MatrixSpan<Code> codes = call_.Room<Code>(values.Shape());
    Encode(MakeEncodePlan(format, Rounding{}, Overflow::kNonsaturate), values, codes);
    return codes;
  }

  GemmOperand CopyOf(const GemmOperand& x, bool encode) {
    GemmOperand there = x;
    if (!x.scales.data.Empty()) there.scales.data = call_.In(x.scales.data);
    if (x.codes8.data != nullptr) there.codes8 = call_.In(x.codes8);
    if (x.codes16.data != nullptr) there.codes16 = call_.In(x.codes16);
    if (!x.IsCodes()) there.values = call_.In(x.values);
    if (x.IsCodes() || !encode) return there;
    if (x.format.StorageBytes() == 1) {
      there.codes8 = Encoded<uint8_t>(x.format, there.values);
    } else {
      there.codes16 = Encoded<uint16_t>(x.format, there.values);
    }
    there.values = {};
    return there;
  }

  OffloadedCall call_;
  GemmOperand a_, b_;
};

// True if tensor cores would take the values if they were codes. For int8 they must be codes:
// encoding int8 values never gives the code -128.
bool Encodes(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  const auto is_int8_values = [](const GemmOperand& x) {
    return x.format.sign == Sign::kTwosComplement && !x.IsCodes();
  };
  return MultipliesOnDevice(a.format, b.format, mode) && !is_int8_values(a) && !is_int8_values(b);
}

// Describes an operand as OffloadedOperands makes it, at addresses that are aligned.
GemmOperand Described(const GemmOperand& x, bool encode) {
  GemmOperand there = x;
  there.codes8 = {};
  there.codes16 = {};
  if (encode) there.values = {};
  return there;
}

}  // namespace

GemmKernel ChooseKernel(const GemmOperand& a,
                        const GemmOperand& b,
                        const AccumulationMode& mode,
                        FloatSpan out,
                        DeviceGemmEngine engine) {
  const auto chosen = [&]() {
    if (FitTensorCores(a, b, mode)) {
      if (engine == DeviceGemmEngine::kLibrary) return GemmKernel::kLibrary;
      const bool own = ServesOwn(a, b, mode, out);
      if (engine == DeviceGemmEngine::kOwn) return own ? GemmKernel::kOwn : GemmKernel::kNone;
      return own && PrefersOwn(a, b) ? GemmKernel::kOwn : GemmKernel::kLibrary;
    }
    if (FitBlocks(a, b, mode, out)) return GemmKernel::kBlocks;
    const bool exact_int8 = mode.kind == AccumulationKind::kExact && AreInt8(a, b);
    return IsOrderedMode(mode) || exact_int8 ? GemmKernel::kOrdered : GemmKernel::kNone;
  }();
  const bool asked = engine == DeviceGemmEngine::kAuto || chosen == GemmKernel::kLibrary ||
                     (engine == DeviceGemmEngine::kOwn &&
                      (chosen == GemmKernel::kOwn || chosen == GemmKernel::kBlocks));
  if (!asked) {
    throw Error::Format("engine {} has no product {}", ToString(engine), TextOf(a, b, mode));
  }
  return chosen;
}

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          FloatSpan out,
          DeviceGemmEngine engine) {
  if (a.inner == 0) return device_memory::FillBytes(out.data, 0, out.Bytes(), out.place.Stream());
  auto& scratch = out.place.Context().Get<KernelScratch>();
  const GemmOperand left = scratch.packed_a.Of(a), right = scratch.packed_b.Of(b);
  RequireAligned(left);
  RequireAligned(right);
  switch (ChooseKernel(left, right, mode, out, engine)) {
    case GemmKernel::kLibrary:
      return MultiplyByLibrary(left, right, mode, out);
    case GemmKernel::kOwn:
      return MultiplyPrepared(left, right, out, MultiplyHopper);
    case GemmKernel::kBlocks:
      return MultiplyInBlocks(left, right, out);
    case GemmKernel::kOrdered:
      return MultiplyInOrder(left, right, mode, out);
    case GemmKernel::kNone:
      break;
  }
  Refuse(a, b, mode);
}

void GemmInt32(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out) {
  NUMSIM_REQUIRE(a.inner <= kMostProductsOfAnyInt8,
                 "GemmInt32: {} products, expected at most {} on a device",
                 a.inner,
                 kMostProductsOfAnyInt8);
  if (out.Empty()) return;
  if (a.inner == 0) return device_memory::FillBytes(out.data, 0, out.Bytes(), out.place.Stream());
  auto& scratch = out.place.Context().Get<KernelScratch>();
  MultiplyInt32ByLibrary(scratch.packed_a.Of(a), scratch.packed_b.Of(b), out);
}

bool GemmOffloaded(const GemmOperand& a,
                   const GemmOperand& b,
                   const AccumulationMode& mode,
                   FloatSpan out) {
  if (mode.kind == AccumulationKind::kLibrary) return false;
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  const bool encode = Encodes(a, b, mode);
  const FloatSpan somewhere(nullptr, out.Shape(), out.place, Element::kFloat32);
  const GemmKernel kernel = ChooseKernel(
      Described(left, encode), Described(right, encode), mode, somewhere, DeviceGemmEngine::kAuto);
  const bool serves =
      kernel != GemmKernel::kNone && (kernel != GemmKernel::kOrdered || a.rows <= kMostOrderedRows);
  if (!serves) return false;
  OffloadedOperands there(left, right, encode);
  const MatrixSpan<float> result = there.call().Room<float>(out.Shape());
  cuda::Gemm(there.a(), there.b(), mode, result, DeviceGemmEngine::kAuto);
  there.call().Out(result, out.Float32());
  RoundToElement(out);
  return true;
}

bool GemmInt32Offloaded(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out) {
  if (a.inner > kMostProductsOfAnyInt8 || out.Empty()) return false;
  OffloadedOperands there(a, b, true);
  const MatrixSpan<int32_t> result = there.call().Room<int32_t>({a.rows, b.rows});
  cuda::GemmInt32(there.a(), there.b(), result);
  there.call().Out(result, out);
  return true;
}

}  // namespace numsim::cuda
