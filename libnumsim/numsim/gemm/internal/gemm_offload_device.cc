#include "numsim/backend/device_context.h"
#include "numsim/cast/cast_device.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_offload.h"
#include "numsim/gemm/internal/gemm_ordered_device.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_place_device.h"

namespace numsim {
namespace {

// An operand's memory on the device.
struct OffloadedOperand {
  DeviceArray<float> values, scales;
  DeviceArray<uint8_t> codes;
};

// The memory that a thread's context keeps from one GEMM of host arrays to the next.
struct OffloadedGemm {
  OffloadedOperand a, b;
  DeviceArray<uint8_t> out;
};

// True if tensor cores would take the values if they were codes. For int8 they must be codes:
// encoding int8 values never gives the code -128.
bool Encodes(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  const auto is_int8_values = [](const GemmOperand& x) {
    return x.format.sign == Sign::kTwosComplement && !x.values.empty();
  };
  return MultipliesOnDevice(a.format, b.format, mode) && !is_int8_values(a) && !is_int8_values(b);
}

// Copies an array to memory of the device and returns it there.
template <typename T>
std::span<const T> CopyTo(DeviceArray<T>& to, std::span<const T> from, DeviceStream& stream) {
  to.Reserve(from.size());
  CopyToDevice(from, to.first(from.size()), stream);
  return {to.data(), from.size()};
}
template <typename Code>
std::span<const Code> CopyCodes(DeviceArray<uint8_t>& to,
                                std::span<const Code> from,
                                DeviceStream& stream) {
  to.Reserve(from.size_bytes());
  device_memory::CopyIn(from.data(), to.data(), from.size_bytes(), stream);
  return {reinterpret_cast<const Code*>(to.data()), from.size()};
}

// Encodes values on the device. They are on the grid of the format, so any rounding gives their
// codes.
template <typename Code>
std::span<const Code> EncodeTo(DeviceArray<uint8_t>& to,
                               const FormatSpec& format,
                               std::span<const float> values,
                               DeviceStream& stream) {
  const EncodePlan plan = MakeEncodePlan(format, Rounding{}, Overflow::kNonsaturate);
  to.Reserve(values.size() * sizeof(Code));
  const DeviceSpan<Code> codes(reinterpret_cast<Code*>(to.data()), values.size());
  Encode(plan, DeviceSpan<const float>(values.data(), values.size()), codes, stream);
  return {codes.data(), codes.size()};
}

GemmOperand CopyOperand(const GemmOperand& x, bool encode, OffloadedOperand& to, Place place) {
  DeviceStream& stream = place.Stream();
  GemmOperand there = x;
  there.place = place;
  there.scales.data = CopyTo(to.scales, x.scales.data, stream);
  if (x.values.empty()) {
    there.codes8 = x.codes8.empty() ? x.codes8 : CopyCodes(to.codes, x.codes8, stream);
    there.codes16 = x.codes16.empty() ? x.codes16 : CopyCodes(to.codes, x.codes16, stream);
    return there;
  }
  there.values = CopyTo(to.values, x.values, stream);
  if (!encode) return there;
  if (x.format.StorageBytes() == 1) {
    there.codes8 = EncodeTo<uint8_t>(to.codes, x.format, there.values, stream);
  } else {
    there.codes16 = EncodeTo<uint16_t>(to.codes, x.format, there.values, stream);
  }
  there.values = {};
  return there;
}

// Copies the operands to the device, calls multiply(a, b, result) and copies the result to `out`.
template <typename T, class Multiply>
void RunOffloaded(const GemmOperand& a,
                  const GemmOperand& b,
                  bool encode,
                  std::span<T> out,
                  const Multiply& multiply) {
  CheckProduct(a, b, out.size());
  if (out.empty()) return;
  const Place place = ThreadPlace();
  auto& memory = place.Context().Get<OffloadedGemm>();
  const GemmOperand left = CopyOperand(a, encode, memory.a, place);
  const GemmOperand right = CopyOperand(b, encode, memory.b, place);
  memory.out.Reserve(out.size_bytes());
  const MatrixSpan<T> result(
      reinterpret_cast<T*>(memory.out.data()), MatrixShape{a.rows, b.rows}, place);
  multiply(left, right, result);
  CopyToHost(DeviceSpan<const T>(result.data, out.size()), out, place.Stream());
}

// Describes an operand as CopyOperand makes it, at addresses that are aligned.
GemmOperand Described(const GemmOperand& x, bool encode) {
  GemmOperand there = x;
  there.codes8 = {};
  there.codes16 = {};
  if (encode) there.values = {};
  return there;
}

}  // namespace

bool MultipliesOffloaded(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  if (mode.kind == AccumulationKind::kLibrary) return false;
  const bool encode = Encodes(a, b, mode);
  const MatrixSpan<float> result(nullptr, MatrixShape{a.rows, b.rows});
  switch (KernelAtPlace(Described(a, encode), Described(b, encode), mode, result)) {
    case PlaceKernel::kNone:
      return false;
    case PlaceKernel::kOrdered:
      return a.rows <= kMostOrderedRows;
    default:
      return true;
  }
}

void GemmOnDevice(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& mode,
                  std::span<float> out) {
  const auto multiply = [&](const auto& left, const auto& right, MatrixSpan<float> result) {
    GemmAtPlace(left, right, mode, result);
  };
  RunOffloaded(a, b, Encodes(a, b, mode), out, multiply);
}

bool MultipliesInt32Offloaded(size_t inner) { return inner <= kMostProductsOfAnyInt8; }

void GemmInt32OnDevice(const GemmOperand& a, const GemmOperand& b, std::span<int32_t> out) {
  const auto multiply = [](GemmOperand left, GemmOperand right, MatrixSpan<int32_t> result) {
    left.scales = right.scales = {};
    GemmInt32(ForTensorCores(left), ForTensorCores(right), result);
  };
  RunOffloaded(a, b, true, out, multiply);
}

}  // namespace numsim
