// Generates the cases of the levels `edges` and `random` (defined in cases.h).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "numsim/oracle/operation.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// Returns the constructed rows of block operations and dot products for the level `edges`: one row
// of operation.operands() numbers after the other. Requires shape() kBlock, kDot or kRow.
//
// kBlock: equal elements; one special element among others (largest, NaN, infinities; at the ends
// and in the middle); maxima at and around every value and midpoint of the scale's format; every
// value and midpoint of the code's format and its neighbours, under several scales. A tensor scale
// is 1, except in rows that try other values, including zero and NaN.
// kDot: equal elements; products of each special kind among zeros and ones; overflow that cancels;
// sums that are ties of the result, exactly or except for a tiny product; falling and rising
// magnitudes. With block scales: these with scales of 1, and every code of a scale (of 16 bits at
// most) beside elements of 1, in the first, the middle and the last block of each operand.
// kRow: ones, with zeros, the ends of the range, infinities and NaN in one place or everywhere in one
// block or scale.
std::vector<uint64_t> EdgeRows(const Operation& operation);

// The edge codes of one column, for the level `edges`. No list contains a code twice.

// A list of codes in order of insertion, without repetition.
class CodeList {
 public:
  // `bits` is the width of a code, 1..64.
  explicit CodeList(int bits);

  void Add(uint64_t code);
  void Add(const std::vector<uint64_t>& codes);
  const std::vector<uint64_t>& codes() const { return codes_; }

 private:
  uint64_t mask_;
  std::vector<uint64_t> codes_;
  std::unordered_set<uint64_t> seen_;
};

// Returns the code with this magnitude code and sign. Requires magnitude <= format.MagnitudeMask().
// In an unsigned format the sign is ignored.
uint32_t SignedCode(const FormatSpec& format, uint32_t magnitude, bool negative);

// Appends the code of `x` rounded toward zero and its two neighbours, each with both signs. Leaves
// out magnitudes above the largest finite one. Requires x finite and not negative.
void AddAround(const FormatSpec& format, const Unrounded& x, CodeList& list);

// Returns the edge codes of a format, the most important ones first. Appends all other codes if the
// format has at most `all_up_to` bits.
std::vector<uint64_t> AwkwardCodes(const FormatSpec& format, int all_up_to);

// Returns the codes of `source` around every finite value of `target` and around every midpoint of
// two neighbouring values, including the midpoint above the largest value. Requires
// target.Bits() <= 16.
std::vector<uint64_t> CodesAroundValues(const FormatSpec& source, const FormatSpec& target);

// Returns the codes around integers, half-integers and powers of two up to 2^64.
std::vector<uint64_t> CodesAroundIntegers(const FormatSpec& source);

// Returns edge cases among integers of that many bits: small ones, ends of ranges, powers of two
// and their neighbours, and exponent ranges of the formats.
std::vector<uint64_t> AwkwardIntegers(int bits, bool is_signed);

// Returns integers halfway between neighbouring values of a format, and the integers next to them.
std::vector<uint64_t> IntegersAroundTies(int bits, bool is_signed, const FormatSpec& target);

// Returns the bits of float64 numbers at and next to values of a format and midpoints between
// neighbours, for all values of a format of up to 16 bits and for the edge codes of wider ones, with
// both signs, and special numbers of float64.
std::vector<uint64_t> AwkwardFloat64s(const FormatSpec& target);

// Returns edge cases of random bits: 0, all ones, half, half - 1.
std::vector<uint64_t> AwkwardRandomBits(int bits);

// The cases of random:N and uniform:N (cases.h).

// Properties of an operation that determine its random cases.
struct RandomCaseShape {
  CaseShape shape = CaseShape::kElementwise;
  size_t operands = 0;
  size_t length = 1;
  // Dot products: exponents of the smallest and of the largest finite sum (Operation::SumExponents);
  // a float64: those of the result's format.
  int sum_low = 0, sum_high = 0;
  // The number of block scales, which follow the 2 * length elements of a dot product.
  size_t scales = 0;
  bool wide_scales = false;  // they spread over more binades than a result has bits, in some cases
};

// Fills `inputs` (one number per column) with case `index`, a pure function of all other arguments.
// The bits of column c come from stream kRandomCaseStream + c of the seed. If `uniform` is true,
// all bits are uniform, else only those of even cases; odd cases have close exponents.
void RandomCase(std::span<const Column> columns,
                const RandomCaseShape& shape,
                uint64_t seed,
                uint64_t index,
                std::span<uint64_t> inputs,
                bool uniform = false) noexcept;

// The same for the dot products of random:N: nearly all operands are finite. RandomCase() makes the
// dot products of the level `edges`, whose files in packs must not change. Block scales are finite
// and positive where the format allows it, within a few binades of each other, and keep the sum in
// range; in one of 32 cases, one is special. Tensor scales are numbers around 1.
void RandomDotCase(std::span<const Column> columns,
                   const RandomCaseShape& shape,
                   uint64_t seed,
                   uint64_t index,
                   std::span<uint64_t> inputs) noexcept;

}  // namespace numsim
