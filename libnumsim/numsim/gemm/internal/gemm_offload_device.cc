#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/cast/cast_device.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_offload.h"
#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {
namespace {

// An operand's memory on the device.
struct OffloadedOperand {
  DeviceArray<float> values, scales;
  DeviceArray<uint8_t> codes;
};

// Everything that a thread keeps from one GEMM to the next.
struct Staging {
  OffloadedOperand a, b;
  DeviceArray<uint8_t> out;
};

Staging& ThreadStaging() {
  ThreadStream();  // created before `staging`, so destroyed after it
  static thread_local Staging staging;
  return staging;
}

void CopyCodes(const void* codes, size_t bytes, OffloadedOperand& to, DeviceStream& stream) {
  to.codes.Reserve(bytes);
  device_memory::CopyIn(codes, to.codes.data(), bytes, stream);
}

// Encodes values on the device. They are on the grid of the format, so any rounding gives their
// codes.
template <typename Code>
void EncodeValues(const GemmOperand& x, OffloadedOperand& to, DeviceStream& stream) {
  const EncodePlan plan = MakeEncodePlan(x.format, Rounding{}, Overflow::kNonsaturate);
  const size_t n = x.values.size();
  to.values.Reserve(n);
  to.codes.Reserve(n * sizeof(Code));
  CopyToDevice(x.values, to.values.first(n), stream);
  const DeviceSpan<Code> codes(reinterpret_cast<Code*>(to.codes.data()), n);
  Encode(plan, DeviceSpan<const float>(to.values.first(n)), codes, stream);
}

// Returns one scale for all rows, or one per row. The caller keeps the vector until the copy to the
// device is done.
std::vector<float> HostScales(const GemmOperand& x) {
  if (x.scales.data.empty() || x.rows == 0) return {};
  std::vector<float> scales(x.scales.row_stride == 0 ? 1 : x.rows);
  for (size_t row = 0; row < scales.size(); ++row) scales[row] = x.scales.At(row, 0);
  return scales;
}

DeviceGemmOperand CopyOperand(const GemmOperand& x,
                              const std::vector<float>& scales,
                              OffloadedOperand& to,
                              DeviceStream& stream) {
  if (!x.codes8.empty()) {
    CopyCodes(x.codes8.data(), x.codes8.size_bytes(), to, stream);
  } else if (!x.codes16.empty()) {
    CopyCodes(x.codes16.data(), x.codes16.size_bytes(), to, stream);
  } else if (x.format.StorageBytes() == 1) {
    EncodeValues<uint8_t>(x, to, stream);
  } else {
    EncodeValues<uint16_t>(x, to, stream);
  }
  to.scales.Reserve(scales.size());
  CopyToDevice(std::span<const float>(scales), to.scales.first(scales.size()), stream);
  DeviceGemmOperand operand{.format = x.format, .codes = to.codes.data()};
  operand.rows = x.rows;
  operand.inner = x.inner;
  operand.transposed = x.transposed;
  operand.scales = to.scales.first(scales.size());
  return operand;
}

// Copies the operands to the device, calls multiply(a, b, result) and copies the result to `out`.
template <typename T, class Multiply>
void RunOffloaded(const GemmOperand& a,
                  const GemmOperand& b,
                  std::span<T> out,
                  const Multiply& multiply) {
  CheckProduct(a, b, out.size());
  if (out.empty()) return;
  Staging& staging = ThreadStaging();
  DeviceStream& stream = ThreadStream();
  const std::vector<float> scales_a = HostScales(a), scales_b = HostScales(b);
  const DeviceGemmOperand left = CopyOperand(a, scales_a, staging.a, stream);
  const DeviceGemmOperand right = CopyOperand(b, scales_b, staging.b, stream);
  staging.out.Reserve(out.size_bytes());
  const MatrixSpan<T> result(
      reinterpret_cast<T*>(staging.out.data()), MatrixShape{a.rows, b.rows}, ThreadPlace());
  multiply(left, right, result);
  CopyToHost(DeviceSpan<const T>(result.data, out.size()), out, stream);
}

bool HasFittingScales(const GemmOperand& x) { return x.scales.segment == 0; }

// int8 operands must be codes: encoding int8 values never gives the code -128.
bool HasFittingCodes(const GemmOperand& x) {
  return x.format.sign != Sign::kTwosComplement || x.values.empty();
}

}  // namespace

bool MultipliesOffloaded(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& rule) {
  if (rule.kind == AccumulationKind::kLibrary) return false;
  if (a.format.sign == Sign::kTwosComplement && a.inner > kMostProductsOfAnyInt8) return false;
  return MultipliesOnDevice(a.format, b.format, rule) && HasFittingScales(a) &&
         HasFittingScales(b) && HasFittingCodes(a) && HasFittingCodes(b);
}

void GemmOnDevice(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& rule,
                  std::span<float> out) {
  RunOffloaded(a, b, out, [&](const auto& left, const auto& right, MatrixSpan<float> result) {
    Gemm(left, right, rule, result);
  });
}

void GemmInt32OnDevice(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out) {
  RunOffloaded(a, b, out, [](auto left, auto right, MatrixSpan<int32_t> result) {
    left.scales = right.scales = {};
    GemmInt32(left, right, result);
  });
}

}  // namespace numsim
