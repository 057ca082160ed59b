#include "numsim/gemm/internal/gemm_place_device.h"

#include <algorithm>
#include <bit>

#include "numsim/backend/device_context.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast_device.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_ordered_device.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

// The values of the operands of one call, where they are given as codes.
struct DecodedOperands {
  DeviceArray<float> a, b;
};

// The scales of the operands of one call, segment by segment.
struct ScalesOfSegments {
  DeviceArray<float> a, b;
};

bool AreInt8(const GemmOperand& a, const GemmOperand& b) {
  return a.format == kInt8 && b.format == kInt8;
}

// True if all elements of a vector share a scale, and no vectors share one, or all do.
bool HasScalesOfRows(const GemmOperand& x) {
  return x.scales.segment == 0 &&
         (x.scales.row_stride == 0 || (x.scales.row_stride == 1 && x.scales.row_group == 1));
}

bool FitTensorCores(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  const auto is_codes = [](const GemmOperand& x) { return x.values.empty(); };
  if (!is_codes(a) || !is_codes(b) || !HasScalesOfRows(a) || !HasScalesOfRows(b)) return false;
  if (AreInt8(a, b) && a.inner > kMostProductsOfAnyInt8) return false;
  return MultipliesOnDevice(a.format, b.format, mode);
}

// Elements along the inner dimension after which scales may change.
size_t SegmentOf(const GemmOperand& a, const GemmOperand& b) {
  const size_t segment = std::max(a.scales.segment, b.scales.segment);
  return segment == 0 ? a.inner : segment;
}

// Returns the segments that the Hopper kernel for blocks sees: a single one may be padded with zeros.
size_t BlockOf(const GemmOperand& a, const GemmOperand& b) {
  const size_t segment = SegmentOf(a, b);
  if (segment < a.inner) return segment;
  return (segment + kBlockProducts - 1) / kBlockProducts * kBlockProducts;
}

// True if tensor cores add up each segment from zero as the mode says, and the Hopper kernel for
// blocks serves the segments.
bool FitBlocks(const GemmOperand& a,
               const GemmOperand& b,
               const AccumulationMode& mode,
               MatrixSpan<float> out) {
  if (!a.values.empty() || !b.values.empty()) return false;
  if (!MultipliesOnDevice(a.format, b.format, mode)) return false;
  const size_t block = BlockOf(a, b);
  if (!TakesBlocks(a.format, b.format, mode, block)) return false;
  if (AreInt8(a, b) && block > kMostProductsOfAnyInt8) return false;
  return ServesHopperPrepared(ForTensorCores(a), ForTensorCores(b), out);
}

// Returns the scales in an order in which those of neighbouring vectors are neighbours, as the
// kernel reads them.
GemmScales BySegments(const GemmScales& scales, DeviceArray<float>& turned, DeviceStream& stream) {
  if (scales.segment == 0 || scales.segment_stride != 1 || scales.row_stride <= 1 ||
      scales.data.size() % scales.row_stride != 0) {
    return scales;
  }
  const size_t groups = scales.data.size() / scales.row_stride;
  turned.Reserve(scales.data.size());
  Transpose(scales.data.data(), {groups, scales.row_stride}, sizeof(float), turned.data(), stream);
  GemmScales made = scales;
  made.data = {turned.data(), scales.data.size()};
  made.row_stride = 1;
  made.segment_stride = groups;
  return made;
}

void MultiplyInBlocks(const GemmOperand& a, const GemmOperand& b, MatrixSpan<float> out) {
  const size_t segment = BlockOf(a, b);
  auto& scales = out.place.Context().Get<ScalesOfSegments>();
  const GemmScales of_a = BySegments(a.scales, scales.a, out.place.Stream());
  const GemmScales of_b = BySegments(b.scales, scales.b, out.place.Stream());
  const auto kernel = [&](const DeviceGemmOperand& left,
                          const DeviceGemmOperand& right,
                          MatrixSpan<float> result,
                          DeviceStream& stream) {
    cuda::MultiplyHopperBlocks(
        left, {of_a, a.rows}, right, {of_b, b.rows}, segment, result, stream);
  };
  MultiplyPrepared(ForTensorCores(a), ForTensorCores(b), out, kernel);
}

