#include "numsim/quantize/scale.h"

#include "numsim/base/keyword.h"
#include "numsim/formats/decode.h"

namespace numsim {
namespace {

constexpr Keyword<ScaleRule> kRules[] = {{"absmax", ScaleRule::kAbsmax},
                                         {"pow2-floor", ScaleRule::kPow2Floor},
                                         {"pow2-ceil", ScaleRule::kPow2Ceil},
                                         {"e8m0", ScaleRule::kE8m0},
                                         {"none", ScaleRule::kNone},
                                         {"nvfp4", ScaleRule::kNvfp4},
                                         {"e8m0-even", ScaleRule::kE8m0Even},
                                         {"e8m0-ulp", ScaleRule::kE8m0Ulp},
                                         {"e8m0-three-eighths", ScaleRule::kE8m0ThreeEighths},
                                         {"e8m0-ceil", ScaleRule::kE8m0Ceil},
                                         {"e4m3", ScaleRule::kE4m3},
                                         {"4over6-mae", ScaleRule::kFourOverSixMae},
                                         {"4over6-mse", ScaleRule::kFourOverSixMse},
                                         {"nvfp4-inverse", ScaleRule::kNvfp4Inverse},
                                         {"nvfp4-row", ScaleRule::kNvfp4Row},
                                         {"ms-eden", ScaleRule::kMsEden}};

// The largest value that MS-EDEN maps the absolute maximum of a block to: 17/16 of 0.93 makes room for
// the correction.
constexpr auto kMaxOfMsEden = static_cast<float>(6 / (17.0 / 16 * 0.93));

}  // namespace

ScaleFactory::ScaleFactory(const FormatSpec& format, ScaleRule rule) noexcept
    : rule_(rule),
      max_(rule == ScaleRule::kMsEden ? kMaxOfMsEden : MaxFinite(format)),
      max_exponent_(LargestExponent(format)),
      mantissa_bits_(format.mantissa_bits) {}

Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept {
  return ScaleFactory(format, rule)(absmax);
}

std::string_view ToString(ScaleRule rule) { return KeywordToString(kRules, rule); }

std::string ScaleRuleNames() { return KeywordNames(kRules); }

ScaleRule ParseScaleRule(std::string_view text) { return ParseKeyword(kRules, "scale rule", text); }

}  // namespace numsim
