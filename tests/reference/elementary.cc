#include "tests/reference/elementary.h"

#include <gmp.h>
#include <mpfr.h>

#include <cstdio>
#include <cstdlib>

namespace oracle {
namespace {

using Kind = Real::Kind;

constexpr int kKept = 128;
constexpr double kFar = 200;  // beyond it only bounds are used

class Number {
 public:
  explicit Number(mpfr_prec_t precision) { mpfr_init2(x_, precision); }
  ~Number() { mpfr_clear(x_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  operator mpfr_ptr() { return x_; }

 private:
  mpfr_t x_;
};

ExactNumber Special(Kind kind, bool negative, Flags flags) {
  ExactNumber number;
  number.kind = kind;
  number.negative = negative;
  number.flags = flags;
  return number;
}

// (high 2^64 + low) 2^exponent, or one half of its last bit more where that is not all.
ExactNumber Finite(bool negative, uint64_t high, uint64_t low, int64_t exponent, bool inexact) {
  ExactNumber number;
  number.negative = negative;
  const Natural kept = (Natural(high) << 64) + Natural(low);
  number.numerator = (kept << 1) + Natural(inexact ? 1 : 0);
  number.exponent = exponent - 1;
  return number;
}

// A number just below x.
ExactNumber JustBelow(double x) {
  const Dyadic dyadic = ToDyadic(x);
  ExactNumber number;
  number.numerator = (Natural(dyadic.significand) << 200) - Natural(1);
  number.exponent = dyadic.exponent - 200;
  return number;
}

// x, cut to kKept bits before; `inexact` if anything was cut.
ExactNumber FromMpfr(mpfr_ptr x, bool inexact) {
  if (mpfr_zero_p(x)) return Finite(mpfr_signbit(x) != 0, 0, 0, 0, inexact);
  mpz_t integer;
  mpz_init(integer);
  const mpfr_exp_t exponent = mpfr_get_z_2exp(integer, x);
  uint64_t words[2] = {0, 0};
  mpz_export(words, nullptr, -1, sizeof(uint64_t), 0, 0, integer);  // of the magnitude
  mpz_clear(integer);
  return Finite(mpfr_signbit(x) != 0, words[1], words[0], exponent, inexact);
}

// A number just above x > 0, which is the value of a code or of two.
ExactNumber Above(mpfr_ptr x) {
  Number kept(kKept);
  mpfr_set(kept, x, MPFR_RNDZ);
  return FromMpfr(kept, true);
}

// Sets `out` to the function of x, rounded in the direction; `working` is the precision of
// intermediate results. Requires 0 < |x| <= kFar.
void Sigmoid(mpfr_ptr out, mpfr_ptr x, mpfr_prec_t working, bool up) {
  const mpfr_rnd_t here = up ? MPFR_RNDU : MPFR_RNDD, there = up ? MPFR_RNDD : MPFR_RNDU;
  Number t(working);
  mpfr_neg(t, x, there);
  mpfr_exp(t, t, there);  // 1 / (1 + e^-x) falls when the exponential rises
  mpfr_add_ui(t, t, 1, there);
  mpfr_ui_div(out, 1, t, here);
}

// ln(1 + e^x), which rises with each of its steps.
void Softplus(mpfr_ptr out, mpfr_ptr x, mpfr_prec_t working, bool up) {
  const mpfr_rnd_t here = up ? MPFR_RNDU : MPFR_RNDD;
  Number t(working);
  mpfr_exp(t, x, here);
  mpfr_log1p(out, t, here);
}

// |x| Phi(x) = |x| / 2 erfc(-x / sqrt 2).
void Gelu(mpfr_ptr out, mpfr_ptr x, mpfr_prec_t working, bool up) {
  const mpfr_rnd_t here = up ? MPFR_RNDU : MPFR_RNDD, there = up ? MPFR_RNDD : MPFR_RNDU;
  Number t(working), root(working);
  // The argument -x / sqrt 2 is rounded against the direction, because erfc falls.
  const bool argument_negative = mpfr_signbit(x) == 0;
  mpfr_sqrt_ui(root, 2, argument_negative == up ? MPFR_RNDD : MPFR_RNDU);
  mpfr_div(t, x, root, up ? MPFR_RNDU : MPFR_RNDD);
  mpfr_neg(t, t, there);
  mpfr_erfc(t, t, here);
  mpfr_mul(t, t, x, mpfr_signbit(x) ? there : here);
  mpfr_abs(t, t, MPFR_RNDN);
  mpfr_div_2ui(out, t, 1, here);
}

// |x| / 2 (1 + tanh(sqrt(2 / pi) (x + 44715 / 1000000 x^3))).
void GeluTanh(mpfr_ptr out, mpfr_ptr x, mpfr_prec_t working, bool up) {
  // Rounded by magnitude: towards zero gives the end that is nearer to zero.
  const bool negative = mpfr_signbit(x) != 0;
  const bool away = negative != up;  // of the argument of tanh
  const mpfr_rnd_t magnitude = away ? MPFR_RNDU : MPFR_RNDD;
  const mpfr_rnd_t here = up ? MPFR_RNDU : MPFR_RNDD;
  Number u(working), t(working), pi(working);
  mpfr_abs(u, x, MPFR_RNDN);
  mpfr_sqr(t, u, magnitude);
  mpfr_mul_ui(t, t, 44715, magnitude);
  mpfr_div_ui(t, t, 1000000, magnitude);
  mpfr_add_ui(t, t, 1, magnitude);
  mpfr_mul(t, t, u, magnitude);
  mpfr_const_pi(pi, away ? MPFR_RNDD : MPFR_RNDU);
  mpfr_ui_div(pi, 2, pi, magnitude);
  mpfr_sqrt(pi, pi, magnitude);
  mpfr_mul(t, t, pi, magnitude);
  mpfr_tanh(t, t, magnitude);
  if (negative) mpfr_neg(t, t, MPFR_RNDN);
  mpfr_add_ui(t, t, 1, here);
  mpfr_mul(t, t, u, here);
  mpfr_div_2ui(out, t, 1, here);
}

using Enclosed = void (*)(mpfr_ptr out, mpfr_ptr x, mpfr_prec_t working, bool up);

ExactNumber Enclose(Enclosed function, mpfr_ptr x, bool negative) {
  for (mpfr_prec_t working = 256; working <= 16384; working *= 2) {
    Number low(working), high(working), kept_low(kKept), kept_high(kKept);
    function(low, x, working, false);
    function(high, x, working, true);
    mpfr_set(kept_low, low, MPFR_RNDZ);
    mpfr_set(kept_high, high, MPFR_RNDZ);
    if (!mpfr_equal_p(kept_low, kept_high) || mpfr_zero_p(kept_low.operator mpfr_ptr())) continue;
    ExactNumber number = FromMpfr(kept_low, true);
    number.negative = negative;
    return number;
  }
  std::fprintf(stderr, "tests/reference/elementary.cc: no precision encloses the function\n");
  std::abort();
}

// Functions that MPFR rounds itself.
ExactNumber ByMpfr(Function function, mpfr_ptr x) {
  Number out(kKept);
  int ternary = 0;
  switch (function) {
    case Function::kExp:
      ternary = mpfr_exp(out, x, MPFR_RNDZ);
      break;
    case Function::kExp2:
      ternary = mpfr_exp2(out, x, MPFR_RNDZ);
      break;
    case Function::kLog:
      ternary = mpfr_log(out, x, MPFR_RNDZ);
      break;
    case Function::kLog2:
      ternary = mpfr_log2(out, x, MPFR_RNDZ);
      break;
    default:
      ternary = mpfr_tanh(out, x, MPFR_RNDZ);
  }
  return FromMpfr(out, ternary != 0);
}

ExactNumber AtInfinity(Function function, bool negative) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
    case Function::kSoftplus:
      return Special(negative ? Kind::kFinite : Kind::kInfinity, false, 0);
    case Function::kLog:
    case Function::kLog2:
      if (negative) return Special(Kind::kNan, false, kInvalidFlag);
      return Special(Kind::kInfinity, false, 0);
    case Function::kTanh:
      return Finite(negative, 0, 1, 0, false);
    case Function::kSigmoid:
      return Finite(false, 0, negative ? 0 : 1, 0, false);
    default:
      break;
  }
  return Special(negative ? Kind::kFinite : Kind::kInfinity, negative, 0);
}

ExactNumber AtZero(Function function, bool negative) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      return Finite(false, 0, 1, 0, false);
    case Function::kLog:
    case Function::kLog2:
      return Special(Kind::kInfinity, true, kDivideByZeroFlag);
    case Function::kSigmoid:
      return Finite(false, 0, 1, -1, false);
    case Function::kSoftplus: {
      Number two(8);
      mpfr_set_ui(two, 2, MPFR_RNDN);
      return ByMpfr(Function::kLog, two);
    }
    default:
      break;
  }
  return Finite(negative, 0, 0, 0, false);
}

