// Correctly rounded elementary functions on codes: every result is the exact real value of the
// function, rounded once. The common rules of arith.h hold here too.
//
// Special values are those of [IEEE754] 9.2, the limits of the functions:
//
//              x = -inf    -0      +0      +inf    other exact results
//   exp        +0          1       1       +inf
//   exp2       +0          1       1       +inf    2^n for integers n
//   expm1      -1          -0      +0      +inf
//   log        invalid     -inf    -inf    +inf    log(1) = +0
//   log2       invalid     -inf    -inf    +inf    log2(2^n) = n
//   log1p      invalid     -0      +0      +inf    log1p(-1) = -inf
//   softplus   +0          log 2   log 2   +inf
//   rsqrt      invalid     -inf    +inf    +0      2^-n for x = 4^n
//   sin        invalid     -0      +0      invalid
//   cos        invalid     1       1       invalid
//   tan        invalid     -0      +0      invalid
//   asin       invalid     -0      +0      invalid
//   acos       invalid     pi/2    pi/2    invalid acos(1) = +0
//   atan       -pi/2       -0      +0      pi/2
//   sinpi      invalid     -0      +0      invalid integers: +-0 by the sign of x; +-1 halfway
//   cospi      invalid     1       1       invalid integers: +-1; +0 halfway
//   tanpi      invalid     -0      +0      invalid n: +-0; n + 1/4: +-1; halfway +-inf
//   asinpi     invalid     -0      +0      invalid asinpi(+-1) = +-1/2
//   acospi     invalid     1/2     1/2     invalid acospi(1) = +0, acospi(-1) = 1
//   atanpi     -1/2        -0      +0      1/2     atanpi(+-1) = +-1/4
//   sinh       -inf        -0      +0      +inf
//   cosh       +inf        1       1       +inf
//   tanh       -1          -0      +0      1
//   asinh      -inf        -0      +0      +inf
//   acosh      invalid     invalid invalid +inf    acosh(1) = +0
//   atanh      invalid     -0      +0      invalid atanh(+-1) = +-inf
//   sigmoid    +0          1/2     1/2     1
//   gelu       -0          -0      +0      +inf
//   gelu-tanh  -0          -0      +0      +inf
//
// An infinite result at a finite operand raises kDivideByZero; an operand outside the domain (x < 0
// of log, log2 and rsqrt, x < -1 of log1p, x < 1 of acosh, |x| > 1 of the inverses of sine, cosine and
// tanh) kInvalid. All other results at finite operands are inexact. The limits of sigmoid, softplus
// and GELU are not in [IEEE754].
//
// Results are proved for operands of up to 16 significant bits: all formats of up to 16 bits, and
// tf32. Functions are evaluated with a bound of the error, with more bits until the bits that
// rounding needs are certain; a test exhausts these operands. Operands of more bits are computed
// in the same way; the program would abort, and not return a wrong result, on one that 512 bits do
// not decide.
#pragma once

#include <array>
#include <cstddef>
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
  kExpMinusOne,  // e^x - 1
  kLogOnePlus,   // ln(1 + x)
  kSoftplus,     // ln(1 + e^x)
  kRsqrt,        // 1 / sqrt(x)
  kSin,          // of an angle in radians
  kCos,
  kTan,
  kArcSin,
  kArcCos,
  kArcTan,
  kSinPi,  // sin(pi x), and so on
  kCosPi,
  kTanPi,
  kArcSinPi,  // asin(x) / pi, and so on
  kArcCosPi,
  kArcTanPi,
  kSinh,
  kCosh,
  kArcSinh,
  kArcCosh,
  kArcTanh,
};

