// Accumulation modes: named definitions of how the products of a dot product are summed.
//
// The products a[k] b[k] are exact. Every sum begins with +0, so that a sum of zeros is +0. Unless
// stated otherwise, k ascends and all roundings are to nearest, ties to even. Overflow gives
// infinity.
//
//   exact                    the exact sum, rounded once
//   fp64                     acc = fl64(acc + a b)
//   FORMAT                   acc = round(acc + a b) in FORMAT, one rounding: a fused multiply-add
//   FORMAT:unfused           acc = round(acc + round(a b)), both in FORMAT
//   fp32-chunked:N           each N products are summed from zero in mode fp32; the partial sums
//                            are added in float32 in order, starting from +0
//   trunc:F,CHUNK[,PROMOTE]  a tensor core that aligns and truncates, see kAligned below; with
//                            PROMOTE, each PROMOTE products are summed from zero and the partial
//                            sums are added in float32, as in fp32-chunked
//   mxf8f6f4, mxf4, mxf4nvf4 block-scaled tensor cores: the scales of blocks enter the sum, see
//                            kBlockScaled below
//   library                  float32 by a linear algebra library: fast, unspecified order; the bits
//                            may differ between machines
//   NAME                     a row of AccumulationModeTable(): the measured or reported behaviour
//                            of a device
//
// Each mode has only one NaN result, NanResult().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// The kinds of accumulation modes; DefinitionText says in words what each computes.
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
  kBlockScaled,   // NVIDIA's tensor cores that take scales of blocks
  kLibrary,
};

// The order in which kAligned and kAlignedDown add the products.
enum class ProductOrder : uint8_t {
  kAscending,
  kBytePairs,  // in every 32: those with k mod 4 in {0, 1}, then the others (mma.sync, 8 bits)
  kEvenOdd,    // even and odd k of a chunk are two sums (CDNA3, 8 bits); only for kAlignedDown
};

// An accumulation mode as data: its kind and the parameters of that kind.
struct AccumulationMode {
  // The sum of at most kMaxChunk products with F <= kMaxFractionBits fits into a 64-bit integer.
  static constexpr int kMaxChunk = 1 << 16;
  static constexpr int kMaxFractionBits = 40;
  static constexpr int kMaxInterval = 1 << 30;  // limit of PROMOTE and of N of fp32-chunked

  AccumulationKind kind = AccumulationKind::kExact;
  FormatSpec format{};    // for kFormat and kFormatUnfused; for kBlockScaled, of the scales
  int chunk = 0;          // for kChunked and all later kinds except kLibrary: >= 1
  int fraction_bits = 0;  // F, for kAligned, kAlignedDown and kBlockScaled: >= 1
  int promote = 0;        // for kAligned: a multiple of chunk, or 0 for no promotion
  int group = 0;          // for kBlockScaled: a divisor of chunk, or 0 for no groups
  ProductOrder order = ProductOrder::kAscending;

  friend bool operator==(const AccumulationMode&, const AccumulationMode&) = default;
};

// Returns true for the modes fp32, fp64 and fp32-chunked, which add one product after another in
// float32 or float64. A device has them for operands of every format, beside its tensor cores.
bool IsOrderedMode(const AccumulationMode& mode);

// Returns true for the modes of kind kBlockScaled.
constexpr bool IsBlockScaled(const AccumulationMode& mode) {
  return mode.kind == AccumulationKind::kBlockScaled;
}

// Returns the least number of consecutive products that share their scales in a block-scaled unit: the
// group, or the chunk if there are no groups.
constexpr int LeastBlock(const AccumulationMode& mode) {
  return mode.group != 0 ? mode.group : mode.chunk;
}

