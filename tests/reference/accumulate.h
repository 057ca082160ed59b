// The independent oracle of accumulation: an inner product under the rules of
// numsim/arith/accumulation_mode.h.
//
// Every step is done on exact numbers (exact_number.h) and cut by comparing big integers; nothing
// is added in floating point or in fixed-width integers. Special values: a NaN, infinity times
// zero, or infinities of both signs among the products give NaN, else an infinite product gives
// infinity. A NaN is positive.
#pragma once

#include <span>

#include "tests/reference/exact_number.h"

namespace oracle {

// One side of an inner product, and the exponent of the smallest normal number of its format.
struct DotSide {
  std::span<const float> values;
  int min_exponent;
};

// A binary format with infinities: `precision` significant bits with the hidden one, exponents of
// normal numbers emin .. emax, subnormals below.
struct FloatGrid {
  int precision;
  int emin;
  int emax;
};
inline constexpr FloatGrid kFloat32 = {24, -126, 127};
inline constexpr FloatGrid kFloat64 = {53, -1022, 1023};

// To nearest, ties to even; overflow gives infinity. Requires precision <= 53 and a number without
// root or denominator.
double RoundToNearest(const ExactNumber& x, const FloatGrid& grid);

// Whether `significand` 2^exponent is the magnitude of x, or x cut to at least `bits` bits of which
// the lowest was set because something not zero was cut. Requires a finite x.
bool IsRoundedToOdd(const ExactNumber& x, uint64_t significand, int exponent, int bits);

// The sum of products, exactly; +0 when it is zero.
ExactNumber ExactDot(const DotSide& a, const DotSide& b);

// acc = round(acc + a b), or round(acc + round(a b)) when not `fused`.
double SequentialDot(const DotSide& a, const DotSide& b, const FloatGrid& grid, bool fused);

// The sequential float32 sums of each `chunk` products, added in float32.
double ChunkedDot(const DotSide& a, const DotSide& b, size_t chunk);

// NVIDIA's tensor cores. Products and accumulator are cut toward zero to `fraction_bits` below the
// largest exponent among them and -133, the sum to min(fraction_bits, 23) below its own. Zeros are
// +0.
struct AlignedUnit {
  int fraction_bits;
  size_t chunk;
  size_t promote = 0;       // 0, or a multiple of chunk: sums that start anew, added in float32
  bool byte_pairs = false;  // chunks of 16: of every 32 those with k mod 4 < 2, then the others
};
double AlignedDot(const DotSide& a, const DotSide& b, const AlignedUnit& unit);

// NVIDIA's units that take scales of blocks, of which vector element k has scales[k / block], or
// scales[0] if block is 0. An addend is a scaled product or, with `group`, the sum of the scaled
// products of a group, with the exponent of its scales alone (also if it is zero, but not if a scale
// is). Addends and accumulator are cut as AlignedDot does.
struct ScaledSide {
  DotSide side;
  std::span<const float> scales;
  size_t block;
};
struct ScaledUnit {
  int fraction_bits;
  size_t chunk;
  size_t group;            // 0: none
  int scale_min_exponent;  // of the smallest normal scale
};
double BlockScaledDot(const ScaledSide& a, const ScaledSide& b, const ScaledUnit& unit);

// CDNA1: acc = fl32(acc + the exact sum of a chunk).
double ExactChunksDot(const DotSide& a, const DotSide& b, size_t chunk);

// CDNA2: subnormal operands are zeros, and so is every subnormal result, with its sign. Products in
// float32, added in pairs and pairs of pairs within a chunk of 2 or 4; short chunks are filled with
// zeros.
double FlushedPairsDot(const DotSide& a, const DotSide& b, size_t chunk);

// CDNA3: products are cut toward zero to 24 fraction bits below their largest exponent e; with E
// the larger of e and the exponent of acc, their sum is rounded down to a multiple of 2^(E-31), acc
// to one of 2^(E-24). Both are added and rounded to the nearest float32. With `even_odd` even and
// odd k are two sums, each cut below its own largest exponent and rounded down to a multiple of
// 2^(e-24), and acc is left out where its exponent is below E - 25. Zeros, also those that fill a
// short chunk, have exponent -126. Products from 2^128 on are infinite. Requires an even chunk for
// `even_odd`.
double AlignedDownDot(const DotSide& a, const DotSide& b, size_t chunk, bool even_odd);

}  // namespace oracle
