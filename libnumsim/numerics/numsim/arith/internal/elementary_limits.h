// Results of elementary functions that need no evaluation: special values, exact results, and results
// at arguments so small or so large that simple bounds decide them.
#pragma once

#include <cstdint>
#include <optional>

#include "numsim/arith/elementary.h"
#include "numsim/arith/internal/elementary_evaluation.h"
#include "numsim/rounding/flags.h"

namespace numsim {

// (-1)^negative significand 2^exponent, or nearer to it than 2^-90 of it, above or below in magnitude;
// or pi 2^exponent or ln 2; or a special value.
struct Limit {
  enum class Kind : uint8_t { kNan, kInfinity, kZero, kPi, kLn2, kExactly, kJustAbove, kJustBelow };
  Kind kind = Kind::kNan;
  bool negative = false;
  int exponent = 0;
  uint64_t significand = 0;
  Flags flags = 0;

  Unrounded Number() const { return {NumberKind::kFinite, negative, exponent, significand}; }

  static Limit Zero(bool negative) { return {Kind::kZero, negative, 0, 0, 0}; }
  static Limit Pi(bool negative, int exponent) { return {Kind::kPi, negative, exponent, 0, 0}; }
  static Limit Exactly(bool negative, int exponent, uint64_t significand) {
    return {Kind::kExactly, negative, exponent, significand, 0};
  }
};

Limit LimitAtInfinity(ElementaryFunction function, bool negative) noexcept;
Limit LimitAtZero(ElementaryFunction function, bool negative) noexcept;
// Returns nothing where the function must be evaluated.
std::optional<Limit> LimitAtFinite(ElementaryFunction function,
                                   const ElementaryArgument& x) noexcept;

}  // namespace numsim