// An elementary function with its name and its meaning.
struct ElementaryName {
  ElementaryFunction function;
  std::string_view name;     // as `numsim oracle` and Python have it, with - for _
  std::string_view meaning;  // of an operand a
};
// All elementary functions, in the order of the enumerators.
inline constexpr std::array kElementaryNames = {
    ElementaryName{ElementaryFunction::kExp, "exp", "e^a"},
    ElementaryName{ElementaryFunction::kExp2, "exp2", "2^a"},
    ElementaryName{ElementaryFunction::kLog, "log", "natural logarithm of a"},
    ElementaryName{ElementaryFunction::kLog2, "log2", "logarithm of a to base 2"},
    ElementaryName{ElementaryFunction::kTanh, "tanh", "hyperbolic tangent of a"},
    ElementaryName{ElementaryFunction::kSigmoid, "sigmoid", "1 / (1 + e^-a)"},
    ElementaryName{ElementaryFunction::kGelu, "gelu", "a Phi(a), by the normal distribution"},
    ElementaryName{ElementaryFunction::kGeluTanh,
                   "gelu-tanh",
                   "a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2"},
    ElementaryName{ElementaryFunction::kExpMinusOne, "expm1", "e^a - 1"},
    ElementaryName{ElementaryFunction::kLogOnePlus, "log1p", "natural logarithm of 1 + a"},
    ElementaryName{ElementaryFunction::kSoftplus, "softplus", "natural logarithm of 1 + e^a"},
    ElementaryName{ElementaryFunction::kRsqrt, "rsqrt", "1 / sqrt(a)"},
    ElementaryName{ElementaryFunction::kSin, "sin", "sine of a radians"},
    ElementaryName{ElementaryFunction::kCos, "cos", "cosine of a radians"},
    ElementaryName{ElementaryFunction::kTan, "tan", "tangent of a radians"},
    ElementaryName{ElementaryFunction::kArcSin, "asin", "inverse sine of a, in radians"},
    ElementaryName{ElementaryFunction::kArcCos, "acos", "inverse cosine of a, in radians"},
    ElementaryName{ElementaryFunction::kArcTan, "atan", "inverse tangent of a, in radians"},
    ElementaryName{ElementaryFunction::kSinPi, "sinpi", "sine of pi a"},
    ElementaryName{ElementaryFunction::kCosPi, "cospi", "cosine of pi a"},
    ElementaryName{ElementaryFunction::kTanPi, "tanpi", "tangent of pi a"},
    ElementaryName{ElementaryFunction::kArcSinPi, "asinpi", "inverse sine of a, over pi"},
    ElementaryName{ElementaryFunction::kArcCosPi, "acospi", "inverse cosine of a, over pi"},
    ElementaryName{ElementaryFunction::kArcTanPi, "atanpi", "inverse tangent of a, over pi"},
    ElementaryName{ElementaryFunction::kSinh, "sinh", "hyperbolic sine of a"},
    ElementaryName{ElementaryFunction::kCosh, "cosh", "hyperbolic cosine of a"},
    ElementaryName{ElementaryFunction::kArcSinh, "asinh", "inverse hyperbolic sine of a"},
    ElementaryName{ElementaryFunction::kArcCosh, "acosh", "inverse hyperbolic cosine of a"},
    ElementaryName{ElementaryFunction::kArcTanh, "atanh", "inverse hyperbolic tangent of a"},
};

// The functions of kElementaryNames.
inline constexpr auto kElementaryFunctions = [] {
  std::array<ElementaryFunction, kElementaryNames.size()> functions{};
  for (size_t i = 0; i < functions.size(); ++i) functions[i] = kElementaryNames[i].function;
  return functions;
}();

// Returns the name in kElementaryNames.
std::string_view ToString(ElementaryFunction function);

// Returns function(a) in the format of `to`. `random` is as in EncodeF32.
Rounded Elementary(ElementaryFunction function,
                   const Operand& a,
                   const EncodePlan& to,
                   uint32_t random = 0) noexcept;

// Functions of two operands, by [IEEE754] 9.2.

// sqrt(a^2 + b^2). An infinite operand gives +infinity, also beside a NaN.
Rounded Hypotenuse(const Operand& a,
                   const Operand& b,
                   const EncodePlan& to,
                   uint32_t random = 0) noexcept;
// atan2(a, b): the angle of the point (b, a) from the positive x axis, from -pi to pi. The angle of
// (x, y) = (+0, +-0) is +-0, that of (-0, +-0) is +-pi. Infinite operands give
// the limits along the diagonals, such as pi / 4.
Rounded Angle(const Operand& a,
              const Operand& b,
              const EncodePlan& to,
              uint32_t random = 0) noexcept;
// atan2(a, b) / pi.
Rounded AngleOverPi(const Operand& a,
                    const Operand& b,
                    const EncodePlan& to,
                    uint32_t random = 0) noexcept;

}  // namespace numsim