using OfOne = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// By Function, from kExpm1 on.
constexpr OfOne kOfOne[] = {mpfr_expm1, mpfr_log1p, mpfr_rec_sqrt, mpfr_sin,    mpfr_cos,
                            mpfr_tan,   mpfr_asin,  mpfr_acos,     mpfr_atan,   mpfr_sinpi,
                            mpfr_cospi, mpfr_tanpi, mpfr_asinpi,   mpfr_acospi, mpfr_atanpi,
                            mpfr_sinh,  mpfr_cosh,  mpfr_asinh,    mpfr_acosh,  mpfr_atanh};

// The result of MPFR with its exceptions.
ExactNumber WithExceptions(mpfr_ptr x, int ternary) {
  if (mpfr_nan_p(x)) return Special(Kind::kNan, false, kInvalidFlag);
  if (!mpfr_inf_p(x)) return FromMpfr(x, ternary != 0);
  return Special(Kind::kInfinity, mpfr_signbit(x) != 0, mpfr_divby0_p() ? kDivideByZeroFlag : 0);
}

// Sets x to the number, exactly; 96 bits hold the product of two values of codes.
void SetMpfr(mpfr_ptr x, const ExactNumber& number) {
  if (number.IsNan()) {
    mpfr_set_nan(x);
  } else if (number.IsInfinite()) {
    mpfr_set_inf(x, number.negative ? -1 : 1);
  } else if (number.IsZero()) {
    mpfr_set_zero(x, number.negative ? -1 : 1);
  } else {
    const uint64_t words[2] = {number.numerator.Limb(0), number.numerator.Limb(1)};
    mpz_t integer;
    mpz_init(integer);
    mpz_import(integer, 2, -1, sizeof(uint64_t), 0, 0, words);
    mpfr_set_z_2exp(x, integer, number.exponent, MPFR_RNDN);
    mpz_clear(integer);
    if (number.negative) mpfr_neg(x, x, MPFR_RNDN);
  }
}

