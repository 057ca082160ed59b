#include "numsim/gemm/internal/gemm_place_device.h"

#include <algorithm>
#include <bit>

#include "numsim/backend/device_context.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast_device.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_ordered_device.h"
#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {
namespace {

// The values of the operands of one call, where they are given as codes.
struct DecodedOperands {
  DeviceArray<float> a, b;
};

bool AreInt8(const GemmOperand& a, const GemmOperand& b) {
  return a.format == kInt8 && b.format == kInt8;
}

// True if all elements of a vector share a scale, and no vectors share one but all of them.
bool HasScalesOfRows(const GemmOperand& x) {
  return x.scales.segment == 0 &&
         (x.scales.row_stride == 0 || (x.scales.row_stride == 1 && x.scales.row_group == 1));
}

bool FitTensorCores(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& rule) {
  const auto is_codes = [](const GemmOperand& x) { return x.values.empty(); };
  if (!is_codes(a) || !is_codes(b) || !HasScalesOfRows(a) || !HasScalesOfRows(b)) return false;
  if (AreInt8(a, b) && a.inner > kMostProductsOfAnyInt8) return false;
  return MultipliesOnDevice(a.format, b.format, rule);
}

DeviceGemmOperand ForTensorCores(const GemmOperand& x) {
  DeviceGemmOperand operand;
  operand.format = x.format;
  operand.codes = x.format.StorageBytes() == 1 ? static_cast<const void*>(x.codes8.data())
                                               : static_cast<const void*>(x.codes16.data());
  operand.rows = x.rows;
  operand.inner = x.inner;
  operand.transposed = x.transposed;
  if (!x.scales.data.empty()) {
    operand.scales = {x.scales.data.data(), x.scales.row_stride == 0 ? 1 : x.rows};
  }
  return operand;
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
                     const AccumulationMode& rule,
                     MatrixSpan<float> out) {
  auto& decoded = out.place.Context().Get<DecodedOperands>();
  DeviceStream& stream = out.place.Stream();
  const size_t segment = std::max(a.scales.segment, b.scales.segment);
  const OrderedSums sums = {
      // Sums of int8 products are exact in float64.
      .float64 = rule.kind == AccumulationKind::kFloat64 || rule.kind == AccumulationKind::kExact,
      .promote = rule.kind == AccumulationKind::kChunked ? static_cast<size_t>(rule.chunk) : 0,
      .segment = segment == 0 ? a.inner : segment,
      .nan = std::bit_cast<float>(NanResult(rule))};
  MultiplyOrdered(InOrder(a, decoded.a, stream), InOrder(b, decoded.b, stream), sums, out);
}

}  // namespace

void GemmAtPlace(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& rule,
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
  if (FitTensorCores(a, b, rule)) return Gemm(ForTensorCores(a), ForTensorCores(b), rule, out);
  const bool exact_int8 = rule.kind == AccumulationKind::kExact && AreInt8(a, b);
  if (IsOrderedMode(rule) || exact_int8) return MultiplyInOrder(a, b, rule, out);
  throw Error::Format(
      "Gemm: a device has no product of {} x {} of {} by {} x {} of {} under mode {} (tensor cores take "
      "codes with one scale per operand or per row)",
      a.rows,
      a.inner,
      ToString(a.format),
      b.rows,
      b.inner,
      ToString(b.format),
      ToString(rule));
}

}  // namespace numsim
