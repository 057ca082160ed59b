#include "numsim/arith/internal/elementary_evaluation.h"

#include <algorithm>
#include <array>

#include "numsim/arith/internal/ball_functions.h"
#include "numsim/arith/internal/circular_evaluation.h"
#include "numsim/arith/internal/signed_ball.h"
#include "numsim/base/error.h"

namespace numsim {
namespace {

using Argument = ElementaryArgument;
using Function = ElementaryFunction;
using ball::Ball;
using ball::Exactly;
using ball::MagnitudeOf;
using ball::Ratio;
using ball::Scaled;
using ball::Signed;
using scalar::Uint128;

// Returns the base 2 logarithm if `two`, else the natural one. Requires x > 0 other than 1, and for
// base 2 no power of two. x.m has up to 61 bits.
template <int kLimbs>
Signed<kLimbs> Logarithm(const Argument& x, bool two) {
  // x = m / power 2^binade, with m / power between the square roots of 1/2 and 2.
  uint64_t power = std::bit_floor(x.m);
  int binade = x.Binade();
  if (Uint128{x.m} * x.m > 2 * Uint128{power} * power) {
    power *= 2;
    ++binade;
  }
  const Ball<kLimbs> ln2 = ball::Ln2<kLimbs>();
  const bool negative = binade < 0;
  const auto whole = static_cast<uint64_t>(negative ? -binade : binade);
  const auto integer_part = [&] { return two ? Exactly<kLimbs>(whole) : ln2 * whole; };
  if (x.m == power) return {negative, integer_part()};
  Ball<kLimbs> rest = ball::LogOfRatio<kLimbs>(x.m, power);
  if (two) rest = rest / ln2;
  const bool rest_negative = x.m < power;
  if (whole == 0) return {rest_negative, rest};
  return {negative, negative == rest_negative ? integer_part() + rest : integer_part() - rest};
}

// Returns |ln(1 + p)| for a magnitude p below 0.4, or |ln(1 - p)| if `negative`.
template <int kLimbs>
Ball<kLimbs> LogOnePlusSmall(const Ball<kLimbs>& p, bool negative) {
  const Ball<kLimbs> two = Exactly<kLimbs>(2);
  return Scaled(ball::OddSeries(p / (negative ? two - p : two + p), false), 1);
}

// Returns ln(1 + x). Requires x > -1.
template <int kLimbs>
Signed<kLimbs> LogOnePlus(const Argument& x) {
  if (x.IsBelow(-2)) return {x.negative, LogOnePlusSmall(MagnitudeOf<kLimbs>(x), x.negative)};
  if (x.IsAtLeast(8)) {  // ln x + ln(1 + 1 / x)
    const Ball<kLimbs> inverse = Exactly<kLimbs>(1) / MagnitudeOf<kLimbs>(x);
    return {false, Logarithm<kLimbs>(x, false).magnitude + LogOnePlusSmall(inverse, false)};
  }
  const uint64_t one = uint64_t{1} << std::max(-x.e, 0);  // at most 2^50
  const uint64_t m = x.e > 0 ? x.m << x.e : x.m;
  return Logarithm<kLimbs>({false, x.negative ? one - m : one + m, std::min(x.e, 0)}, false);
}

// Returns 2^x. Requires |x| < 2^20, not an integer.
template <int kLimbs>
Ball<kLimbs> PowerOf2(const Argument& x) {
  const uint64_t one = uint64_t{1} << std::min(-x.e, 63);
  const auto floor = static_cast<int>(-x.e < 64 ? x.m / one : 0);
  uint64_t fraction = -x.e < 64 ? x.m % one : x.m;
  if (!x.negative) {
    const Ball<kLimbs> f = Exactly<kLimbs>(fraction, x.e) * ball::Ln2<kLimbs>();
    return Scaled(ball::ExpOfSmall(f), floor);
  }
  const Ball<kLimbs> f =
      (Exactly<kLimbs>(1) - Exactly<kLimbs>(fraction, x.e)) * ball::Ln2<kLimbs>();
  return Scaled(ball::ExpOfSmall(f), -floor - 1);
}

template <int kLimbs>
Signed<kLimbs> ExpMinusOne(const Argument& x) {
  const Ball<kLimbs> one = Exactly<kLimbs>(1);
  const Ball<kLimbs> power = ball::Exp(MagnitudeOf<kLimbs>(x), x.negative);
  return {x.negative, x.negative ? one - power : power - one};
}

// Returns ln(1 + e^x) = max(x, 0) + ln(1 + p) with p = e^-|x|.
template <int kLimbs>
Signed<kLimbs> Softplus(const Argument& x) {
  const Ball<kLimbs> p = ball::Exp(MagnitudeOf<kLimbs>(x), true);
  bool negative;
  const Ball<kLimbs> rest =
      p.Binade() < -2 ? LogOnePlusSmall(p, false) : ball::Log(p + Exactly<kLimbs>(1), &negative);
  return {false, x.negative ? rest : MagnitudeOf<kLimbs>(x) + rest};
}

template <int kLimbs>
Signed<kLimbs> Tanh(const Argument& x) {
  const Ball<kLimbs> one = Exactly<kLimbs>(1);
  const Ball<kLimbs> power = ball::Exp(Scaled(MagnitudeOf<kLimbs>(x), 1), false);
  return {x.negative, (power - one) / (power + one)};
}

// Returns (e^x -+ e^-x) / 2.
template <int kLimbs>
Signed<kLimbs> SinhOrCosh(const Argument& x, bool sine) {
  const Ball<kLimbs> power = ball::Exp(MagnitudeOf<kLimbs>(x), false);
  const Ball<kLimbs> inverse = Exactly<kLimbs>(1) / power;
  return {sine && x.negative, Scaled(sine ? power - inverse : power + inverse, -1)};
}

// Returns artanh(x / sqrt(1 + x^2)), which is ln(x + sqrt(1 + x^2)).
template <int kLimbs>
Signed<kLimbs> ArcSinh(const Argument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x);
  const Ball<kLimbs> root = ball::Root(Exactly<kLimbs>(1) + magnitude * magnitude);
  if (x.IsBelow(-3)) return {x.negative, ball::OddSeries(magnitude / root, false)};
  bool negative;
  return {x.negative, ball::Log(magnitude + root, &negative)};
}

// Returns ln(x + sqrt(x^2 - 1)) = artanh(sqrt(x^2 - 1) / x). Requires x > 1.
template <int kLimbs>
Signed<kLimbs> ArcCosh(const Argument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x), one = Exactly<kLimbs>(1);
  const Ball<kLimbs> root = ball::Root((magnitude - one) * (magnitude + one));
  if (root.Binade() < -3) return {false, ball::OddSeries(root / magnitude, false)};
  bool negative;
  return {false, ball::Log(magnitude + root, &negative)};
}