// e^|x| is beyond every format: the functions that grow or settle there.
bool IsFarExponential(Function function, mpfr_ptr x) {
  const bool grows =
      function == Function::kExpm1 || function == Function::kSinh || function == Function::kCosh;
  return grows && mpfr_number_p(x) && mpfr_cmpabs_ui(x, 1200) > 0;
}

ExactNumber ByMpfrWithExceptions(Function function, mpfr_ptr x) {
  if (IsFarExponential(function, x)) {
    const bool negative = mpfr_signbit(x) != 0;
    if (function == Function::kExpm1 && negative) {
      ExactNumber number = JustBelow(1);
      number.negative = true;
      return number;
    }
    return Finite(negative && function == Function::kSinh, 0, 1, 2000, true);
  }
  // IEEE 754 has -inf at -0, and MPFR +inf.
  if (function == Function::kRecSqrt && mpfr_zero_p(x)) {
    return Special(Kind::kInfinity, mpfr_signbit(x) != 0, kDivideByZeroFlag);
  }
  Number out(kKept);
  mpfr_clear_flags();
  const size_t index = static_cast<size_t>(function) - static_cast<size_t>(Function::kExpm1);
  const int ternary = kOfOne[index](out, x, MPFR_RNDZ);
  return WithExceptions(out, ternary);
}

