#include "numsim/quantize/delayed_scale.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/internal/delayed_scale_device.h"
#include "numsim/quantize/internal/delayed_update.h"

namespace numsim {
namespace {

constexpr Keyword<AmaxAlgorithm> kAlgorithms[] = {{"max", AmaxAlgorithm::kMax},
                                                  {"most-recent", AmaxAlgorithm::kMostRecent},
                                                  {"window", AmaxAlgorithm::kWindow}};

constexpr int kMarginLimit = 32;

constexpr size_t kHistory = 2;  // of the state: the scale and its inverse come first

}  // namespace

AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text) {
  return ParseKeyword(kAlgorithms, "amax algorithm", text);
}

std::string_view ToString(AmaxAlgorithm algorithm) {
  return KeywordToString(kAlgorithms, algorithm);
}

DelayedScale::DelayedScale(const FormatSpec& format,
                           const DelayedScalingOptions& options,
                           Place place)
    : options_(options), state_(place) {
  NUMSIM_REQUIRE(options.history >= 1,
                 "DelayedScale: a history of {} maxima, expected at least 1",
                 options.history);
  NUMSIM_REQUIRE(options.margin >= -kMarginLimit && options.margin <= kMarginLimit,
                 "DelayedScale: margin {}, expected {} to {}",
                 options.margin,
                 -kMarginLimit,
                 kMarginLimit);
  room_ = std::ldexp(static_cast<double>(MaxFinite(format)), -options.margin);
  NUMSIM_REQUIRE(options.rule == ScaleRule::kAbsmax || options.rule == ScaleRule::kPow2Floor ||
                     options.rule == ScaleRule::kPow2Ceil,
                 "DelayedScale: scale rule {}, expected absmax, pow2-floor or pow2-ceil",
                 ToString(options.rule));
  std::vector<float> state(kHistory + options.history, 0.0f);
  state[0] = state[1] = 1;
  CopyMatrix<float>(HostMatrix(std::span(state), {1, state.size()}),
                    state_.Resize(1, state.size()));
}

Scale DelayedScale::Current() const {
  if (place().IsHost()) return {state_.Span()[0], state_.Span()[1]};
  const std::vector<float> current = ToVector(CurrentAtPlace());
  return {current[0], current[1]};
}

void DelayedScale::Record(float absmax) {
  NUMSIM_REQUIRE(
      !(absmax < 0), "DelayedScale::Record: absmax is {}, expected no negative number", absmax);
  if (place().IsHost()) return RecordAtPlace(&absmax);
  Buffer<float> copy(place());
  CopyMatrix<float>({&absmax, 1, 1}, copy.Resize(1, 1));
  RecordAtPlace(copy.View().data);
}

void DelayedScale::RecordAtPlace(const float* absmax) {
  float* const newest = state_.View().data + kHistory;
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place().IsHost()) return RecordOnDevice(absmax, newest, place().Stream());
  }
  *newest = LargerMaximum(*absmax, *newest);
}

void DelayedScale::Update() {
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place().IsHost()) {
      return UpdateOnDevice(options_, room_, state_.View().data, place().Stream());
    }
  }
  const std::span<float> state = state_.Span();
  const std::span<float> history = state.subspan(kHistory);
  // Zeros are never kept, so that a window is full when it has none.
  const bool window = options_.algorithm == AmaxAlgorithm::kWindow;
  const bool sets = !window || std::ranges::find(history, 0.0f) == history.end();
  float absmax = history[0];
  if (options_.algorithm != AmaxAlgorithm::kMostRecent) {
    for (const float other : history) absmax = LargerMaximum(other, absmax);
  }
  if (sets && SetsScale(absmax)) {
    state[1] = DelayedInvScale(room_, options_.rule, absmax);
    state[0] = 1 / state[1];
  }
  if (sets && window) return std::ranges::fill(history, 0.0f), void();
  if (history[0] == 0) return;
  // The rotation brings the oldest maximum to the front, where the next one is recorded.
  std::rotate(history.begin(), history.begin() + 1, history.end());
  history[0] = 0;
}

std::vector<float> DelayedScale::Save() const {
  const std::vector<float> state = ToVector(state_.View());
  return {state.begin() + 1, state.end()};
}

void DelayedScale::Restore(std::span<const float> state) {
  if (state.size() != options_.history + 1) {
    throw Error::Format("state of delayed scaling: {} numbers, not {} (an inv_scale and a history)",
                        state.size(),
                        options_.history + 1);
  }
  if (!std::isnormal(state[0]) || state[0] < 0) {
    throw Error::Format("state of delayed scaling: inv_scale {} is not a positive normal number",
                        state[0]);
  }
  for (const float absmax : state.subspan(1)) {
    if (absmax < 0) throw Error::Format("state of delayed scaling: maximum {} is negative", absmax);
  }
  std::vector<float> all = {1 / state[0]};
  all.insert(all.end(), state.begin(), state.end());
  CopyMatrix<float>(HostMatrix(std::span(all), {1, all.size()}), state_.View());
}

}  // namespace numsim
