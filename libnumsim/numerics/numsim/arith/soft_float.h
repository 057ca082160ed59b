// SoftFloat: a value type for any format, for code written like code for float.
//
//   SoftFloat<kE4M3fn> x(1.5f), y(3);
//   float z = static_cast<float>(x * y + x);      // each operation rounded once, to nearest even
//
// Every result is that of arith/arith.h with rounding to nearest even and Overflow::kNonsaturate;
// flags are dropped. Formats keep their own rules. Without infinity, an overflow becomes NaN or the
// largest value. Without -0, a negative zero becomes +0. In an unsigned format, a negative result
// becomes NaN or the least value. Without NaN, a NaN becomes the largest value.
// Conversions in both directions are explicit, so mixed expressions do not compile.
#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <type_traits>

#include "numsim/arith/arith.h"
#include "numsim/arith/elementary.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_spec.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"

namespace numsim {

// A number of the format kSpec, for code that is written like code for float: each operation rounds once, to nearest
// even, and nothing saturates.
template <FormatSpec kSpec>
class SoftFloat {
 public:
  // The smallest unsigned type that holds a code.
  using Code =
      std::conditional_t<kSpec.StorageBytes() == 1,
                         uint8_t,
                         std::conditional_t<kSpec.StorageBytes() == 2, uint16_t, uint32_t>>;
  // The format of the numbers.
  static constexpr FormatSpec kFormat = kSpec;

  // Code 0: zero, or the least value in e8m0fnu, which has no zero.
  constexpr SoftFloat() = default;
  explicit SoftFloat(float value) noexcept
      : SoftFloat(EncodeF32(Plan(), std::bit_cast<uint32_t>(value), 0), Raw{}) {}
  explicit SoftFloat(double value) noexcept
      : SoftFloat(EncodeF64(Plan(), std::bit_cast<uint64_t>(value), 0), Raw{}) {}
  template <std::integral T>
  explicit SoftFloat(T value) noexcept : SoftFloat(FromInteger(value), Raw{}) {}
  // Converts a value of another format. A NaN keeps its sign if this format has NaNs of both signs.
  template <FormatSpec kOther>
  requires(!(kOther == kSpec)) explicit SoftFloat(SoftFloat<kOther> value) noexcept
      : SoftFloat(Convert(value.ToOperand(), Plan()).code, Raw{}) {}

  // Requires code <= kFormat.CodeMask().
  static constexpr SoftFloat FromCode(uint32_t code) noexcept { return SoftFloat(code, Raw{}); }
  constexpr Code code() const noexcept { return code_; }
  constexpr Operand ToOperand() const noexcept { return {kSpec, code_}; }

  // Exact.
  explicit operator float() const noexcept { return Decode(kSpec, code_); }
  explicit operator double() const noexcept { return static_cast<double>(Decode(kSpec, code_)); }

  friend SoftFloat operator+(SoftFloat a, SoftFloat b) noexcept {
    return FromCode(Add(a.ToOperand(), b.ToOperand(), Plan()).code);
  }
  friend SoftFloat operator-(SoftFloat a, SoftFloat b) noexcept {
    return FromCode(Subtract(a.ToOperand(), b.ToOperand(), Plan()).code);
  }
  friend SoftFloat operator*(SoftFloat a, SoftFloat b) noexcept {
    return FromCode(Multiply(a.ToOperand(), b.ToOperand(), Plan()).code);
  }
  friend SoftFloat operator/(SoftFloat a, SoftFloat b) noexcept {
    return FromCode(Divide(a.ToOperand(), b.ToOperand(), Plan()).code);
  }
  friend constexpr SoftFloat operator+(SoftFloat a) noexcept { return a; }
  friend SoftFloat operator-(SoftFloat a) noexcept { return FromCode(Negate(a.ToOperand()).code); }
  SoftFloat& operator+=(SoftFloat b) noexcept { return *this = *this + b; }
  SoftFloat& operator-=(SoftFloat b) noexcept { return *this = *this - b; }
  SoftFloat& operator*=(SoftFloat b) noexcept { return *this = *this * b; }
  SoftFloat& operator/=(SoftFloat b) noexcept { return *this = *this / b; }

  // Compares values: -0 equals +0, and no comparison except != holds for a NaN.
  friend bool operator==(SoftFloat a, SoftFloat b) noexcept {
    return Compare(a.ToOperand(), b.ToOperand()) == Relation::kEqual;
  }
  friend std::partial_ordering operator<=>(SoftFloat a, SoftFloat b) noexcept {
    switch (Compare(a.ToOperand(), b.ToOperand())) {
      case Relation::kLess:
        return std::partial_ordering::less;
      case Relation::kEqual:
        return std::partial_ordering::equivalent;
      case Relation::kGreater:
        return std::partial_ordering::greater;
      case Relation::kUnordered:
        break;
    }
    return std::partial_ordering::unordered;
  }