ExactNumber AtFinite(Function function, mpfr_ptr x) {
  const double value = mpfr_get_d(x, MPFR_RNDN);  // exact for the value of a code
  const bool negative = value < 0;
  const double magnitude = negative ? -value : value;
  ExactNumber tiny = Finite(false, 0, 1, -2000, true);
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      if (magnitude <= kFar) return ByMpfr(function, x);
      return negative ? tiny : Finite(false, 0, 1, 2000, true);
    case Function::kLog:
    case Function::kLog2:
      if (negative) return Special(Kind::kNan, false, kInvalidFlag);
      return ByMpfr(function, x);
    case Function::kTanh:
      return ByMpfr(function, x);
    case Function::kSigmoid:
      if (magnitude <= kFar) return Enclose(&Sigmoid, x, false);
      return negative ? tiny : JustBelow(1);
    case Function::kSoftplus:
      if (magnitude <= kFar) return Enclose(&Softplus, x, false);
      if (negative) return tiny;
      return Above(x);
    default:
      break;
  }
  ExactNumber far_below = tiny;
  far_below.negative = true;
  // At 20 both differ from 0 and from x by less than 2^-280 of x.
  if (magnitude > 20) return negative ? far_below : JustBelow(magnitude);
  return Enclose(function == Function::kGelu ? &Gelu : &GeluTanh, x, negative);
}

}  // namespace

bool HasMpfr() { return true; }

ExactNumber ExactFunction(Function function, const Grid& grid, uint32_t code) {
  return ExactFunction(function, ExactOf(grid, code));
}

ExactNumber ExactFunction(Function function, const ExactNumber& operand) {
  if (operand.IsNan()) return Special(Kind::kNan, false, operand.flags);
  Number x(kKept);
  SetMpfr(x, operand);
  if (function >= Function::kExpm1) return ByMpfrWithExceptions(function, x);
  if (operand.IsInfinite()) return AtInfinity(function, operand.negative);
  if (operand.IsZero()) return AtZero(function, operand.negative);
  return AtFinite(function, x);
}

ExactNumber ExactFunction(Function2 function, const ExactNumber& a, const ExactNumber& b) {
  Number x(kKept), y(kKept), out(kKept);
  SetMpfr(x, a);
  SetMpfr(y, b);
  mpfr_clear_flags();
  const int ternary = function == Function2::kHypot   ? mpfr_hypot(out, x, y, MPFR_RNDZ)
                      : function == Function2::kAtan2 ? mpfr_atan2(out, x, y, MPFR_RNDZ)
                                                      : mpfr_atan2pi(out, x, y, MPFR_RNDZ);
  ExactNumber number = WithExceptions(out, ternary);
  number.flags = a.flags | b.flags;
  return number;
}

void LeadingWords(Constant constant, uint64_t words[8]) {
  Number x(512);
  if (constant == Constant::kLn2) {
    mpfr_const_log2(x, MPFR_RNDZ);
  } else {
    Number exact(700);
    mpfr_const_pi(exact, MPFR_RNDN);
    if (constant == Constant::kInverseRootTwoPi) {
      mpfr_mul_2ui(exact, exact, 1, MPFR_RNDN);
      mpfr_rec_sqrt(exact, exact, MPFR_RNDN);
    } else if (constant == Constant::kTwoOverPi) {
      mpfr_ui_div(exact, 2, exact, MPFR_RNDN);
    }
    mpfr_set(x, exact, MPFR_RNDZ);
  }
  mpz_t integer;
  mpz_init(integer);
  mpfr_get_z_2exp(integer, x);
  mpz_export(words, nullptr, 1, sizeof(uint64_t), 0, 0, integer);
  mpz_clear(integer);
}

}  // namespace oracle
