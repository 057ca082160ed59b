#include "numsim/scaling/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/keyword.h"
#include "numsim/formats/decode.h"

namespace numsim {
namespace {

constexpr Keyword<ScaleRule> kRules[] = {{"absmax", ScaleRule::kAbsmax},
                                         {"pow2-floor", ScaleRule::kPow2Floor},
                                         {"pow2-ceil", ScaleRule::kPow2Ceil},
                                         {"e8m0", ScaleRule::kE8m0},
                                         {"none", ScaleRule::kNone}};

// floor(log2(a / b)), exact: the quotient's exponent from both exponents and one comparison.
int FloorLog2Ratio(float a, float b) {
  int ea = 0, eb = 0;
  const float fa = std::frexp(a, &ea);
  const float fb = std::frexp(b, &eb);
  return ea - eb - (fa < fb ? 1 : 0);
}

bool IsPowerOfTwoRatio(float a, float b) {
  int ea = 0, eb = 0;
  return std::frexp(a, &ea) == std::frexp(b, &eb);
}

// Exponents beyond +-127, where scale or multiplier would be infinite, are clamped.
Scale PowerOfTwo(int exponent) {
  const int bounded = std::clamp(exponent, -127, 127);
  return {std::ldexp(1.0f, bounded), std::ldexp(1.0f, -bounded)};
}

}  // namespace

ScaleMaker::ScaleMaker(const FormatSpec& format, ScaleRule rule) noexcept
    : rule_(rule), max_(MaxFinite(format)), max_exponent_(format.MaxExponent()) {}

Scale ScaleMaker::operator()(float absmax) const noexcept {
  if (absmax == 0 || rule_ == ScaleRule::kNone) return {};
  // M * 2^-126 itself may be a subnormal for a format with M < 1; float32 holds it exactly enough.
  const float bounded = std::max(absmax, max_ * 0x1p-126f);
  switch (rule_) {
    case ScaleRule::kAbsmax:
      // A format whose largest value is below 1 can ask for more than float32 has.
      return {std::min(bounded / max_, std::numeric_limits<float>::max()), max_ / bounded};
    case ScaleRule::kPow2Floor:
      return PowerOfTwo(FloorLog2Ratio(bounded, max_));
    case ScaleRule::kPow2Ceil:
      return PowerOfTwo(FloorLog2Ratio(bounded, max_) + (IsPowerOfTwoRatio(bounded, max_) ? 0 : 1));
    case ScaleRule::kE8m0:
      return PowerOfTwo(std::ilogb(absmax) - max_exponent_);
    case ScaleRule::kNone:
      break;
  }
  return {};
}

Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept {
  return ScaleMaker(format, rule)(absmax);
}

std::string_view Name(ScaleRule rule) { return KeywordText(kRules, rule); }

ScaleRule ParseScaleRule(std::string_view text) { return ParseKeyword(kRules, "scale rule", text); }

}  // namespace numsim