// Tensor cores add `chunk` products at a time to acc, a float32 accumulator that begins as +0. An
// incomplete chunk at the end, or an incomplete group of 32 of kBytePairs, is padded with +0.
//
// kAligned, one chunk [Hopper-measured], [MMA-Sim]: the exponent of a product is e = ea + eb. Here
// the exponent of a normal operand is floor(log2 |x|) and that of a subnormal operand is its
// format's MinExponent(), so |a b| < 4 * 2^e. E is the largest of: the exponents of the chunk's
// nonzero products; the exponent of acc if it is not zero (at least -126); and -133. Each product
// and acc are truncated toward zero to a multiple of 2^(E - F) and added exactly. The sum is
// truncated toward zero to a float32 with min(F, 23) fraction bits of its own exponent; below
// 2^-126, to a multiple of 2^-149. A zero result is +0, even if a negative sum was truncated to it.
// A sum beyond float32 gives infinity. (-133 was measured on an H200; [MMA-Sim] has -126 instead
// wherever there is a zero.)
//
// kExactChunks [MMA-Sim]: acc = fl32(acc + the exact sum of the chunk).
//
// kFlushedPairs [MMA-Sim]: every step is a float32 operation. If its result is below 2^-126 after
// rounding, it becomes a zero of the same sign. Operands below their format's smallest normal, and
// a zero or subnormal acc, become +0. A chunk of two: acc = acc + (p0 + p1). A chunk of four:
// acc = acc + ((p0 + p1) + (p2 + p3)). The chunk is a power of two.
//
// kAlignedDown [MMA-Sim]: exponents are as for kAligned, except that zero has the exponent -126;
// that of acc is at least -126. The products are truncated toward zero to F fraction bits below the
// largest exponent of a product, and added. In order kEvenOdd there are two such sums; with e the
// larger of their exponents, each is rounded down to a multiple of 2^(e - F), and the two are
// added. With E the larger of the products' exponent and that of acc, the sum is rounded down to a
// multiple of 2^(E - F - 7) and acc is rounded down to a multiple of 2^(E - F). (In order kEvenOdd,
// an acc with an exponent below E - F - 1 counts as zero.) The sum of the two is rounded to
// float32. Products of 2^128 and beyond are infinite. An exact zero is +0.
//
// kBlockScaled [MMA-Sim]: the scales sa and sb of a product are numbers of `format` (e8m0fnu or
// ue4m3fn), whose exponents es are as those of operands: a subnormal scale has MinExponent().
// Without groups, a chunk is added as under kAligned, where product and scales are one exact number
// a b sa sb with the exponent e = ea + eb + esa + esb. With groups, the exact sum of the products of
// a group, times its sa and sb, takes the place of a product, and its exponent is esa + esb, also if
// the sum is zero; a group with a scale of zero has none. Operands are then of e2m1fn. A NaN scale
// gives NaN. A group without products does not count. ([MMA-Sim] has -126 in place of -133, and lets
// zero products count with an exponent.)
//
// Special operands, any kind: a NaN, infinity times zero, or infinities of both signs among the
// products and the accumulator give NaN. Otherwise an infinite product gives infinity. (kFormat and
// kFormatUnfused give what the format has in place of these, if it lacks them.)

// A named accumulation mode: the behaviour of a device.
struct AccumulationModeRow {
  std::string_view name;
  AccumulationMode mode;
  std::string_view operands;  // names of the formats that it is for: "e4m3fn, e5m2"; see IsFor()
  bool measured;              // by this project on a device, bit for bit; else reported by others
  size_t measured_inner;    // longest inner dimension that was compared; 0 if not measured. Beyond
                            // it, a library may split the inner dimension: see `note`
  std::string_view source;  // key of docs/references.md
  std::string_view note;    // one line
};
// Returns the named accumulation modes, in the order of `numsim oracle accumulation-modes`.
std::span<const AccumulationModeRow> AccumulationModeTable();

// Returns the row with that name, or nullptr if `text` is no name of the table.
const AccumulationModeRow* FindAccumulationMode(std::string_view text);

// Returns true if the device of the row takes operands of `format`.
bool IsFor(const AccumulationModeRow& row, const FormatSpec& format);

// Throws Error if `text` is the name of a mode that is not for operands of the formats `a` and `b`.
// All other texts ("exact", "fp32", "trunc:13,32") are for all formats. The message names the mode,
// the formats, `permission` (a clause such as "--any-operands allows it") and, last, the names of
// the modes that are for these formats.
void CheckOperands(std::string_view text,
                   const FormatSpec& a,
                   const FormatSpec& b,
                   std::string_view permission);

// Parses any of the texts above. Throws Error that names what was expected.
AccumulationMode ParseAccumulationMode(std::string_view text);
// Does the same for every text except `library`, which it treats like an unknown text.
AccumulationMode ParseOrderedAccumulationMode(std::string_view text);
// Returns the name of the first table row with this mode, or else DefinitionText(mode).
// ParseAccumulationMode(ToString(r)) == r for every r that ParseAccumulationMode returned.
std::string ToString(const AccumulationMode& mode);
// Returns the definition of the mode without the names of the table: one of the texts above, or a
// description in words if there is none.
std::string DefinitionText(const AccumulationMode& mode);

// The scales of one operand of a dot product under a block-scaled mode: element k has
// values[k / block], a positive number of the mode's format, zero or NaN. If `block` is 0, all
// elements share values[0]. If there are no values, every scale is 1.
struct DotScales {
  std::span<const float> values = {};
  size_t block = 0;
};

// One operand of a dot product: float32 values on the grid of `format`, which matters only for the
// exponent of subnormals. Scales are read under block-scaled modes alone.
struct DotOperand {
  const FormatSpec& format;
  std::span<const float> values;
  DotScales scales = {};
};

// Returns the accumulator after all products: the definition that Gemm must match bit for bit. For
// kExact it is the exact sum rounded to odd (see Unrounded), for kFloat64 exactly a float64 value,
// otherwise exactly a float32 value. A NaN is positive. Requires values of equal size, a kind
// other than kLibrary and, under a block-scaled mode with groups, operands of e2m1fn and scales that
// whole groups share.
Unrounded Accumulate(const AccumulationMode& mode,
                     const DotOperand& a,
                     const DotOperand& b) noexcept;

// Returns the bits of a float32 NaN result in this mode: 0x7FFFFFFF for NVIDIA's tensor cores
// (kAligned and kBlockScaled), 0x7FC00000 otherwise.
uint32_t NanResult(const AccumulationMode& mode);

}  // namespace numsim
