#include "numsim/arith/shared/exact_elementary.h"

#include <bit>
#include <optional>

#include "numsim/arith/internal/elementary_evaluation.h"
#include "numsim/arith/internal/elementary_limits.h"
#include "numsim/base/error.h"

namespace numsim::exact {
namespace {

using Argument = ElementaryArgument;
using Function = ElementaryFunction;

// Evaluates with more and more bits until `at` gives a result. `what` is for the message of a result
// that no number of bits decides.
template <typename Evaluate>
Unrounded Decided(const Evaluate& at, std::string_view what) {
  for (int limbs : kElementaryLimbs) {
    if (const auto result = at(limbs)) return *result;
  }
  NUMSIM_CHECK(false, "{}: 512 bits do not decide the result", what);
  return {};
}

Outcome Divided(const Wide& x, const Divisor& d) { return {Narrow(Quotient(x, d))}; }

// Returns the unrounded number of a limit divided by d.
Outcome Deliver(const Limit& limit, const Divisor& d) {
  switch (limit.kind) {
    case Limit::Kind::kNan:
      return {{NumberKind::kNan, false, 0, 0}, limit.flags};
    case Limit::Kind::kInfinity:
      return {{NumberKind::kInfinity, limit.negative, 0, 0}, limit.flags};
    case Limit::Kind::kZero:
      return {{NumberKind::kFinite, limit.negative, 0, 0}};
    case Limit::Kind::kPi:
      return {Decided(
          [&](int limbs) { return EvaluatePi(limit.negative, limit.exponent, limbs, d); }, "pi")};
    case Limit::Kind::kLn2:
      return {Decided(
          [&](int limbs) {
            return EvaluateElementary(Function::kLog, {false, 1, 1}, limbs, d);
          },
          "ln 2")};
    case Limit::Kind::kExactly:
      return Divided(WideOf(limit.Number()), d);
    case Limit::Kind::kJustAbove:
      return Divided(JustAbove(limit.Number()), d);
    case Limit::Kind::kJustBelow:
      break;
  }
  return Divided(JustBelow(limit.Number()), d);
}

Outcome AtFinite(Function function, const Argument& x, const Divisor& d) {
  if (const auto limit = LimitAtFinite(function, x)) return Deliver(*limit, d);
  if (function == Function::kRsqrt) return {Narrow(ReciprocalRoot(x.m, x.e, d))};
  return {Decided([&](int limbs) { return EvaluateElementary(function, x, limbs, d); },
                  numsim::ToString(function))};
}

Argument ArgumentOf(const Unrounded& x) { return {x.negative, x.significand, x.exponent}; }
bool IsZero(const Unrounded& x) { return x.kind == NumberKind::kFinite && x.significand == 0; }

// The angle of a point in units of pi / 4 from 0 to 4, if it is such a multiple; y != 0 or x != 0.
std::optional<int> Eighths(const Unrounded& y, const Unrounded& x) {
  const bool left = x.negative;
  const bool high = y.kind == NumberKind::kInfinity, wide = x.kind == NumberKind::kInfinity;
  if (high && wide) return left ? 3 : 1;
  if (high || IsZero(x)) return 2;
  if (wide || IsZero(y)) return left ? 4 : 0;
  const Argument a = ArgumentOf(y), b = ArgumentOf(x);
  const bool same =
      a.Binade() == b.Binade() && a.m << std::countl_zero(a.m) == b.m << std::countl_zero(b.m);
  if (same) return left ? 3 : 1;
  return std::nullopt;
}

// Returns atan t, which is below t = y / x by less than 2^-140 of it, for y / x < 2^-69, divided by d.
// Cutting t / d gives the same 62 bits unless t / d ends before: the bits that follow are those of a
// fraction over less than 2^72.
Outcome TinyAngle(const Argument& y, const Argument& x, const Divisor& d) {
  const Unrounded numerator = {NumberKind::kFinite, y.negative, y.e, y.m};
  const Wide t = Quotient(WideOf(numerator), {x.m, x.e});
  if (t.more) return Divided(t, d);
  const int low = std::countr_zero(x.m);  // t is dyadic: the odd part of x divides y
  return Divided(JustBelow({NumberKind::kFinite, y.negative, y.e - x.e - low, y.m / (x.m >> low)}),
                 d);
}

constexpr int kFar = -97;

// Returns a number just above or below 2^n in magnitude, divided by d.
Outcome Near(bool negative, int n, bool above, const Divisor& d) {
  const Unrounded power = {NumberKind::kFinite, negative, n, 1};
  return Divided(above ? JustAbove(power) : JustBelow(power), d);
}

}  // namespace

Outcome Elementary(ElementaryFunction function, const Unrounded& x, const Divisor& d) noexcept {
  if (x.kind == NumberKind::kNan) return Deliver(Limit{}, d);
  if (x.kind == NumberKind::kInfinity) return Deliver(LimitAtInfinity(function, x.negative), d);
  if (IsZero(x)) return Deliver(LimitAtZero(function, x.negative), d);
  return AtFinite(function, ArgumentOf(x), d);
}

Outcome Angle(const Unrounded& y, const Unrounded& x, bool of_pi, const Divisor& d) noexcept {
  if (x.kind == NumberKind::kNan || y.kind == NumberKind::kNan) return Deliver(Limit{}, d);
  const bool both_zero = IsZero(x) && IsZero(y);
  const std::optional<int> eighths =
      both_zero ? std::optional<int>(x.negative ? 4 : 0) : Eighths(y, x);
  if (eighths == 0) return Deliver(Limit::Zero(y.negative), d);
  if (eighths == 3 && !of_pi) {  // 3 pi / 4
    return {Decided(
        [&](int limbs) {
          return EvaluateAngle({y.negative, 1, 0}, {true, 1, 0}, false, limbs, d);
        },
        "atan2")};
  }
  if (eighths) {
    if (of_pi) return Deliver(Limit::Exactly(y.negative, -2, static_cast<uint64_t>(*eighths)), d);
    return Deliver(Limit::Pi(y.negative,
                             static_cast<int>(std::bit_width(static_cast<unsigned>(*eighths))) - 3),
                   d);
  }
  const Argument a = ArgumentOf(y), b = ArgumentOf(x);
  const int ratio = a.Binade() - b.Binade();  // log2 of |y / x|, to 1
  if (ratio < -70 && !x.negative && !of_pi) return TinyAngle(a, b, d);
  if (of_pi && x.negative && ratio < kFar) return Near(y.negative, 0, false, d);
  if (of_pi && ratio > -kFar) return Near(y.negative, -1, x.negative, d);
  return {Decided([&](int limbs) { return EvaluateAngle(a, b, of_pi, limbs, d); },
                  of_pi ? "atan2pi" : "atan2")};
}

Outcome Hypotenuse(const Unrounded& x, const Unrounded& y, const Divisor& d) noexcept {
  if (x.kind == NumberKind::kInfinity || y.kind == NumberKind::kInfinity) {
    return {{NumberKind::kInfinity, false, 0, 0}};
  }
  if (x.kind == NumberKind::kNan || y.kind == NumberKind::kNan) return Deliver(Limit{}, d);
  const Wide a = WideOf(x), b = WideOf(y);
  return Divided(Root(Sum(Product(a, a), Product(b, b))), d);
}

}  // namespace numsim::exact