OrderedOperand InOrder(const GemmOperand& x, DeviceArray<float>& decoded, DeviceStream& stream) {
  OrderedOperand operand;
  operand.values = x.values.data();
  operand.rows = x.rows;
  operand.inner = x.inner;
  operand.transposed = x.transposed;
  if (!x.scales.data.empty()) {
    operand.scales = x.scales.data.data();
    operand.row_group = x.scales.row_group;
    operand.row_stride = x.scales.row_stride;
    operand.segment_stride = x.scales.segment == 0 ? 0 : x.scales.segment_stride;
  }
  if (!x.values.empty()) return operand;
  const size_t n = x.rows * x.inner;
  decoded.Reserve(n);
  if (x.format.StorageBytes() == 1) {
    Decode(x.format, DeviceSpan<const uint8_t>(x.codes8.data(), n), decoded.first(n), stream);
  } else {
    Decode(x.format, DeviceSpan<const uint16_t>(x.codes16.data(), n), decoded.first(n), stream);
  }
  operand.values = decoded.data();
  return operand;
}

void MultiplyInOrder(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     MatrixSpan<float> out) {
  auto& decoded = out.place.Context().Get<DecodedOperands>();
  DeviceStream& stream = out.place.Stream();
  const OrderedSums sums = {
      // Sums of int8 products are exact in float64.
      .float64 = mode.kind == AccumulationKind::kFloat64 || mode.kind == AccumulationKind::kExact,
      .promote = mode.kind == AccumulationKind::kChunked ? static_cast<size_t>(mode.chunk) : 0,
      .segment = SegmentOf(a, b),
      .nan = std::bit_cast<float>(NanResult(mode))};
  MultiplyOrdered(InOrder(a, decoded.a, stream), InOrder(b, decoded.b, stream), sums, out);
}

}  // namespace

DeviceGemmOperand ForTensorCores(const GemmOperand& x) {
  DeviceGemmOperand operand;
  operand.format = x.format;
  operand.codes = x.format.StorageBytes() == 1 ? static_cast<const void*>(x.codes8.data())
                                               : static_cast<const void*>(x.codes16.data());
  operand.rows = x.rows;
  operand.inner = x.inner;
  operand.transposed = x.transposed;
  if (!x.scales.data.empty() && HasScalesOfRows(x)) {
    operand.scales = {x.scales.data.data(), x.scales.row_stride == 0 ? 1 : x.rows};
  }
  return operand;
}

PlaceKernel KernelAtPlace(const GemmOperand& a,
                          const GemmOperand& b,
                          const AccumulationMode& mode,
                          MatrixSpan<float> out) {
  if (FitTensorCores(a, b, mode)) return PlaceKernel::kTensorCores;
  if (FitBlocks(a, b, mode, out)) return PlaceKernel::kBlocks;
  const bool exact_int8 = mode.kind == AccumulationKind::kExact && AreInt8(a, b);
  return IsOrderedMode(mode) || exact_int8 ? PlaceKernel::kOrdered : PlaceKernel::kNone;
}

void GemmAtPlace(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& mode,
                 MatrixSpan<float> out) {
  CheckProduct(a, b, out.Elements());
  NUMSIM_REQUIRE(out.rows == a.rows && out.cols == b.rows && out.Contiguous(),
                 "Gemm: {} x {} results with stride {}, expected {} x {}, contiguous",
                 out.rows,
                 out.cols,
                 out.stride,
                 a.rows,
                 b.rows);
  if (out.Elements() == 0) return;
  if (a.inner == 0) return device_memory::FillBytes(out.data, 0, out.Bytes(), out.place.Stream());
  switch (KernelAtPlace(a, b, mode, out)) {
    case PlaceKernel::kTensorCores:
      return Gemm(ForTensorCores(a), ForTensorCores(b), mode, out);
    case PlaceKernel::kBlocks:
      return MultiplyInBlocks(a, b, out);
    case PlaceKernel::kOrdered:
      return MultiplyInOrder(a, b, mode, out);
    case PlaceKernel::kNone:
      break;
  }
  throw Error::Format(
      "Gemm: a device has no product of {} x {} of {} by {} x {} of {} under mode {} (tensor cores take "
      "codes with one scale per operand or per row, and Hopper's 8-bit ones also blocks of multiples of "
      "128)",
      a.rows,
      a.inner,
      ToString(a.format),
      b.rows,
      b.inner,
      ToString(b.format),
      ToString(mode));
}

}  // namespace numsim
