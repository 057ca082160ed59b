#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/scale.h"

namespace numsim {
namespace {

constexpr Keyword<AmaxAlgorithm> kAlgorithms[] = {{"max", AmaxAlgorithm::kMax},
                                                  {"most-recent", AmaxAlgorithm::kMostRecent}};

// The larger of two maxima; NaN outweighs all.
float Larger(float a, float b) { return std::isnan(a) || a > b ? a : b; }

// The quotient is one double division, rounded to float32 after: 53 bits are enough for that to be
// the quotient rounded once.
float DelayedMultiplier(const FormatSpec& format, int margin, float amax) {
  const double room = std::ldexp(static_cast<double>(MaxFinite(format)), -margin);
  const double multiplier = room / static_cast<double>(amax);
  using Limits = std::numeric_limits<float>;
  if (multiplier > static_cast<double>(Limits::max())) return Limits::max();
  return std::max(static_cast<float>(multiplier), Limits::min());
}

}  // namespace

AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text) {
  return ParseKeyword(kAlgorithms, "amax algorithm", text);
}

std::string_view Name(AmaxAlgorithm algorithm) { return KeywordText(kAlgorithms, algorithm); }

DelayedScale::DelayedScale(const FormatSpec& format, const DelayedScalingOptions& options)
    : format_(format), options_(options), history_(options.history) {
  NUMSIM_CHECK(options.history >= 1, "a history of {}", options.history);
}

void DelayedScale::Record(float amax) {
  NUMSIM_CHECK(!(amax < 0), "absolute maximum {}", amax);
  history_[0] = Larger(amax, history_[0]);
}

void DelayedScale::Update() {
  float amax = history_[0];
  if (options_.algorithm == AmaxAlgorithm::kMax) {
    for (const float other : history_) amax = Larger(other, amax);
  }
  if (amax > 0 && std::isfinite(amax)) {
    scale_.multiplier = DelayedMultiplier(format_, options_.margin, amax);
    scale_.scale = 1 / scale_.multiplier;
  }
  if (history_[0] == 0) return;
  // The oldest maximum comes first and makes room for the next one to be recorded.
  std::rotate(history_.begin(), history_.begin() + 1, history_.end());
  history_[0] = 0;
}

std::vector<float> DelayedScale::Save() const {
  std::vector<float> state = {scale_.multiplier};
  state.insert(state.end(), history_.begin(), history_.end());
  return state;
}

void DelayedScale::Restore(std::span<const float> state) {
  if (state.size() != history_.size() + 1) {
    throw Error::Format(
        "state of delayed scaling: {} numbers, not {} (a "
        "multiplier and a history)",
        state.size(),
        history_.size() + 1);
  }
  if (!std::isnormal(state[0]) || state[0] < 0) {
    throw Error::Format(
        "state of delayed scaling: multiplier {} is not a "
        "positive normal number",
        state[0]);
  }
  for (const float amax : state.subspan(1)) {
    if (amax < 0) throw Error::Format("state of delayed scaling: maximum {} is negative", amax);
  }
  scale_ = {1 / state[0], state[0]};
  std::copy(state.begin() + 1, state.end(), history_.begin());
}

float AmaxOfAll(std::span<const float> in) { return AbsmaxOfAll(in); }

}  // namespace numsim
