// How a scale comes about from an absolute maximum.
#pragma once

#include <cstdint>
#include <string_view>

#include "numsim/formats/format_spec.h"

namespace numsim {

// With A the absolute maximum and M the format's largest finite value. A value is
// code value * scale; quantising multiplies by `multiplier`, the inverse of the scale.
enum class ScaleRule : uint8_t {
  // scale = fl(A / M), multiplier = fl(M / A), both rounded to float32. For int8 this is
  // round(127 / absmax * x), Eq. 1 of [SwitchBack].
  kAbsmax,
  // scale = 2^floor(log2(A / M)): the power of two next below; values above M * scale saturate.
  kPow2Floor,
  // scale = 2^ceil(log2(A / M)): the power of two next above; nothing saturates.
  kPow2Ceil,
  // The shared scale of an MX block: 2^(floor(log2 A) - emax), emax the exponent of M, clamped to
  // E8M0's 2^-127 .. 2^127 [OCP-MX]. Values above M * scale saturate.
  kE8m0,
  // scale 1: a plain cast.
  kNone,
};

struct Scale {
  float scale = 1;
  float multiplier = 1;
};

// Returns the scale of elements whose finite absolute maximum is `absmax` (>= 0, finite).
// absmax == 0 gives scale 1. Where absmax / M is below 2^-126, absmax is replaced by M * 2^-126, so
// that the multiplier is finite (E8M0 alone goes down to 2^-127, exact in float32 as a subnormal).
// Scales are finite: a power of two is at most 2^127, also under kPow2Ceil, and absmax / M at most
// float32's largest value.
Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept;

// MakeScale for many maxima: what depends on the format alone is worked out once.
class ScaleMaker {
 public:
  ScaleMaker(const FormatSpec& format, ScaleRule rule) noexcept;

  Scale operator()(float absmax) const noexcept;

 private:
  ScaleRule rule_;
  float max_;
  int max_exponent_;
};

// absmax, pow2-floor, pow2-ceil, e8m0, none.
std::string_view Name(ScaleRule rule);
ScaleRule ParseScaleRule(std::string_view text);

}  // namespace numsim