// Requires |x| < 1.
template <int kLimbs>
Signed<kLimbs> ArcTanh(const Argument& x) {
  const Ball<kLimbs> magnitude = MagnitudeOf<kLimbs>(x), one = Exactly<kLimbs>(1);
  if (x.IsBelow(-3)) return {x.negative, ball::OddSeries(magnitude, false)};
  bool negative;
  return {x.negative, Scaled(ball::Log((one + magnitude) / (one - magnitude), &negative), -1)};
}

// Returns 1 / (1 + e^-y) = e^y / (e^y + 1), where y has the sign `negative`.
template <int kLimbs>
Ball<kLimbs> Sigmoid(const Ball<kLimbs>& y, bool negative) {
  const Ball<kLimbs> power = ball::Exp(y, negative);
  return power / (power + Exactly<kLimbs>(1));
}

// Phi(x) = 1/2 + phi(x) S, where phi(x) = e^(-x^2 / 2) / sqrt(2 pi) and S is NormalSeries of x.
template <int kLimbs>
Signed<kLimbs> Gelu(const Argument& x) {
  const Ball<kLimbs> half = Exactly<kLimbs>(1, -1);
  const Ball<kLimbs> density =
      ball::Exp(Exactly<kLimbs>(x.m * x.m, 2 * x.e - 1), true) * ball::InverseRootTwoPi<kLimbs>();
  const Ball<kLimbs> middle = density * ball::NormalSeries<kLimbs>(x.m, x.e);
  const Ball<kLimbs> probability = x.negative ? half - middle : half + middle;
  return {x.negative, MagnitudeOf<kLimbs>(x) * probability};
}

// With tanh(u) = 2 sigmoid(2u) - 1 it is x sigmoid(2u), and
// 2u = 4 / sqrt(2 pi) x (200000 + 8943 x^2) / 200000.
template <int kLimbs>
Signed<kLimbs> GeluTanh(const Argument& x) {
  const Ball<kLimbs> square = Exactly<kLimbs>(x.m * x.m, 2 * x.e);
  const Ball<kLimbs> factor = (Exactly<kLimbs>(200000) + square * 8943) / 200000;
  const Ball<kLimbs> y =
      Scaled(ball::InverseRootTwoPi<kLimbs>(), 2) * MagnitudeOf<kLimbs>(x) * factor;
  return {x.negative, MagnitudeOf<kLimbs>(x) * Sigmoid(y, x.negative)};
}

