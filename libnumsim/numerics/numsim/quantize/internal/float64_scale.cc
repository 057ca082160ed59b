#include "numsim/quantize/internal/float64_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "numsim/arith/shared/exact.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/rounding/shared/float64_bits.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

bool IsFloat32(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

Unrounded Exact(double x) { return ExactFloat64(std::bit_cast<uint64_t>(x)); }

float RoundedToFloat32(const Unrounded& x) {
  static const EncodePlan plan = MakeEncodePlan(kFp32);
  return std::bit_cast<float>(EncodeUnrounded(plan, x).code);
}

// Return a / b and a b, rounded once to the nearest float32. Require positive numbers.
float Quotient(double a, double b) {
  return RoundedToFloat32(exact::Quotient(Exact(a), Exact(b)).value);
}
float Product(double a, double b) {
  return RoundedToFloat32(exact::Product(Exact(a), Exact(b)).value);
}

[[noreturn]] void RefuseScale(const FormatSpec& format, ScaleRule rule, double absmax) {
  throw ScaleError(fmt::format(
      "the absolute maximum {} needs a scale beyond float32 for {} under the rule {}; the rule none "
      "takes it",
      absmax,
      ToString(format),
      ToString(rule)));
}

// Returns floor(log2(a / b)) for positive numbers.
int FloorLog2Ratio(double a, double b) {
  int x = 0, y = 0;
  const double a_part = std::frexp(a, &x), b_part = std::frexp(b, &y);
  return x - y - (a_part < b_part ? 1 : 0);
}

Scale PowerOfTwo(const FormatSpec& format, ScaleRule rule, double absmax, int exponent) {
  if (exponent > 127) RefuseScale(format, rule, absmax);
  const int bounded = std::max(exponent, -127);
  return {std::ldexp(1.0f, bounded), std::ldexp(1.0f, -bounded)};
}

// The factors of the two levels, as ScaleRule::kNvfp4 has them.
float Encode(const FormatSpec& format, ScaleRule rule, double absmax) {
  const float max = MaxFinite(format);
  const float encode = Quotient(static_cast<double>(448 * max), absmax);
  if (encode == 0 || std::isinf(1 / encode)) RefuseScale(format, rule, absmax);
  return std::min(encode, std::numeric_limits<float>::max());
}

float RoundedToE4m3(float x) {
  static const EncodePlan plan = MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate);
  const Unrounded exact = ExactFloat64(std::bit_cast<uint64_t>(static_cast<double>(x)));
  return Decode(kE4M3fn, EncodeUnrounded(plan, exact).code);
}

Scale OneLevel(double absmax, double max) {
  const float scale = RoundedToE4m3(Quotient(absmax, max));
  return scale == 0 ? Scale{0, 0} : Scale{scale, 1 / scale};
}

Scale TwoLevels(const FormatSpec& format, ScaleRule rule, Float64Maxima absmax) {
  const float encode = Encode(format, rule, absmax.tensor), max = MaxFinite(format);
  float share = 0;
  if (rule == ScaleRule::kNvfp4Inverse) {
    share = Product(absmax.group, static_cast<double>(encode * (1 / max)));
  } else {
    const float ratio = Quotient(absmax.group, static_cast<double>(max));
    if (std::isinf(ratio)) RefuseScale(format, rule, absmax.group);
    share = ratio * encode;
  }
  const float scale = RoundedToE4m3(share) * (1 / encode);
  if (scale == 0) return {0, 0};
  return {scale, std::min(1 / scale, std::numeric_limits<float>::max())};
}

}  // namespace