  // Found by argument-dependent lookup, as in `using std::sqrt; sqrt(x)` in generic code.
  friend SoftFloat abs(SoftFloat a) noexcept { return FromCode(Absolute(a.ToOperand()).code); }
  friend SoftFloat sqrt(SoftFloat a) noexcept {
    return FromCode(SquareRoot(a.ToOperand(), Plan()).code);
  }
  // a * b + c, rounded once.
  friend SoftFloat fma(SoftFloat a, SoftFloat b, SoftFloat c) noexcept {
    return FromCode(FusedMultiplyAdd(a.ToOperand(), b.ToOperand(), c.ToOperand(), Plan()).code);
  }
  // The elementary functions of arith/elementary.h, rounded once.
  friend SoftFloat exp(SoftFloat a) noexcept { return Applied(ElementaryFunction::kExp, a); }
  friend SoftFloat exp2(SoftFloat a) noexcept { return Applied(ElementaryFunction::kExp2, a); }
  friend SoftFloat log(SoftFloat a) noexcept { return Applied(ElementaryFunction::kLog, a); }
  friend SoftFloat log2(SoftFloat a) noexcept { return Applied(ElementaryFunction::kLog2, a); }
  friend SoftFloat tanh(SoftFloat a) noexcept { return Applied(ElementaryFunction::kTanh, a); }
  // minimum and maximum of [IEEE754]: a NaN wins, and -0 is less than +0.
  friend SoftFloat min(SoftFloat a, SoftFloat b) noexcept {
    return Chosen(Extremum::kMinimum, a, b);
  }
  // As min: the larger of a and b.
  friend SoftFloat max(SoftFloat a, SoftFloat b) noexcept {
    return Chosen(Extremum::kMaximum, a, b);
  }
  // minimumNumber and maximumNumber of [IEEE754]: a number wins over a NaN.
  friend SoftFloat fmin(SoftFloat a, SoftFloat b) noexcept {
    return Chosen(Extremum::kMinimumNumber, a, b);
  }
  // As fmin: the larger of a and b.
  friend SoftFloat fmax(SoftFloat a, SoftFloat b) noexcept {
    return Chosen(Extremum::kMaximumNumber, a, b);
  }
  // Tests of the class and of the sign. The sign of a NaN counts in formats with NaNs of both signs.
  friend constexpr bool isnan(SoftFloat a) noexcept { return a.Class() == ValueClass::kNan; }
  friend constexpr bool isinf(SoftFloat a) noexcept { return a.Class() == ValueClass::kInfinity; }
  friend constexpr bool isfinite(SoftFloat a) noexcept { return !isnan(a) && !isinf(a); }
  friend constexpr bool signbit(SoftFloat a) noexcept {
    const bool sign_is_nan = isnan(a) && !kSpec.NanHasSign();
    return (a.code_ & kSpec.SignBit()) != 0 && !sign_is_nan;
  }

  // Prints the value in decimal, like a float.
  friend std::ostream& operator<<(std::ostream& out, SoftFloat a) {
    return out << static_cast<float>(a);
  }

 private:
  struct Raw {};

  constexpr SoftFloat(uint32_t code, Raw /*tag*/) noexcept : code_(static_cast<Code>(code)) {}

  static const EncodePlan& Plan() noexcept {
    static const EncodePlan plan = MakeEncodePlan(kSpec);
    return plan;
  }
  static SoftFloat Chosen(Extremum extremum, SoftFloat a, SoftFloat b) noexcept {
    return FromCode(Choose(extremum, a.ToOperand(), b.ToOperand(), Plan()).code);
  }
  static SoftFloat Applied(ElementaryFunction function, SoftFloat a) noexcept {
    return FromCode(Elementary(function, a.ToOperand(), Plan()).code);
  }
  template <std::integral T>
  static uint32_t FromInteger(T value) noexcept {
    if constexpr (std::is_signed_v<T>) return FromInt64(value, Plan()).code;
    return FromUint64(static_cast<uint64_t>(value), Plan()).code;
  }
  constexpr ValueClass Class() const noexcept { return Classify(kSpec, code_); }

  Code code_ = 0;
};

}  // namespace numsim

#include "numsim/arith/soft_float_limits.h"  // std::numeric_limits
