#include "numsim/gemm/internal/gemm_tensor_cores_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "numsim/backend/device_context.h"
#include "numsim/base/require.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_library_device.h"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "numsim/gemm/internal/gemm_store_device.h"

namespace numsim {
namespace {

constexpr std::string_view kEngineNames[] = {"auto", "library", "own"};

// cuBLASLt has no int8 algorithm for fewer rows.
constexpr size_t kLeastInt8Rows = 32;

bool IsFloat8(const FormatSpec& format) { return format == kE4M3fn || format == kE5M2; }

bool AreInt8(const FormatSpec& a, const FormatSpec& b) { return a == kInt8 && b == kInt8; }

// True for a pair of fp8 formats that Hopper's tensor cores multiply.
bool AreFloat8(const FormatSpec& a, const FormatSpec& b) {
  return IsFloat8(a) && IsFloat8(b) && !(a == kE5M2 && b == kE5M2);
}

const AccumulationMode& HopperFp8Fast() {
  static const AccumulationMode mode = ParseAccumulationMode("hopper-fp8-fast");
  return mode;
}
const AccumulationMode& HopperFp8() {
  static const AccumulationMode mode = ParseAccumulationMode("hopper-fp8");
  return mode;
}

// True for hopper-bf16, which hopper-fp16 is too, and for the same with sums in parts of any length.
bool IsHopper16(const AccumulationMode& mode) {
  static const AccumulationMode unsplit = ParseAccumulationMode("hopper-bf16");
  AccumulationMode without_parts = mode;
  without_parts.promote = 0;
  return without_parts == unsplit;
}

bool IsLibrary(const AccumulationMode& mode) { return mode.kind == AccumulationKind::kLibrary; }

}  // namespace

namespace cuda {
namespace {

size_t RowsForLibrary(const GemmOperand& x) {
  const size_t rows = RoundedUp(x.rows);
  return x.format == kInt8 ? std::max(rows, kLeastInt8Rows) : rows;
}

// A GEMM of prepared operands.
struct LibraryProblem {
  GemmOperand a, b;
  bool padded;  // the result has more rows or columns than were asked for
};

LibraryProblem PreparedForLibrary(const GemmOperand& a,
                                  const GemmOperand& b,
                                  GemmScratch& parts,
                                  DeviceStream& stream) {
  const size_t rows_a = RowsForLibrary(a), rows_b = RowsForLibrary(b), inner = RoundedUp(a.inner);
  const bool turned = a.format.StorageBytes() == 1;
  return {Prepared(a, rows_a, inner, turned, parts.a, stream),
          Prepared(b, rows_b, inner, turned, parts.b, stream),
          rows_a != a.rows || rows_b != b.rows};
}

void MultiplyOrThrow(const LibraryProblem& p,
                     const LibraryOptions& options,
                     void* out,
                     const AccumulationMode& mode,
                     GemmScratch& parts,
                     DeviceStream& stream) {
  if (!parts.library.Multiply(p.a, p.b, options, out, stream)) {
    throw Error::Format("{} has no algorithm for {}", DeviceGemmLibrary(), TextOf(p.a, p.b, mode));
  }
}

LibraryOptions OptionsOf(const GemmOperand& a, const AccumulationMode& mode) {
  LibraryOptions options;
  options.result = a.format == kInt8 ? LibraryResult::kInt32 : LibraryResult::kFloat32;
  options.fast_accumulation = IsFloat8(a.format) && mode != HopperFp8();
  options.ordered = !IsLibrary(mode);
  return options;
}

bool IsScaled(const GemmOperand& a, const GemmOperand& b) {
  return !a.scales.data.Empty() || !b.scales.data.Empty();
}

// Returns the products of a part if the sum of the GEMM is that of several parts, else 0. (What mode
// hopper-fp8 promotes, tensor cores add by themselves.)
size_t PartLength(const GemmOperand& a, const AccumulationMode& mode) {
  const auto length = static_cast<size_t>(mode.promote);
  return a.format.StorageBytes() == 2 && length < a.inner ? length : 0;
}

// Returns how many parts of prepared operands have their sums in memory at once.
size_t SlotsOf(const GemmOperand& a, const GemmOperand& b, size_t length) {
  return PartSlots(a.inner, length, sizeof(float) * a.rows * b.rows);
}

// Lets cuBLASLt compute the GEMM straight into `out`. Returns false, having done nothing, if a
// numsim pass has to follow or cuBLASLt has no algorithm.
bool MultipliesInOne(const LibraryProblem& p,
                     LibraryOptions options,
                     const AccumulationMode& mode,
                     FloatSpan out,
                     GemmScratch& parts,
                     DeviceStream& stream) {
  if (p.padded || !IsAligned(out.data) || options.result == LibraryResult::kInt32) return false;
  if (IsScaled(p.a, p.b)) {
    // cuBLASLt rounds scales in its own way, which only mode library allows. It takes either one
    // scale per operand or one per row for both operands.
    const bool rows_a = ScalesOfRows(p.a) > 1, rows_b = ScalesOfRows(p.b) > 1;
    if (!IsLibrary(mode) || !IsFloat8(p.a.format) || rows_a != rows_b) return false;
    options.scales = true;
  }
  const bool bf16 = out.element == Element::kBfloat16;
  options.result = bf16 ? LibraryResult::kBfloat16 : LibraryResult::kFloat32;
  return parts.library.Multiply(p.a, p.b, options, out.data, stream);
}

// Multiplies parts of the inner dimension, each as if it were all of it, and adds their sums in order.
void MultiplyInParts(const LibraryProblem& p,
                     size_t length,
                     const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     FloatSpan out) {
  auto& scratch = out.place.Context().Get<GemmScratch>();
  DeviceStream& stream = out.place.Stream();
  const float nan = std::bit_cast<float>(NanResult(mode));
  const MatrixShape shape = {p.a.rows, p.b.rows};
  const size_t slots = SlotsOf(p.a, p.b, length);
  scratch.sums.Renew(sizeof(float) * slots * shape.Elements());
  auto* const sums = reinterpret_cast<float*>(scratch.sums.View().data);
  LibraryOptions options = OptionsOf(a, mode);
  const auto multiply = [&](const InnerParts& parts, size_t slot) {
    options.parts = parts;
    MultiplyOrThrow(p, options, sums + slot * shape.Elements(), mode, scratch, stream);
  };
  const auto add = [&](size_t count, bool last) {
    const DeviceSums parts = {sums, SumType::kFloat32, shape.cols, count, shape.Elements()};
    if (last) return StoreScaled(parts, a, b, nan, out);
    const FloatSpan first(sums, shape, out.place, Element::kFloat32);
    StoreScaled(parts, GemmOperand{}, GemmOperand{}, nan, first);
  };
  CoverInParts(p.a.inner, length, slots, multiply, add);
}

}  // namespace

std::string TextOf(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  return fmt::format("{} {} x {} times {} {} x {} under mode {}",
                     ToString(a.format),
                     a.rows,
                     a.inner,
                     ToString(b.format),
                     b.inner,
                     b.rows,
                     ToString(mode));
}

void RequireAligned(const GemmOperand& x) {
  const size_t n = x.rows * x.inner;
  const auto address = reinterpret_cast<uintptr_t>(x.data());
  const size_t bytes = x.IsCodes() ? static_cast<size_t>(x.format.StorageBytes()) : sizeof(float);
  NUMSIM_REQUIRE(n == 0 || (address != 0 && address % bytes == 0),
                 "Gemm: {} elements at {:#x}, expected an address aligned to their {} bytes",
                 n,
                 address,
                 bytes);
}

void MultiplyByLibrary(const GemmOperand& a,
                       const GemmOperand& b,
                       const AccumulationMode& mode,
                       FloatSpan out) {
  auto& parts = out.place.Context().Get<GemmScratch>();
  DeviceStream& stream = out.place.Stream();
  const LibraryProblem p = PreparedForLibrary(a, b, parts, stream);
  if (const size_t length = PartLength(a, mode); length != 0) {
    return MultiplyInParts(p, length, a, b, mode, out);
  }
  const LibraryOptions options = OptionsOf(a, mode);
  if (MultipliesInOne(p, options, mode, out, parts, stream)) return;
  const bool integers = options.result == LibraryResult::kInt32;
  const bool in_place =
      !p.padded && !integers && out.element == Element::kFloat32 && IsAligned(out.data);
  if (!in_place) parts.sums.Renew(p.a.rows * p.b.rows * BytesOf(options.result));
  void* const sums = in_place ? out.data : parts.sums.View().data;
  MultiplyOrThrow(p, options, sums, mode, parts, stream);
  const SumType type = integers ? SumType::kInt32 : SumType::kFloat32;
  const float nan = std::bit_cast<float>(NanResult(mode));
  StoreScaled({sums, type, p.b.rows}, a, b, nan, out);
}

bool ServesOwn(const GemmOperand& a,
               const GemmOperand& b,
               const AccumulationMode& mode,
               FloatSpan out) {
  const bool follows = a.format == kInt8 || mode == HopperFp8Fast();
  return follows && ServesHopperPrepared(a, b, out);
}

// True if numsim's own kernel is the faster one: for int8 always, for fp8 if cuBLASLt would need
// another pass for the scales. Requires ServesOwn.
bool PrefersOwn(const GemmOperand& a, const GemmOperand& b) {
  return a.format == kInt8 || IsScaled(a, b);
}

void MultiplyInt32ByLibrary(const GemmOperand& a, const GemmOperand& b, MatrixSpan<int32_t> out) {
  const AccumulationMode exact{};
  auto& parts = out.place.Context().Get<GemmScratch>();
  DeviceStream& stream = out.place.Stream();
  const LibraryProblem p = PreparedForLibrary(a, b, parts, stream);
  const bool direct = !p.padded && IsAligned(out.data);
  if (!direct) parts.sums.Renew(4 * p.a.rows * p.b.rows);
  void* const sums = direct ? static_cast<void*>(out.data) : parts.sums.View().data;
  MultiplyOrThrow(p, OptionsOf(a, exact), sums, exact, parts, stream);
  if (!direct) CopyRows(sums, 4 * p.b.rows, out.data, 4 * b.rows, 4 * b.rows, a.rows, stream);
}

}  // namespace cuda

std::string_view ToString(DeviceGemmEngine engine) {
  return kEngineNames[static_cast<size_t>(engine)];
}

DeviceGemmEngine ParseDeviceGemmEngine(std::string_view text) {
  for (size_t i = 0; i < std::size(kEngineNames); ++i) {
    if (kEngineNames[i] == text) return static_cast<DeviceGemmEngine>(i);
  }
  throw Error::Format("unknown engine '{}': expected auto, library or own", text);
}

bool MultipliesOnDevice(const FormatSpec& a, const FormatSpec& b, const AccumulationMode& mode) {
  const bool wide = a == b && (a == kBf16 || a == kFp16);
  if (AreInt8(a, b)) return mode.kind == AccumulationKind::kExact;
  if (IsLibrary(mode)) return wide || AreFloat8(a, b);
  if (!Device().IsHopper()) return false;
  if (wide) return IsHopper16(mode);
  return AreFloat8(a, b) && (mode == HopperFp8Fast() || mode == HopperFp8());
}

bool ServesShape(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& mode,
                 Place place) {
  if (a.rows == 0 || b.rows == 0 || a.inner == 0) return true;
  void* const aligned = reinterpret_cast<void*>(uintptr_t{1} << 20);
  const FloatSpan out(aligned, {a.rows, b.rows}, place, Element::kFloat32);
  if (cuda::ServesOwn(a, b, mode, out)) return true;
  // The sizes and orders that Prepared would give.
  const auto prepared = [&](const GemmOperand& x) {
    const bool transposed = x.transposed && x.format.StorageBytes() != 1;
    return cuda::WithCodes(
        x, aligned, cuda::RowsForLibrary(x), cuda::RoundedUp(x.inner), transposed, place);
  };
  const GemmOperand left = prepared(a), right = prepared(b);
  cuda::DeviceLibrary& library = place.Context().Get<cuda::GemmScratch>().library;
  cuda::LibraryOptions options = cuda::OptionsOf(a, mode);
  bool serves = true;
  const auto check = [&](const cuda::InnerParts& parts, size_t) {
    options.parts = parts;
    serves = serves && library.Describe(left, right, options, aligned) != "none";
  };
  if (const size_t length = cuda::PartLength(a, mode); length != 0) {
    const auto add = [](size_t, bool) {};
    cuda::CoverInParts(left.inner, length, cuda::SlotsOf(left, right, length), check, add);
  } else {
    check({}, 0);
  }
  return serves;
}

}  // namespace numsim