Scale ScaleOfFloat64(const FormatSpec& format, ScaleRule rule, Float64Maxima absmax) {
  if (IsOnlyForHost(rule)) {
    throw ScaleError(
        fmt::format("the rule {} is for elements of float32 and has no float64", ToString(rule)));
  }
  if (format.IsTable() && (rule == ScaleRule::kE8m0Even || rule == ScaleRule::kE8m0Ulp ||
                           rule == ScaleRule::kE8m0ThreeEighths)) {
    throw ScaleError(fmt::format(
        "the rule {} needs a format with mantissa bits, not {}", ToString(rule), ToString(format)));
  }
  if (rule == ScaleRule::kNone || absmax.group == 0) {
    if (!TakesTensorMaximum(rule) && rule != ScaleRule::kE4m3) return {};
    return {0, 0};
  }
  const bool two_levels = TakesTensorMaximum(rule);
  if (IsFloat32(absmax.group) && (!two_levels || IsFloat32(absmax.tensor))) {
    const ScaleFactory maker(format, rule);
    const auto group = static_cast<float>(absmax.group);
    return two_levels ? maker.ForTensor(static_cast<float>(absmax.tensor))(group) : maker(group);
  }
  if (two_levels) return TwoLevels(format, rule, absmax);
  const auto max = static_cast<double>(MaxFinite(format));
  switch (rule) {
    case ScaleRule::kAbsmax: {
      const double bounded = std::max(absmax.group, max * 0x1p-126);
      const Scale scale = {Quotient(bounded, max), Quotient(max, bounded)};
      if (std::isinf(scale.scale) || scale.inv_scale == 0) {
        RefuseScale(format, rule, absmax.group);
      }
      return scale;
    }
    case ScaleRule::kPow2Floor:
      return PowerOfTwo(format, rule, absmax.group, FloorLog2Ratio(absmax.group, max));
    case ScaleRule::kPow2Ceil: {
      int unused = 0;
      const bool power = std::frexp(absmax.group, &unused) == std::frexp(max, &unused);
      const int e = FloorLog2Ratio(absmax.group, max) + (power ? 0 : 1);
      return PowerOfTwo(format, rule, absmax.group, e);
    }
    case ScaleRule::kE8m0:
      return PowerOfTwo(
          format, rule, absmax.group, std::ilogb(absmax.group) - LargestExponent(format));
    case ScaleRule::kE8m0Even:
    case ScaleRule::kE8m0Ulp:
    case ScaleRule::kE8m0ThreeEighths: {
      const double eighths = rule == ScaleRule::kE8m0Even ? 4 : rule == ScaleRule::kE8m0Ulp ? 8 : 3;
      const int e = std::ilogb(absmax.group);
      // The sum with the part of an ulp reaches the next binade; the subtraction is exact.
      const double carries = 2 - std::ldexp(eighths / 8, -format.mantissa_bits);
      const bool carry = std::ldexp(absmax.group, -e) >= carries;
      return PowerOfTwo(format, rule, absmax.group, e + (carry ? 1 : 0) - LargestExponent(format));
    }
    case ScaleRule::kE8m0Ceil: {
      const int e = std::ilogb(absmax.group);
      const bool power = std::ldexp(absmax.group, -e) == 1;
      return PowerOfTwo(format, rule, absmax.group, e + (power ? 0 : 1) - LargestExponent(format));
    }
    case ScaleRule::kE4m3:
      return OneLevel(absmax.group, max);
    case ScaleRule::kNone:
    case ScaleRule::kNvfp4:
    case ScaleRule::kFourOverSixMae:
    case ScaleRule::kFourOverSixMse:
    case ScaleRule::kNvfp4Inverse:
    case ScaleRule::kNvfp4Row:
    case ScaleRule::kMsEden:
      break;  // handled above
  }
  NUMSIM_CHECK(false, "scale rule {}", static_cast<int>(rule));
  return {};
}

float TensorScaleOfFloat64(const FormatSpec& format, ScaleRule rule, double absmax) {
  if (absmax == 0 || IsFloat32(absmax)) {
    return ScaleFactory(format, rule).ForTensor(static_cast<float>(absmax)).TensorScale();
  }
  return 1 / Encode(format, rule, absmax);
}

}  // namespace numsim
