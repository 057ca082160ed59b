// GEMM on the device's tensor cores, in the order of the stream of the result's place. cuBLASLt's
// handle and workspace, and copies of operands, belong to that place's DeviceContext.
#pragma once

#include <cstdint>
#include <string_view>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/device.h"
#include "numsim/backend/matrix.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// An operand of a GEMM: `rows` vectors of length `inner`. Codes of int8 (two's complement), e4m3fn,
// e5m2, bf16 or fp16, row-major as rows x inner, or as inner x rows if `transposed`.
struct DeviceGemmOperand {
  FormatSpec format = {};
  const void* codes = nullptr;
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
  // One scale (size 1), one per row (size rows), or none (empty: all 1).
  DeviceSpan<const float> scales = {};
};

// The implementation that computes a GEMM.
enum class DeviceGemmEngine : uint8_t {
  kAuto,     // the faster one of those that support the GEMM
  kLibrary,  // cuBLASLt, followed by a numsim pass for what cuBLASLt's epilogue cannot do
  kOwn,      // numsim's kernel for Hopper's tensor cores, which scales and rounds in its store
};
// Returns auto, library or own.
std::string_view ToString(DeviceGemmEngine engine);
// Reads auto, library or own. Throws Error for any other text.
DeviceGemmEngine ParseDeviceGemmEngine(std::string_view text);

// The largest inner dimensions whose int8 sums fit int32: 127 * 127 * 133144 < 2^31 if no code is
// -128, and 128 * 128 * 131071 < 2^31 for any codes. The format leaves -128 unused, and quantising
// never produces it.
inline constexpr size_t kMostInt8Products = 133144;
inline constexpr size_t kMostProductsOfAnyInt8 = 131071;

// Returns true if this device computes GEMMs of formats `a` and `b` under `mode`.
// Bit for bit as the mode defines them:
//   int8 x int8              exact                        inner <= kMostInt8Products
//   fp8 x fp8                hopper-fp8-fast, hopper-fp8  on Hopper; not e5m2 x e5m2
//   bf16 x bf16, fp16 x fp16 hopper-bf16, hopper-fp16     on Hopper
// With whatever bits cuBLASLt gives: bf16 x bf16, fp16 x fp16 and fp8 x fp8 (not e5m2 x e5m2) under
// mode library.
bool MultipliesOnDevice(const FormatSpec& a, const FormatSpec& b, const AccumulationMode& mode);

// Tensor cores of Hopper add so many products of 8-bit codes, or a multiple, before scales of blocks
// are applied.
inline constexpr size_t kBlockProducts = 128;

// Returns true if tensor cores also serve scales that change after every `block` elements along the
// inner dimension (Gemm of gemm.h): those of Hopper for codes of 8 bits and blocks of multiples of
// kBlockProducts, except under mode library. A mode that promotes partial sums needs blocks of that
// length, which then do it. Requires formats and a mode of MultipliesOnDevice; asks no device.
inline bool TakesBlocks(const FormatSpec& a,
                        const FormatSpec& b,
                        const AccumulationMode& mode,
                        size_t block) {
  return a.StorageBytes() == 1 && b.StorageBytes() == 1 && block % kBlockProducts == 0 &&
         mode.kind != AccumulationKind::kLibrary &&
         (mode.promote == 0 || static_cast<size_t>(mode.promote) == block);
}

// Returns true if Gemm serves operands of these formats and sizes in that mode, with scales, at
// aligned addresses. False only where cuBLASLt has no algorithm (see Gemm). Requires
// MultipliesOnDevice; reads no codes.
bool ServesShape(const DeviceGemmOperand& a,
                 const DeviceGemmOperand& b,
                 const AccumulationMode& mode,
                 Place place);

// Writes out(i, j) = t, or t rounded to bf16 (nearest even): a.rows x b.rows, row-major. As in
// gemm.h, t = fl32(fl64(S * (sa * sb))), with S the sum under `mode`. Under mode
// library the order of the sum, the rounding of the scales and the NaN are cuBLASLt's.
// Requires equal inner, codes and out aligned to their element's size, and no overlap.
// A float32 NaN is NanResult(mode). A bf16 NaN is 0x7FC0, or 0x7FFF where cuBLASLt itself rounds to
// bf16, which it does if there are no scales. inner == 0 gives +0.
// Throws Error
// - if MultipliesOnDevice is false;
// - for int8 with inner > kMostInt8Products (if both operands hold -128, sums can already wrap
//   beyond kMostProductsOfAnyInt8);
// - if `engine` does not support the GEMM;
// - if cuBLASLt has no algorithm that leaves the inner dimension unsplit, as under hopper-fp8 with
//   few results and long sums (64 x 256 results of 8192 products, cuBLASLt 13.1).
// Cost: fastest with pointers aligned to 16 bytes and with inner and rows that are multiples of 16;
// other shapes are padded in a copy. Transposed 8-bit operands are first transposed in a copy.
void Gemm(const DeviceGemmOperand& a,
          const DeviceGemmOperand& b,
          const AccumulationMode& mode,
          MatrixSpan<float> out,
          DeviceGemmEngine engine = DeviceGemmEngine::kAuto);

// Writes the exact sums of int8 products as int32. Requires operands without scales. Throws Error
// if inner > kMostInt8Products.
void GemmInt32(const DeviceGemmOperand& a, const DeviceGemmOperand& b, MatrixSpan<int32_t> out);

// Returns the library's name and version: "cuBLASLt 13.1.0".
const char* DeviceGemmLibrary();

}  // namespace numsim
