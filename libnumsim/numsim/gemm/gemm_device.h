// Products on the device's tensor cores.
#pragma once

#include <cstdint>
#include <string_view>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// A factor: `rows` vectors of length `inner`. Codes of int8 (two's complement), e4m3fn, e5m2, bf16
// or fp16; row-major rows x inner, or inner x rows when `transposed`.
struct DeviceGemmOperand {
  FormatSpec format = {};
  const void* codes = nullptr;
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
  // One scale (size 1), one for each row (size rows), or none (all 1).
  DeviceSpan<const float> scales = {};
};

// What computes a product.
enum class DeviceGemmEngine : uint8_t {
  kAuto,     // the faster of those that serve it
  kLibrary,  // cuBLASLt, with a pass of our own for what its epilogue cannot do
  kOwn,      // our own kernel for Hopper's tensor cores, scales and rounding in its store
};
// auto, library, own.
std::string_view ToString(DeviceGemmEngine engine);
DeviceGemmEngine ParseDeviceGemmEngine(std::string_view text);

// Memory of products: what cuBLASLt works in, sums of int8 before they are scaled, transposed or
// padded copies of operands. Also the library's handle and the plans that it chose. Keeps what it
// had; one for each stream.
class DeviceGemmScratch {
 public:
  DeviceGemmScratch();
  ~DeviceGemmScratch();
  DeviceGemmScratch(const DeviceGemmScratch&) = delete;
  DeviceGemmScratch& operator=(const DeviceGemmScratch&) = delete;

  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  Parts* parts_;
};

// The largest inner dimension whose sums of int8 fit int32: 127 * 127 * 133144 < 2^31. Of codes
// that may be -128, which the format leaves unused and quantising never makes, 128 * 128 * 131071
// is.
inline constexpr size_t kMostInt8Products = 133144;
inline constexpr size_t kMostProductsOfAnyInt8 = 131071;

// Whether this device computes products of those formats under that rule bit for bit:
//   int8 x int8              exact                        inner <= kMostInt8Products
//   fp8 x fp8                hopper-fp8-fast, hopper-fp8     on Hopper; not e5m2 x e5m2
//   bf16 x bf16, fp16 x fp16 hopper-bf16, hopper-fp16        on Hopper
// and, with bits of the library's own, bf16, fp16 or fp8 under rule library.
bool MultipliesOnDevice(const FormatSpec& a, const FormatSpec& b, const AccumulationMode& rule);

// out(i, j) = t, or bf16 of t (nearest even), with t = fl32(fl64(S * (sa * sb))) as in gemm.h and S
// the sum under `rule`. a.rows x b.rows, row-major. A float32 NaN is NanResult(rule), a bf16 one
// 0x7FC0, or 0x7FFF where cuBLASLt rounds to bf16 itself: without scales. Rule library: the order
// of the sum, the rounding of the scales and the NaN are those of cuBLASLt. Requires equal inner;
// codes and out aligned to their element's size, fastest at 16 bytes; no overlap. Any shape: the
// fast paths need inner and rows that are multiples of 16, other shapes are padded in a copy.
// Operands of 8 bits that are transposed are transposed in a copy. inner == 0 gives +0. Throws
// Error where MultipliesOnDevice is false, for int8 with inner > kMostInt8Products (codes of -128
// on both sides wrap beyond kMostProductsOfAnyInt8), where `engine` does not serve the product, and
// where cuBLASLt has no algorithm without a split of the inner dimension: hopper-fp8 with few
// results and long sums (64 x 256 results of 8192 products, cuBLASLt 13.1).
void Gemm(const DeviceGemmOperand& a,
          const DeviceGemmOperand& b,
          const AccumulationMode& rule,
          const MutableDeviceMatrix& out,
          DeviceGemmScratch& scratch,
          DeviceStream& stream,
          DeviceGemmEngine engine = DeviceGemmEngine::kAuto);

// The exact sums of int8 as int32. Throws Error for inner > kMostInt8Products. Requires no scales.
void GemmInt32(const DeviceGemmOperand& a,
               const DeviceGemmOperand& b,
               DeviceSpan<int32_t> out,
               DeviceGemmScratch& scratch,
               DeviceStream& stream);

// Of the library: "cuBLASLt 13.1.0".
const char* DeviceGemmLibrary();

}  // namespace numsim