template <int kLimbs>
Signed<kLimbs> Circular(Function function, const Argument& x) {
  switch (function) {
    case Function::kSin:
      return ball::RatioOf(Ratio::kSin, ball::TurnOfRadians<kLimbs>(x), x.negative);
    case Function::kCos:
      return ball::RatioOf(Ratio::kCos, ball::TurnOfRadians<kLimbs>(x), x.negative);
    case Function::kTan:
      return ball::RatioOf(Ratio::kTan, ball::TurnOfRadians<kLimbs>(x), x.negative);
    case Function::kSinPi:
      return ball::RatioOf(Ratio::kSin, ball::TurnOfHalves<kLimbs>(x), x.negative);
    case Function::kCosPi:
      return ball::RatioOf(Ratio::kCos, ball::TurnOfHalves<kLimbs>(x), x.negative);
    case Function::kTanPi:
      return ball::RatioOf(Ratio::kTan, ball::TurnOfHalves<kLimbs>(x), x.negative);
    case Function::kArcSin:
      return ball::ArcSin<kLimbs>(x);
    case Function::kArcCos:
      return ball::ArcCos<kLimbs>(x);
    case Function::kArcTan:
      return ball::ArcTan<kLimbs>(x);
    case Function::kArcSinPi:
      return ball::InUnitsOfPi(ball::ArcSin<kLimbs>(x));
    case Function::kArcCosPi:
      return ball::InUnitsOfPi(ball::ArcCos<kLimbs>(x));
    case Function::kArcTanPi:
      return ball::InUnitsOfPi(ball::ArcTan<kLimbs>(x));
    default:
      NUMSIM_CHECK(false, "{}", ToString(function));
      return {};
  }
}

template <int kLimbs>
Signed<kLimbs> Evaluate(Function function, const Argument& x) {
  switch (function) {
    case Function::kExp:
      return {false, ball::Exp(MagnitudeOf<kLimbs>(x), x.negative)};
    case Function::kExp2:
      return {false, PowerOf2<kLimbs>(x)};
    case Function::kExpMinusOne:
      return ExpMinusOne<kLimbs>(x);
    case Function::kLog:
    case Function::kLog2:
      return Logarithm<kLimbs>(x, function == Function::kLog2);
    case Function::kLogOnePlus:
      return LogOnePlus<kLimbs>(x);
    case Function::kSoftplus:
      return Softplus<kLimbs>(x);
    case Function::kTanh:
      return Tanh<kLimbs>(x);
    case Function::kSinh:
    case Function::kCosh:
      return SinhOrCosh<kLimbs>(x, function == Function::kSinh);
    case Function::kArcSinh:
      return ArcSinh<kLimbs>(x);
    case Function::kArcCosh:
      return ArcCosh<kLimbs>(x);
    case Function::kArcTanh:
      return ArcTanh<kLimbs>(x);
    case Function::kSigmoid:
      return {false, Sigmoid(MagnitudeOf<kLimbs>(x), x.negative)};
    case Function::kGelu:
      return Gelu<kLimbs>(x);
    case Function::kGeluTanh:
      return GeluTanh<kLimbs>(x);
    default:
      return Circular<kLimbs>(function, x);
  }
}

// Calls work.operator()<limbs>().
template <typename Work>
std::optional<Unrounded> WithLimbs(int limbs, const Work& work) {
  switch (limbs) {
    case 2:
      return work.template operator()<2>();
    case 4:
      return work.template operator()<4>();
    case 8:
      return work.template operator()<8>();
    default:
      NUMSIM_CHECK(false, "{} limbs", limbs);
      return std::nullopt;
  }
}

}  // namespace

std::optional<Unrounded> EvaluateElementary(ElementaryFunction function,
                                            const ElementaryArgument& x,
                                            int limbs,
                                            const exact::Divisor& d) noexcept {
  return WithLimbs(limbs, [&]<int kLimbs>() { return ToOdd(Evaluate<kLimbs>(function, x), d); });
}

std::optional<Unrounded> EvaluatePi(bool negative,
                                    int n,
                                    int limbs,
                                    const exact::Divisor& d) noexcept {
  return WithLimbs(limbs, [&]<int kLimbs>() {
    return ToOdd(Signed<kLimbs>{negative, ball::Pi<kLimbs>(n)}, d);
  });
}

std::optional<Unrounded> EvaluateAngle(const ElementaryArgument& y,
                                       const ElementaryArgument& x,
                                       bool of_pi,
                                       int limbs,
                                       const exact::Divisor& d) noexcept {
  return WithLimbs(limbs, [&]<int kLimbs>() {
    const Signed<kLimbs> angle = ball::AngleOf<kLimbs>(y, x);
    return ToOdd(of_pi ? ball::InUnitsOfPi(angle) : angle, d);
  });
}

}  // namespace numsim
