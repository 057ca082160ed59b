#include "numsim/arith/internal/elementary_evaluation.h"

#include <algorithm>
#include <array>

#include "numsim/arith/internal/ball.h"
#include "numsim/arith/internal/ball_functions.h"
#include "numsim/base/error.h"

namespace numsim {
namespace {

using Argument = ElementaryArgument;
using Function = ElementaryFunction;
using ball::Ball;
using ball::Exactly;
using ball::Scaled;

// Returns the value rounded to odd, if the error bound leaves no doubt about the bits that are kept
// nor that others follow.
template <int kLimbs>
std::optional<Unrounded> ToOdd(bool negative, const Ball<kLimbs>& x) {
  constexpr int kCut = Ball<kLimbs>::kBits - Unrounded::kKeptBits;
  const int up = Ball<kLimbs>::kBits - x.bits + 1;  // the error is below (error + 1) 2^up
  if (x.bits == 0 || up + static_cast<int>(std::bit_width(x.error + 1)) > kCut) return std::nullopt;
  std::array<uint64_t, kLimbs> error = {x.error + 1}, low = x.limbs, high = x.limbs;
  error = ball::ShiftedUp(error, up);
  ball::SubtractFrom(low, error);
  if (ball::AddTo(high, error)) return std::nullopt;
  const uint64_t kept = ball::ShiftedDown(low, kCut)[0];
  if (kept != ball::ShiftedDown(high, kCut)[0]) return std::nullopt;
  return Unrounded{NumberKind::kFinite, negative, x.exponent + kCut - 1, kept << 1 | 1};
}

template <int kLimbs>
Ball<kLimbs> Magnitude(const Argument& x) {
  return Exactly<kLimbs>(x.m, x.e);
}

// Returns the base 2 logarithm if `two`, else the natural one. Requires x > 0 other than 1, and for
// base 2 no power of two.
template <int kLimbs>
std::optional<Unrounded> Logarithm(const Argument& x, bool two) {
  // x = m / power 2^binade, with m / power between the square roots of 1/2 and 2.
  uint64_t power = std::bit_floor(x.m);
  int binade = x.Binade();
  if (x.m * x.m > 2 * power * power) {
    power *= 2;
    ++binade;
  }
  const Ball<kLimbs> ln2 = ball::Ln2<kLimbs>();
  const bool negative = binade < 0;
  const auto whole = static_cast<uint64_t>(negative ? -binade : binade);
  const auto integer_part = [&] { return two ? Exactly<kLimbs>(whole) : ln2 * whole; };
  if (x.m == power) return ToOdd(negative, integer_part());
  Ball<kLimbs> rest = ball::LogOfRatio<kLimbs>(x.m, power);
  if (two) rest = rest / ln2;
  const bool rest_negative = x.m < power;
  if (whole == 0) return ToOdd(rest_negative, rest);
  return ToOdd(negative, negative == rest_negative ? integer_part() + rest : integer_part() - rest);
}

// Returns 2^x. Requires |x| < 2^20, not an integer.
template <int kLimbs>
std::optional<Unrounded> PowerOf2(const Argument& x) {
  const uint64_t one = uint64_t{1} << std::min(-x.e, 63);
  const auto floor = static_cast<int>(-x.e < 64 ? x.m / one : 0);
  uint64_t fraction = -x.e < 64 ? x.m % one : x.m;
  if (!x.negative) {
    const Ball<kLimbs> f = Exactly<kLimbs>(fraction, x.e) * ball::Ln2<kLimbs>();
    return ToOdd(false, Scaled(ball::ExpOfSmall(f), floor));
  }
  const Ball<kLimbs> f =
      (Exactly<kLimbs>(1) - Exactly<kLimbs>(fraction, x.e)) * ball::Ln2<kLimbs>();
  return ToOdd(false, Scaled(ball::ExpOfSmall(f), -floor - 1));
}

template <int kLimbs>
std::optional<Unrounded> Tanh(const Argument& x) {
  const Ball<kLimbs> one = Exactly<kLimbs>(1);
  const Ball<kLimbs> power = ball::Exp(Scaled(Magnitude<kLimbs>(x), 1), false);
  return ToOdd(x.negative, (power - one) / (power + one));
}

// Returns 1 / (1 + e^-y) = e^y / (e^y + 1), where y has the sign `negative`.
template <int kLimbs>
Ball<kLimbs> Sigmoid(const Ball<kLimbs>& y, bool negative) {
  const Ball<kLimbs> power = ball::Exp(y, negative);
  return power / (power + Exactly<kLimbs>(1));
}

// Phi(x) = 1/2 + phi(x) S, where phi(x) = e^(-x^2 / 2) / sqrt(2 pi) and S is NormalSeries of x.
template <int kLimbs>
std::optional<Unrounded> Gelu(const Argument& x) {
  const Ball<kLimbs> half = Exactly<kLimbs>(1, -1);
  const Ball<kLimbs> density =
      ball::Exp(Exactly<kLimbs>(x.m * x.m, 2 * x.e - 1), true) * ball::InverseRootTwoPi<kLimbs>();
  const Ball<kLimbs> middle = density * ball::NormalSeries<kLimbs>(x.m, x.e);
  const Ball<kLimbs> probability = x.negative ? half - middle : half + middle;
  return ToOdd(x.negative, Magnitude<kLimbs>(x) * probability);
}

// With tanh(u) = 2 sigmoid(2u) - 1 it is x sigmoid(2u), and
// 2u = 4 / sqrt(2 pi) x (200000 + 8943 x^2) / 200000.
template <int kLimbs>
std::optional<Unrounded> GeluTanh(const Argument& x) {
  const Ball<kLimbs> square = Exactly<kLimbs>(x.m * x.m, 2 * x.e);
  const Ball<kLimbs> factor = (Exactly<kLimbs>(200000) + square * 8943) / 200000;
  const Ball<kLimbs> y =
      Scaled(ball::InverseRootTwoPi<kLimbs>(), 2) * Magnitude<kLimbs>(x) * factor;
  return ToOdd(x.negative, Magnitude<kLimbs>(x) * Sigmoid(y, x.negative));
}

template <int kLimbs>
std::optional<Unrounded> Evaluate(Function function, const Argument& x) {
  switch (function) {
    case Function::kExp:
      return ToOdd(false, ball::Exp(Magnitude<kLimbs>(x), x.negative));
    case Function::kExp2:
      return PowerOf2<kLimbs>(x);
    case Function::kLog:
    case Function::kLog2:
      return Logarithm<kLimbs>(x, function == Function::kLog2);
    case Function::kTanh:
      return Tanh<kLimbs>(x);
    case Function::kSigmoid:
      return ToOdd(false, Sigmoid(Magnitude<kLimbs>(x), x.negative));
    case Function::kGelu:
      return Gelu<kLimbs>(x);
    case Function::kGeluTanh:
      break;
  }
  return GeluTanh<kLimbs>(x);
}

}  // namespace

std::optional<Unrounded> EvaluateElementary(ElementaryFunction function,
                                            const ElementaryArgument& x,
                                            int limbs) noexcept {
  switch (limbs) {
    case 2:
      return Evaluate<2>(function, x);
    case 4:
      return Evaluate<4>(function, x);
    case 8:
      return Evaluate<8>(function, x);
    default:
      NUMSIM_CHECK(false, "{} limbs", limbs);
      return std::nullopt;
  }
}

}  // namespace numsim
