// Delayed scaling: the scale of a tensor is computed from the absolute maxima of earlier steps
// [TransformerEngine].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/formats/format_spec.h"
#include "numsim/quantize/scale.h"

namespace numsim {

// The maximum from which the scale is computed.
enum class AmaxAlgorithm : uint8_t {
  kMax,         // the largest of the history, at every update: a sliding window
  kMostRecent,  // the newest
  // The largest of the history, once the history is full; then the history starts again: windows
  // that do not overlap, with one scale for the whole of the next window. The code of [Fishman] has
  // one window per batch of micro-batches.
  kWindow,
};
// Converts between an algorithm and its name: max, most-recent, window. Parsing throws Error,
// listing the names, for any other text.
AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text);
std::string_view ToString(AmaxAlgorithm algorithm);

// The settings of delayed scaling.
struct DelayedScalingOptions {
  size_t history = 1024;  // number of absolute maxima remembered, including the newest; >= 1
  AmaxAlgorithm algorithm = AmaxAlgorithm::kMax;
  int margin = 0;  // the scale leaves room for values 2^margin times larger; -32 to 32
  ScaleRule rule = ScaleRule::kAbsmax;  // kAbsmax, kPow2Floor or kPow2Ceil

  friend bool operator==(const DelayedScalingOptions&, const DelayedScalingOptions&) = default;
};

// The scale of one tensor over the steps of training. In each step, quantise under it
// (QuantizeUnder of quantized_matrix.h), which records the absolute maximum of the quantised
// tensor, then call Update(). So a step never uses its own maximum. The state is in the memory of a
// place; on a device QuantizeUnder and Update do not wait; the others do.
class DelayedScale {
 public:
  // Starts with scale 1 and a history of zeros, so the first step is not scaled. Throws Error for a
  // history of 0, a margin that is out of range, or another scale rule than kAbsmax, kPow2Floor and
  // kPow2Ceil.
  DelayedScale(const FormatSpec& format, const DelayedScalingOptions& options, Place place = {});

  // Return the place of the state, and the scale of the next step; the latter waits for a device.
  Place place() const { return state_.place(); }
  Scale Current() const;
  // Returns the current scale and its inverse, 1 x 2, at the place.
  MatrixSpan<const float> CurrentAtPlace() const { return state_.View().Columns(0, 2); }

  // Records an absolute maximum. The largest one recorded since the last Update counts; NaN counts
  // as larger than any number. `absmax` is the maximum of all elements, infinities and NaN included
  // (AbsmaxOfAll of quantize.h).
  void Record(float absmax);
  // Does the same with a maximum at the place of the state, which is not read by the host.
  void RecordAtPlace(const float* absmax);

  // Sets inv_scale = M * 2^-margin / A and scale = 1 / inv_scale. Under kAbsmax the quotient is
  // rounded once; under kPow2Floor and kPow2Ceil the scale is the power of two of that rule. M is
  // the largest value of the format. A is the newest maximum or the largest of the history
  // including the newest, depending on the algorithm; NaN counts as larger than any number here
  // too. If A is zero, infinity or NaN, the scale does not change. An inv_scale outside float32's
  // normal numbers becomes the nearest of them. Then the history advances by one entry, unless
  // nothing but zero was recorded since the last Update (the layer did not run).
  void Update();

  // Save returns the state as numbers: inv_scale, then options.history maxima. The first of them is
  // the one being recorded; the others follow from the oldest to the newest. Under kWindow, those
  // of the current window are the newest, and the others are zero. Restore sets the state
  // from such numbers. It throws Error for a wrong number of them, an inv_scale that is not a
  // positive normal number, or a negative maximum.
  std::vector<float> Save() const;
  void Restore(std::span<const float> state);

 private:
  DelayedScalingOptions options_;
  double room_ = 0;      // M * 2^-margin
  Buffer<float> state_;  // scale, inv_scale, then the history in the order of Save
};

}  // namespace numsim
