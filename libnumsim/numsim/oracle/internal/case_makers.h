// The cases of the levels edges and random.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "numsim/oracle/operation.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// Made-up cases of block operations and dots, for the `edges` of cases.h.

// Rows of operation.operands() numbers, one after the other. Requires shape() kBlock or kDot.
//
// kBlock: equal elements; one element among others (largest, NaN, infinities, at the ends and in
// the middle); maxima at and around every value and midpoint of the scale's format; every value and
// midpoint of the code's format and its neighbours, under several scales. Where there is a tensor
// scale, it is 1 but for rows that try others, zero and NaN among them.
// kDot: equal elements; products of each special kind among ones; overflow that cancels; sums that
// are ties of the result, also but for a tiny product; falling and rising magnitudes.
std::vector<uint64_t> EdgeRows(const Operation& operation);

// The awkward codes of one column, for the `edges` of cases.h. Lists name no code twice.

// Codes in the order in which they come, without repetition.
class CodeList {
 public:
  // `bits`: of a code, 1..64.
  explicit CodeList(int bits);

  void Add(uint64_t code);
  void Add(const std::vector<uint64_t>& codes);
  const std::vector<uint64_t>& codes() const { return codes_; }

 private:
  uint64_t mask_;
  std::vector<uint64_t> codes_;
  std::unordered_set<uint64_t> seen_;
};

// The code of that magnitude and sign. Requires magnitude <= format.MagnitudeMask(); the negative
// of an unsigned format is the magnitude itself.
uint32_t SignedCode(const FormatSpec& format, uint32_t magnitude, bool negative);

// Appends the codes on both sides of `x` and that of `x` itself where it has one, with both signs.
// Requires x finite.
void AddAround(const FormatSpec& format, const Unrounded& x, CodeList& list);

// Every awkward code of a format, the most awkward first; all codes of formats of at most
// `all_up_to` bits.
std::vector<uint64_t> AwkwardCodes(const FormatSpec& format, int all_up_to);

// Codes of `source` around every finite value of `target` and every midpoint of two, the one beyond
// the largest value included. Requires target.Bits() <= 16.
std::vector<uint64_t> CodesAroundValues(const FormatSpec& source, const FormatSpec& target);

// Codes around integers, half integers and powers of two up to 2^64.
std::vector<uint64_t> CodesAroundIntegers(const FormatSpec& source);

// Integers of that many bits: small ones, ends of ranges, powers of two, their neighbours, exponent
// spans of the formats.
std::vector<uint64_t> AwkwardIntegers(int bits, bool is_signed);

// Integers that lie halfway between neighbours of a format, and next to these.
std::vector<uint64_t> IntegersAroundTies(int bits, bool is_signed, const FormatSpec& target);

// Random bits: 0, all ones, half, half - 1.
std::vector<uint64_t> AwkwardRandomBits(int bits);

// Case i of random:N (cases.h).

// What of an operation shapes its random cases.
struct RandomCaseShape {
  CaseShape shape = CaseShape::kElementwise;
  size_t operands = 0;
  size_t length = 1;
};

// Fills `inputs` (one number a column) with case `index`, a pure function of all arguments. The
// bits of column c come of stream kRandomCaseStream + c of the seed.
void RandomCase(std::span<const Column> columns,
                const RandomCaseShape& shape,
                uint64_t seed,
                uint64_t index,
                std::span<uint64_t> inputs) noexcept;

}  // namespace numsim
