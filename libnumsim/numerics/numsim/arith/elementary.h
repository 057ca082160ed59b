// Correctly rounded elementary functions on codes: every result is the exact real value of the
// function, rounded once. The common rules of arith.h hold here too.
//
// Special values are the limits of the functions, as in [IEEE754] 9.2:
//
//              x = -inf    -0      +0      +inf    other exact results
//   exp        +0          1       1       +inf
//   exp2       +0          1       1       +inf    2^n for integers n
//   log        invalid     -inf    -inf    +inf    log(1) = +0
//   log2       invalid     -inf    -inf    +inf    log2(2^n) = n
//   tanh       -1          -0      +0      1
//   sigmoid    +0          1/2     1/2     1
//   gelu       -0          -0      +0      +inf
//   gelu-tanh  -0          -0      +0      +inf
//
// The logarithm of zero raises kDivideByZero, that of a number below zero kInvalid. All other
// results at finite operands are irrational and therefore inexact.
//
// Results are proved for operands of up to 16 significant bits: all formats of up to 16 bits, and
// tf32. Functions are evaluated with a bound of the error, with more bits until the bits that
// rounding needs are certain; a test exhausts these operands. Operands of more bits are computed
// in the same way; the program would abort, and not return a wrong result, on one that 512 bits do
// not decide.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "numsim/arith/arith.h"

namespace numsim {

// The elementary functions. Each result is the exact real value, rounded once.
enum class ElementaryFunction : uint8_t {
  kExp,       // e^x
  kExp2,      // 2^x
  kLog,       // natural logarithm
  kLog2,      // logarithm to base 2
  kTanh,      // hyperbolic tangent
  kSigmoid,   // 1 / (1 + e^-x)
  kGelu,      // x Phi(x), where Phi is the distribution function of the normal distribution [GELU]
  kGeluTanh,  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, with that decimal number [GELU]
};

// All elementary functions, in the order of the enumerators.
inline constexpr std::array kElementaryFunctions = {ElementaryFunction::kExp,
                                                    ElementaryFunction::kExp2,
                                                    ElementaryFunction::kLog,
                                                    ElementaryFunction::kLog2,
                                                    ElementaryFunction::kTanh,
                                                    ElementaryFunction::kSigmoid,
                                                    ElementaryFunction::kGelu,
                                                    ElementaryFunction::kGeluTanh};

// Returns "exp", "exp2", "log", "log2", "tanh", "sigmoid", "gelu" or "gelu-tanh".
std::string_view ToString(ElementaryFunction function);

// Returns function(a) in the format of `to`. `random` is as in EncodeF32.
Rounded Elementary(ElementaryFunction function,
                   const Operand& a,
                   const EncodePlan& to,
                   uint32_t random = 0) noexcept;

}  // namespace numsim
