// The oracle's own list of number formats, typed from the specifications.
//
// It shares nothing with numsim's format table: every special code is written out as a number, so
// a rule that the library derives wrongly ("the largest magnitude code that is not NaN") cannot be
// derived wrongly here in the same way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oracle {

enum class Signs {
  kNone,            // no negative numbers
  kSignBit,         // top bit
  kTwosComplement,  // -c is 2^bits - c; 100...0 stands for nothing unless `lowest`
};

// The result for a finite number beyond the largest value when nothing saturates.
enum class Spill { kToInfinity, kToNan, kToMax };

inline constexpr uint32_t kNoCode = 0xFFFFFFFFu;

struct CodeRange {
  uint32_t first;
  uint32_t last;  // inclusive
};

// Codes are whole codes, sign bit included, unless the comment says positive.
struct Format {
  std::string name;  // the text from which numsim::ParseFormat makes the same format
  int bits;          // width of a code
  int mantissa_bits;
  int bias;
  Signs signs;
  uint32_t max_code;             // positive code of the largest finite value
  uint32_t infinity;             // positive code of infinity, or kNoCode
  std::vector<CodeRange> nans;   // every NaN code
  uint32_t nan_plus = kNoCode;   // what a NaN with a clear sign bit becomes, or kNoCode
  uint32_t nan_minus = kNoCode;  // what a NaN with its sign bit set becomes, or kNoCode
  bool minus_zero = false;       // code 100...0 is -0
  Spill spill = Spill::kToMax;
  bool has_zero = true;  // false: code 0 is 2^-bias (E8M0)
  int finer = 0;  // subnormals are spaced 2^finer closer than usual, below a subnormal gap [bnb]
  bool lowest = false;   // code 100...0 of two's complement is the number below -max
  bool flushes = false;  // numbers below the smallest normal do not exist: a result there is zero
};

// Whether the format is integers or fixed point: equally spaced numbers and nothing else.
bool IsFixedPoint(const Format& format);

// Every format of the table and, after them, custom ones that are harder than any of the table.
std::span<const Format> NamedFormats();
std::span<const Format> CustomFormats();
// Both lists, one after the other.
std::span<const Format> AllFormats();

// The format of that name. Aborts when there is none: a typing error in a test.
const Format& FindFormat(std::string_view name);

}  // namespace oracle
