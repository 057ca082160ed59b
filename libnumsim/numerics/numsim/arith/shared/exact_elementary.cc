#include "numsim/arith/shared/exact_elementary.h"

#include <bit>
#include <optional>

#include "numsim/arith/internal/elementary_evaluation.h"
#include "numsim/base/error.h"

namespace numsim::exact {
namespace {

using Argument = ElementaryArgument;
using Function = ElementaryFunction;

Unrounded Number(bool negative, int exponent, uint64_t significand) {
  return {NumberKind::kFinite, negative, exponent, significand};
}
Unrounded Zero(bool negative) { return Number(negative, 0, 0); }
Unrounded Infinity(bool negative) { return {NumberKind::kInfinity, negative, 0, 0}; }
Unrounded Nan() { return {NumberKind::kNan, false, 0, 0}; }
Unrounded PowerOfTwo(int exponent) { return Number(false, exponent, 1); }
// The numbers that stand for all that are too large or too small for any format.
Unrounded Huge() { return Number(false, 1 << 16, (uint64_t{1} << 62) | 1); }
Unrounded Tiny(bool negative) { return Number(negative, -(1 << 16), (uint64_t{1} << 62) | 1); }

// Return the unrounded number for a result whose magnitude differs from that of x 2^n by less than
// 2^-62 of it, upwards or downwards.
Unrounded JustAbove(const Argument& x, int n) {
  const int up = std::countl_zero(x.m) - 1;
  return Number(x.negative, x.e + n - up, (x.m << up) | 1);
}
Unrounded JustBelow(const Argument& x, int n) {
  const int up = std::countl_zero(x.m) - 1;
  const uint64_t m = x.m << up;
  if (std::has_single_bit(m)) return Number(x.negative, x.e + n - up - 1, 2 * m - 1);
  return Number(x.negative, x.e + n - up, m - 1);
}
constexpr Argument kOne = {false, 1, 0};

// Returns the results that are no irrational numbers.
std::optional<Outcome> ExactResult(Function function, const Argument& x) {
  const bool integer = x.e + std::countr_zero(x.m) >= 0;
  const bool power_of_two = std::has_single_bit(x.m);
  switch (function) {
    case Function::kExp2:
      if (!integer || x.IsAtLeast(9)) return std::nullopt;
      return Outcome{
          PowerOfTwo(static_cast<int>(x.e < 0 ? x.m >> -x.e : x.m << x.e) * (x.negative ? -1 : 1))};
    case Function::kLog:
    case Function::kLog2: {
      if (x.negative) return Outcome{Nan(), kInvalid};
      if (!power_of_two || (function == Function::kLog && x.Binade() != 0)) return std::nullopt;
      const int n = x.Binade();
      return Outcome{Number(n < 0, 0, static_cast<uint64_t>(n < 0 ? -n : n))};
    }
    default:
      return std::nullopt;
  }
}

// Returns the results of very small and very large arguments, which simple bounds decide.
std::optional<Unrounded> FromBounds(Function function, const Argument& x) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      // |e^x - 1| < 2^-62.
      if (x.IsBelow(-63)) return x.negative ? JustBelow(kOne, 0) : JustAbove(kOne, 0);
      if (x.IsAtLeast(9)) return x.negative ? Tiny(false) : Huge();
      return std::nullopt;
    case Function::kLog:
    case Function::kLog2:
      return std::nullopt;
    case Function::kTanh:
      // x - x^3 / 3 < tanh x < x, and 1 - 2 e^-2x < tanh x < 1.
      if (x.IsBelow(-32)) return JustBelow(x, 0);
      if (x.IsAtLeast(5)) return JustBelow({x.negative, 1, 0}, 0);
      return std::nullopt;
    case Function::kSigmoid:
      // |sigmoid(x) - 1/2| < |x| / 4, and 1 - e^-x < sigmoid(x) < 1.
      if (x.IsBelow(-62)) return x.negative ? JustBelow(kOne, -1) : JustAbove(kOne, -1);
      if (x.negative && x.IsAtLeast(9)) return Tiny(false);
      if (!x.negative && x.IsAtLeast(6)) return JustBelow(kOne, 0);
      return std::nullopt;
    case Function::kGelu:
    case Function::kGeluTanh:
      // Both are x / 2 (1 + t) with 0 < t / x < 1, and x (1 - t) with t < e^(-x^2 / 2) for x >= 16.
      if (x.IsBelow(-64)) return x.negative ? JustBelow(x, -1) : JustAbove(x, -1);
      if (x.IsAtLeast(4)) return x.negative ? Tiny(true) : JustBelow(x, 0);
      return std::nullopt;
  }
  return std::nullopt;
}

Outcome AtFinite(Function function, const Argument& x) {
  if (const auto exact = ExactResult(function, x)) return *exact;
  if (const auto bounded = FromBounds(function, x)) return {*bounded};
  for (int limbs : kElementaryLimbs) {
    if (const auto result = EvaluateElementary(function, x, limbs)) return {*result};
  }
  NUMSIM_CHECK(false, "{} of {} * 2^{}", numsim::ToString(function), x.m, x.e);
  return {Nan()};
}

Outcome AtZero(Function function, bool negative) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      return {PowerOfTwo(0)};
    case Function::kLog:
    case Function::kLog2:
      return {Infinity(true), kDivideByZero};
    case Function::kSigmoid:
      return {PowerOfTwo(-1)};
    case Function::kTanh:
    case Function::kGelu:
    case Function::kGeluTanh:
      break;
  }
  return {Zero(negative)};
}

Outcome AtInfinity(Function function, bool negative) {
  switch (function) {
    case Function::kExp:
    case Function::kExp2:
      return {negative ? Zero(false) : Infinity(false)};
    case Function::kLog:
    case Function::kLog2:
      if (negative) return {Nan(), kInvalid};
      return {Infinity(false)};
    case Function::kTanh:
      return {Number(negative, 0, 1)};
    case Function::kSigmoid:
      return {negative ? Zero(false) : PowerOfTwo(0)};
    case Function::kGelu:
    case Function::kGeluTanh:
      break;
  }
  return {negative ? Zero(true) : Infinity(false)};
}

}  // namespace

Outcome Elementary(ElementaryFunction function, const Unrounded& x) noexcept {
  if (x.kind == NumberKind::kNan) return {Nan()};
  if (x.kind == NumberKind::kInfinity) return AtInfinity(function, x.negative);
  if (x.significand == 0) return AtZero(function, x.negative);
  return AtFinite(function, {x.negative, x.significand, x.exponent});
}

}  // namespace numsim::exact
