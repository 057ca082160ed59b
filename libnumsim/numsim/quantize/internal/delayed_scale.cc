#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/scale.h"

namespace numsim {
namespace {

constexpr Keyword<AmaxAlgorithm> kAlgorithms[] = {{"max", AmaxAlgorithm::kMax},
                                                  {"most-recent", AmaxAlgorithm::kMostRecent},
                                                  {"window", AmaxAlgorithm::kWindow}};

// Returns the larger of two maxima. NaN counts as larger than any number.
float Larger(float a, float b) { return std::isnan(a) || a > b ? a : b; }

// Returns the power of two at least or at most `inv_scale`: a scale rounded down has an inverse
// rounded up.
double PowerOfTwo(double inv_scale, ScaleRule rule) {
  int exponent = 0;
  const double significand = std::frexp(inv_scale, &exponent);  // in [0.5, 1)
  const bool up = rule == ScaleRule::kPow2Floor && significand != 0.5;
  return std::ldexp(1.0, up ? exponent : exponent - 1);
}

// Returns M * 2^-margin / absmax, rounded as the rule says. The quotient is one float64 division;
// 53 bits are enough for the result to equal the exact quotient rounded once to float32, and for
// comparing it with powers of two: a quotient of floats that is not a power of two is further from
// one than float64's error.
float DelayedInvScale(const FormatSpec& format,
                      const DelayedScalingOptions& options,
                      float absmax) {
  const double room = std::ldexp(static_cast<double>(MaxFinite(format)), -options.margin);
  double inv_scale = room / static_cast<double>(absmax);
  if (options.rule != ScaleRule::kAbsmax) inv_scale = PowerOfTwo(inv_scale, options.rule);
  using Limits = std::numeric_limits<float>;
  if (inv_scale > static_cast<double>(Limits::max())) return Limits::max();
  return std::max(static_cast<float>(inv_scale), Limits::min());
}

}  // namespace

AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text) {
  return ParseKeyword(kAlgorithms, "amax algorithm", text);
}

std::string_view ToString(AmaxAlgorithm algorithm) {
  return KeywordToString(kAlgorithms, algorithm);
}

DelayedScale::DelayedScale(const FormatSpec& format, const DelayedScalingOptions& options)
    : format_(format), options_(options), history_(options.history) {
  NUMSIM_REQUIRE(options.history >= 1,
                 "DelayedScale: a history of {} maxima, expected at least 1",
                 options.history);
  NUMSIM_REQUIRE(options.rule == ScaleRule::kAbsmax || options.rule == ScaleRule::kPow2Floor ||
                     options.rule == ScaleRule::kPow2Ceil,
                 "DelayedScale: scale rule {}, expected absmax, pow2-floor or pow2-ceil",
                 ToString(options.rule));
}

bool DelayedScale::Sets() const {
  if (options_.algorithm != AmaxAlgorithm::kWindow) return true;
  // Zeros are never kept, so that a window is full when it has none.
  return std::ranges::find(history_, 0.0f) == history_.end();
}

void DelayedScale::Record(float absmax) {
  NUMSIM_REQUIRE(
      !(absmax < 0), "DelayedScale::Record: absmax is {}, expected no negative number", absmax);
  history_[0] = Larger(absmax, history_[0]);
}

void DelayedScale::Update() {
  const bool sets = Sets();
  float absmax = history_[0];
  if (options_.algorithm != AmaxAlgorithm::kMostRecent) {
    for (const float other : history_) absmax = Larger(other, absmax);
  }
  if (sets && absmax > 0 && std::isfinite(absmax)) {
    scale_.inv_scale = DelayedInvScale(format_, options_, absmax);
    scale_.scale = 1 / scale_.inv_scale;
  }
  if (sets && options_.algorithm == AmaxAlgorithm::kWindow) {
    std::ranges::fill(history_, 0.0f);
    return;
  }
  if (history_[0] == 0) return;
  // The rotation brings the oldest maximum to the front, where the next one is recorded.
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());
  history_[0] = 0;
}

std::vector<float> DelayedScale::Save() const {
  std::vector<float> state = {scale_.inv_scale};
  state.insert(state.end(), history_.begin(), history_.end());
  return state;
}

void DelayedScale::Restore(std::span<const float> state) {
  if (state.size() != history_.size() + 1) {
    throw Error::Format("state of delayed scaling: {} numbers, not {} (an inv_scale and a history)",
                        state.size(),
                        history_.size() + 1);
  }
  if (!std::isnormal(state[0]) || state[0] < 0) {
    throw Error::Format("state of delayed scaling: inv_scale {} is not a positive normal number",
                        state[0]);
  }
  for (const float absmax : state.subspan(1)) {
    if (absmax < 0) throw Error::Format("state of delayed scaling: maximum {} is negative", absmax);
  }
  scale_ = {1 / state[0], state[0]};
  std::copy(state.begin() + 1, state.end(), history_.begin());
}

}  // namespace numsim
