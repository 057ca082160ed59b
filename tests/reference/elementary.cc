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

ExactNumber AtInfinity(Function function, bool negative) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      return Special(negative ? Kind::kFinite : Kind::kInfinity, false, 0);
    case Function::kLog:
    case Function::kLog2:
      if (negative) return Special(Kind::kNan, false, kInvalidFlag);
      return Special(Kind::kInfinity, false, 0);
    case Function::kTanh:
      return Finite(negative, 0, 1, 0, false);
    case Function::kSigmoid:
      return Finite(false, 0, negative ? 0 : 1, 0, false);
    case Function::kGelu:
    case Function::kGeluTanh:
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
    case Function::kTanh:
    case Function::kGelu:
    case Function::kGeluTanh:
      break;
  }
  return Finite(negative, 0, 0, 0, false);
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

ExactNumber AtFinite(Function function, double value) {
  const bool negative = value < 0;
  const double magnitude = negative ? -value : value;
  Number x(64);
  mpfr_set_d(x, value, MPFR_RNDN);
  const ExactNumber tiny = Finite(false, 0, 1, -2000, true);
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
    case Function::kGelu:
    case Function::kGeluTanh:
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
  const ExactNumber operand = ExactOf(grid, code);
  if (operand.IsNan()) return Special(Kind::kNan, false, operand.flags);
  if (operand.IsInfinite()) return AtInfinity(function, operand.negative);
  if (operand.IsZero()) return AtZero(function, operand.negative);
  const double magnitude = operand.Approximate();  // exact for a value of a code
  return AtFinite(function, operand.negative ? -magnitude : magnitude);
}

void LeadingWords(Constant constant, uint64_t words[8]) {
  Number x(512);
  if (constant == Constant::kLn2) {
    mpfr_const_log2(x, MPFR_RNDZ);
  } else {
    Number exact(700);
    mpfr_const_pi(exact, MPFR_RNDN);
    mpfr_mul_2ui(exact, exact, 1, MPFR_RNDN);
    mpfr_rec_sqrt(exact, exact, MPFR_RNDN);
    mpfr_set(x, exact, MPFR_RNDZ);
  }
  mpz_t integer;
  mpz_init(integer);
  mpfr_get_z_2exp(integer, x);
  mpz_export(words, nullptr, 1, sizeof(uint64_t), 0, 0, integer);
  mpz_clear(integer);
}

}  // namespace oracle
