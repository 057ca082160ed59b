#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "numsim/backend/device.h"
#include "numsim/backend/device_context.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/mma_probe/internal/mma_units_device.h"
#include "numsim/mma_probe/tensor_core.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// Number of rows of a library GEMM. Rows beyond kProbeRows are zeros; the library uses different
// kernels for smaller GEMMs.
constexpr size_t kLibraryRows = 64;
constexpr size_t kStepBytes = 32;

// Returns the codes of `values` in the device's byte layout; formats of 32 bits are stored as
// float32. The result has `rows` rows; rows beyond those of `values` are zeros.
std::vector<uint8_t> Codes(const FormatSpec& format,
                           std::span<const float> values,
                           size_t rows,
                           size_t inner) {
  const size_t bytes = static_cast<size_t>(format.StorageBytes());
  const EncodePlan plan = MakeEncodePlan(format);
  std::vector<uint8_t> codes(rows * inner * bytes, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t code = bytes == 4 ? bits : EncodeF32(plan, bits, 0);
    for (size_t byte = 0; byte < bytes; ++byte) {
      codes[i * bytes + byte] = static_cast<uint8_t>(code >> (8 * byte));
    }
  }
  return codes;
}

// Operands and results on the device, reused for every matmul.
struct Arrays {
  Buffer<uint8_t> a{ThreadPlace()}, b{ThreadPlace()};
  Buffer<float> out{ThreadPlace()};

  // Returns the codes of the values, of `rows` rows, in `to`.
  static MatrixSpan<const uint8_t> Put(const FormatSpec& format,
                                       std::span<const float> values,
                                       size_t rows,
                                       size_t inner,
                                       Buffer<uint8_t>& to) {
    const std::vector<uint8_t> codes = Codes(format, values, rows, inner);
    CopyMatrix<uint8_t>(codes, to.Renew(codes.size()));
    return to.View();
  }

  // Copies the upper left kProbeRows x kProbeRows part of a rows x rows result to `part`.
  void Get(size_t rows, std::span<float> part) const {
    const std::vector<float> whole = ToVector(out.View());
    for (size_t i = 0; i < kProbeRows; ++i) {
      const auto row = whole.begin() + static_cast<std::ptrdiff_t>(i * rows);
      std::copy_n(row, kProbeRows, part.begin() + static_cast<std::ptrdiff_t>(i * kProbeRows));
    }
  }
};

DeviceUnit InstructionUnit(const MmaUnit& unit) {
  TensorCore asked{.name = std::string(unit.name),
                   .a = unit.a,
                   .b = unit.b,
                   .inner_step = unit.InnerStep(),
                   .multiply = {}};
  asked.multiply =
      [unit, arrays = std::make_shared<Arrays>()](
          std::span<const float> a, std::span<const float> b, size_t inner, std::span<float> out) {
        MultiplyByUnit(unit,
                       Arrays::Put(unit.a, a, kProbeRows, inner, arrays->a),
                       Arrays::Put(unit.b, b, kProbeRows, inner, arrays->b),
                       kProbeRows,
                       kProbeRows,
                       inner,
                       arrays->out.Renew(kProbeRows, kProbeRows));
        arrays->Get(kProbeRows, out);
      };
  return {asked, MmaUnavailable(unit)};
}

// Returns the device's GEMM library, called with `mode`.
DeviceUnit LibraryUnit(const FormatSpec& a,
                       const FormatSpec& b,
                       const AccumulationMode& mode,
                       const char* variant) {
  TensorCore asked{
      .name = fmt::format("{} {} x {}{}", DeviceGemmLibrary(), ToString(a), ToString(b), variant),
      .a = a,
      .b = b,
      .inner_step = kStepBytes / static_cast<size_t>(a.StorageBytes()),
      .multiply = {}};
  asked.multiply = [a, b, mode, arrays = std::make_shared<Arrays>()](std::span<const float> left,
                                                                     std::span<const float> right,
                                                                     size_t inner,
                                                                     std::span<float> out) {
    constexpr size_t kRows = kLibraryRows;
    const auto operand = [&](const FormatSpec& format, MatrixSpan<const uint8_t> codes) {
      GemmOperand x{.format = format, .rows = kRows, .inner = inner};
      if (format.StorageBytes() == 1) {
        x.codes8 = codes;
      } else {
        x.codes16 = {reinterpret_cast<const uint16_t*>(codes.data), {kRows, inner}, codes.place};
      }
      return x;
    };
    Gemm(operand(a, Arrays::Put(a, left, kRows, inner, arrays->a)),
         operand(b, Arrays::Put(b, right, kRows, inner, arrays->b)),
         mode,
         arrays->out.Renew(kRows, kRows),
         DeviceGemmEngine::kLibrary);
    arrays->Get(kRows, out);
  };
  const bool served = MultipliesOnDevice(a, b, mode);
  return {asked, served ? "" : "the library does not support these operands on this device"};
}

// Returns the mode of that name if the device has it, which also prevents the library from splitting the
// inner dimension; else mode library.
AccumulationMode ModeFor(const char* mode, const FormatSpec& a, const FormatSpec& b) {
  const AccumulationMode wanted = ParseAccumulationMode(mode);
  return MultipliesOnDevice(a, b, wanted) ? wanted : ParseAccumulationMode("library");
}

}  // namespace

std::vector<DeviceUnit> DeviceUnits() {
  std::vector<DeviceUnit> units;
  for (const MmaUnit& unit : MmaUnits()) units.push_back(InstructionUnit(unit));
  const auto add = [&](const char* a, const char* b, const char* mode, const char* variant) {
    const FormatSpec format_a = ParseFormat(a).spec, format_b = ParseFormat(b).spec;
    const AccumulationMode asked = ModeFor(mode, format_a, format_b);
    units.push_back(LibraryUnit(format_a, format_b, asked, variant));
  };
  add("bf16", "bf16", "hopper-bf16", "");
  add("fp16", "fp16", "hopper-fp16", "");
  add("int8", "int8", "exact", "");
  constexpr const char* kPairs[][2] = {
      {"e4m3fn", "e4m3fn"}, {"e4m3fn", "e5m2"}, {"e5m2", "e4m3fn"}};
  for (const auto& pair : kPairs) {
    add(pair[0], pair[1], "hopper-fp8-fast", ", fast accumulation");
    add(pair[0], pair[1], "hopper-fp8", ", slow accumulation");
  }
  return units;
}

}  // namespace numsim
