// Delayed scaling: the scale of a tensor from the absolute maxima of earlier steps
// [TransformerEngine].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/scaling/scale.h"

namespace numsim {

enum class AmaxAlgorithm : uint8_t { kMax, kMostRecent };
// max, most-recent. Throws Error listing them.
AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text);
std::string_view Name(AmaxAlgorithm algorithm);

struct DelayedScalingOptions {
  size_t history = 1024;  // >= 1: absolute maxima remembered, the newest included
  AmaxAlgorithm algorithm = AmaxAlgorithm::kMax;
  int margin = 0;  // the scale leaves room for values 2^margin times larger

  friend bool operator==(const DelayedScalingOptions&, const DelayedScalingOptions&) = default;
};

// The scale of one tensor over the steps. A step is: quantise under Current(), Record() the
// absolute maximum of what was quantised, then Update(). So a step never sees its own maximum.
class DelayedScale {
 public:
  // Scale 1 and a history of zeros: the first step is not scaled.
  DelayedScale(const FormatSpec& format, const DelayedScalingOptions& options);

  const Scale& Current() const { return scale_; }

  // The largest of what is recorded since the last Update counts; NaN outweighs all. `amax` is that
  // of all elements, infinities and NaN included (AmaxOfAll).
  void Record(float amax);

  // With A the newest maximum or the largest of the history, the newest included, by the algorithm:
  // multiplier = M * 2^-margin / A, rounded once, and scale = 1 / multiplier; M the largest value
  // of the format. NaN outweighs all in the history too. A of zero, infinity or NaN leaves the
  // scale as it is; a multiplier beyond float32's normal numbers becomes the nearest of them. Then
  // the history moves on by one, unless nothing but zero was recorded since the last Update (the
  // layer did not run).
  void Update();

  // The state as numbers: multiplier, then options.history maxima, the one being recorded first and
  // after it from the oldest to the newest. Restore throws Error for another count of numbers, a
  // multiplier that is not a positive normal number, or a negative maximum.
  std::vector<float> Save() const;
  void Restore(std::span<const float> state);

 private:
  FormatSpec format_;
  DelayedScalingOptions options_;
  Scale scale_;
  std::vector<float> history_;  // as in Save
};

// The largest |x|, infinities included; NaN if there is one; 0 for none.
float AmaxOfAll(std::span<const float> in);

}  // namespace numsim
