// The GEMMs of a device's tensor cores, for choosing recipes and modes. Gemm (gemm.h) uses them.
#pragma once

#include <cstddef>
#include <string_view>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_spec.h"
#include "numsim/gemm/gemm.h"

namespace numsim {

// Returns auto, library or own.
std::string_view ToString(DeviceGemmEngine engine);
// Reads auto, library or own. Throws Error for any other text.
DeviceGemmEngine ParseDeviceGemmEngine(std::string_view text);

// The largest inner dimension for which int32 holds every sum of int8 products: 128 * 128 * 131071 <
// 2^31.
inline constexpr size_t kMostProductsOfAnyInt8 = 131071;

// Returns true if this device's tensor cores compute GEMMs of codes of formats `a` and `b` under
// `mode`, with no scales, one or one per row.
// Bit for bit as the mode defines them:
//   int8 x int8              exact                        inner <= kMostProductsOfAnyInt8
//   fp8 x fp8                hopper-fp8-fast, hopper-fp8  on Hopper; not e5m2 x e5m2
//   bf16 x bf16, fp16 x fp16 hopper-bf16, hopper-fp16, trunc:25,16,PROMOTE  on Hopper
// With whatever bits cuBLASLt gives (order of the sum, rounding of the scales, NaN): bf16 x bf16,
// fp16 x fp16 and fp8 x fp8 (not e5m2 x e5m2) under mode library.
bool MultipliesOnDevice(const FormatSpec& a, const FormatSpec& b, const AccumulationMode& mode);

// Tensor cores of Hopper add so many products of 8-bit codes, or a multiple, before scales of blocks
// are applied.
inline constexpr size_t kBlockProducts = 128;

// Returns true if tensor cores also serve scales that change after every `block` elements along the
// inner dimension: those of Hopper for codes of 8 bits and blocks of multiples of kBlockProducts,
// except under mode library. A mode that promotes partial sums needs blocks of that length, which
// then do it. Requires formats and a mode of MultipliesOnDevice; asks no device.
inline bool TakesBlocks(const FormatSpec& a,
                        const FormatSpec& b,
                        const AccumulationMode& mode,
                        size_t block) {
  return a.StorageBytes() == 1 && b.StorageBytes() == 1 && block % kBlockProducts == 0 &&
         mode.kind != AccumulationKind::kLibrary &&
         (mode.promote == 0 || static_cast<size_t>(mode.promote) == block);
}

// Returns true if Gemm serves codes of these formats and sizes in that mode, with scales, at aligned
// addresses of a place. False only where cuBLASLt has no algorithm (see Gemm). Requires
// MultipliesOnDevice; reads no codes, which may be left out.
bool ServesShape(const GemmOperand& a,
                 const GemmOperand& b,
                 const AccumulationMode& mode,
                 Place place);

// Returns the library's name and version: "cuBLASLt 13.1.0".
const char* DeviceGemmLibrary();

}  // namespace numsim
