// How the products of an inner product are added up: accumulation modes by name.
//
// The products a[k] b[k] are exact. Every sum begins with +0, so zeros alone give +0; k ascends
// unless stated. All roundings are to nearest, ties to even, unless stated; overflow gives
// infinity.
//
//   exact                    the exact sum, rounded once
//   fp64                     acc = fl64(acc + a b)
//   FORMAT                   acc = round(acc + a b) in FORMAT, one rounding: a fused multiply-add
//   FORMAT:unfused           acc = round(acc + round(a b)), both in FORMAT
//   fp32-chunked:N           rule fp32 within each N products, from zero; the partial sums are
//                            added in float32 in order, to +0 at first
//   trunc:F,CHUNK[,PROMOTE]  a tensor core that aligns and truncates, see kAligned below; with
//                            PROMOTE as under fp32-chunked, PROMOTE products at a time
//   library                  float32 by a linear algebra library: fast, order not stated, bits may
//                            differ between machines
//   NAME                     a row of AccumulationModeTable(): what a device was measured or reported
//                            to do
//
// NaN results are one NaN for each rule, NanResult().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

enum class AccumulationKind : uint8_t {
  kExact,
  kFloat64,
  kFormat,
  kFormatUnfused,
  kChunked,
  kAligned,       // NVIDIA's tensor cores
  kExactChunks,   // CDNA1
  kFlushedPairs,  // CDNA2
  kAlignedDown,   // CDNA3
  kLibrary,
};

// The order in which kAligned and kAlignedDown take products.
enum class ProductOrder : uint8_t {
  kAscending,
  kBytePairs,  // of every 32: those with k mod 4 in {0, 1}, then the others (mma.sync, 8 bits)
  kEvenOdd,    // within a chunk even k and odd k are two sums (CDNA3, 8 bits); kAlignedDown alone
};

struct AccumulationMode {
  // A chunk of at most kMaxChunk products with F <= kMaxFractionBits adds up in 64-bit integers.
  static constexpr int kMaxChunk = 1 << 16;
  static constexpr int kMaxFractionBits = 40;
  static constexpr int kMaxInterval = 1 << 30;  // of promotion, and N of fp32-chunked

  AccumulationKind kind = AccumulationKind::kExact;
  FormatSpec format{};    // of kFormat and kFormatUnfused
  int chunk = 0;          // >= 1: of all kinds from kChunked on but kLibrary
  int fraction_bits = 0;  // F of kAligned and kAlignedDown, >= 1
  int promote = 0;        // kAligned: 0 never, else a multiple of chunk
  ProductOrder order = ProductOrder::kAscending;

  friend bool operator==(const AccumulationMode&, const AccumulationMode&) = default;
};

// Tensor cores take `chunk` products at a time; the accumulator is a float32 that begins as +0.
// Where products are missing at the end, of a chunk or of the 32 of kBytePairs, +0 stands for them.
//
// kAligned, one chunk [Hopper-measured], [MMA-Sim]: a product has the exponent e = ea + eb, where
// the exponent of a normal operand is floor(log2 |x|) and of a subnormal one its format's
// MinExponent(), so |a b| < 4 * 2^e. E is the largest of the exponents of the chunk's nonzero
// products, of the accumulator's if it is not zero (at least -126), and of -133. Each product and
// the accumulator are truncated toward zero to a multiple of 2^(E - F) and added exactly. The sum
// is truncated toward zero to min(F, 23) fraction bits of its own exponent, a float32; below 2^-126
// to a multiple of 2^-149. A zero is +0, also of a truncated negative sum. Beyond float32:
// infinity. (The -133 is an H200's; [MMA-Sim] has -126 instead wherever there is a zero.)
//
// kExactChunks [MMA-Sim]: acc = fl32(acc + the exact sum of the chunk).
//
// kFlushedPairs [MMA-Sim]: every step is a float32 operation whose result, where it is below 2^-126
// after rounding, becomes a zero of its sign. Operands below their format's smallest normal, and a
// zero or subnormal acc, become +0. Of two: acc = acc + (p0 + p1); of four: acc + ((p0 + p1) +
// (p2 + p3)). The chunk is a power of two.
//
// kAlignedDown [MMA-Sim], with exponents as under kAligned but -126 for zero and at least -126 for
// acc: products are truncated toward zero to F fraction bits below the largest product's exponent
// and added. Under kEvenOdd these are two sums, each rounded down to a multiple of 2^(e - F) where
// e is the larger of their exponents, and added. With E the larger of the products' exponent and
// acc's, the sum is rounded down to a multiple of 2^(E - F - 7) and acc to one of 2^(E - F) (under
// kEvenOdd acc counts as zero below exponent E - F - 1); their sum is rounded to float32. Products
// of 2^128 and beyond are infinite. An exact zero is +0.
//
// Special operands, any kind: a NaN, infinity times zero, or infinities of both signs among
// products and accumulator give NaN; else an infinite product gives infinity. (kFormat and
// kFormatUnfused: what the format has for them.)

// A rule that a device was found to follow.
struct AccumulationModeRow {
  std::string_view name;
  AccumulationMode rule;
  std::string_view operands;  // formats of the operands, for reading: "e4m3fn, e5m2"
  bool measured;              // bit for bit on a device by this project; else reported by others
  std::string_view source;    // key of docs/references.md
  std::string_view note;      // one line
};
std::span<const AccumulationModeRow> AccumulationModeTable();

// Reads any of the texts above. Throws Error that names what was expected.
AccumulationMode ParseAccumulationMode(std::string_view text);
// The first name of the table that is this rule, else DefinitionText; ParseAccumulationMode(ToString(r)) == r for
// what ParseAccumulationMode gave.
std::string ToString(const AccumulationMode& rule);
// The rule without the names of the table: a text from above, or words where there is none.
std::string DefinitionText(const AccumulationMode& rule);

// One side of an inner product: float32 values on the grid of `format` (it matters for the exponent
// of subnormals alone).
struct DotOperand {
  const FormatSpec& format;
  std::span<const float> values;
};

// The accumulator after all products: the definition that Gemm must equal bit for bit. For
// kExact the exact sum rounded to odd (Unrounded); otherwise exact in float64 (kFloat64) or
// float32. A NaN is positive. Requires values of equal size, and not kLibrary.
Unrounded Accumulate(const AccumulationMode& rule,
                     const DotOperand& a,
                     const DotOperand& b) noexcept;

// The bits of a float32 NaN result of `rule`: 0x7FFFFFFF for NVIDIA's units (kAligned), else
// 0x7FC00000.
uint32_t NanResult(const AccumulationMode& rule);

}  // namespace numsim
