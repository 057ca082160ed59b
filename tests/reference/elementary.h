// Exact values of elementary functions, cut to 128 bits, by MPFR [MPFR].
//
// MPFR rounds exp, log, tanh and others correctly. What it lacks (the logistic function, GELU, softplus) is
// enclosed in an interval, whose ends it computes with rounding down and up, and which is narrowed
// until both ends agree on the bits that are kept.
#pragma once

#include <cstdint>

#include "tests/reference/exact_number.h"

namespace oracle {

enum class Function {
  kExp,
  kExp2,
  kLog,
  kLog2,
  kTanh,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kSoftplus,
  // From here on MPFR has them, also their special values and exceptions.
  kExpm1,
  kLog1p,
  kRecSqrt,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinpi,
  kCospi,
  kTanpi,
  kAsinpi,
  kAcospi,
  kAtanpi,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};
enum class Function2 { kHypot, kAtan2, kAtan2pi };

// Whether this build has MPFR. Without it, the functions below abort.
bool HasMpfr();

// The function of a code, with kInvalidFlag and kDivideByZeroFlag. A value that has more than 128
// bits is cut to 128 and 1 is put behind them, so that it lies strictly between the numbers of 128
// bits. Results
// above 2^200 and below 2^-200 may be other numbers of that kind.
ExactNumber ExactFunction(Function function, const Grid& grid, uint32_t code);
// The function of a number that is the exact value of a code times that of another, such as a scaled
// element: no root, no fraction.
ExactNumber ExactFunction(Function function, const ExactNumber& operand);
ExactNumber ExactFunction(Function2 function, const ExactNumber& a, const ExactNumber& b);

// The 512 leading bits of a constant as 8 words, highest first.
enum class Constant { kLn2, kInverseRootTwoPi, kPi, kTwoOverPi };
void LeadingWords(Constant constant, uint64_t words[8]);

}  // namespace oracle
