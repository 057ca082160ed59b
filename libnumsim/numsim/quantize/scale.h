// Computation of scales from absolute maxima (absmax), including delayed scaling.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/base/host_device.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// Rules that compute a scale from the absolute maximum A of the elements and the largest finite
// value M of the format. A dequantised value is code value * scale. Quantising multiplies by
// `inv_scale`, the inverse of the scale.
enum class ScaleRule : uint8_t {
  // scale = fl(A / M), inv_scale = fl(M / A), both rounded to float32. For int8 this is
  // round(127 / absmax * x), Eq. 1 of [SwitchBack].
  kAbsmax,
  // scale = 2^floor(log2(A / M)), a power of two rounded down. Values above M * scale saturate.
  kPow2Floor,
  // scale = 2^ceil(log2(A / M)), a power of two rounded up. Nothing saturates.
  kPow2Ceil,
  // scale = 2^(floor(log2 A) - emax), with emax the exponent of M, clamped to E8M0's range
  // 2^-127 .. 2^127: the shared scale of an MX block [OCP-MX]. Values above M * scale saturate.
  kE8m0,
  // scale = 1: a plain cast.
  kNone,
};

struct Scale {
  float scale = 1;
  float inv_scale = 1;
};

// Returns the scale of elements whose absolute maximum over finite elements is `absmax`. Requires
// absmax finite and >= 0. absmax == 0 gives scale 1. If absmax / M is below 2^-126, absmax is
// replaced by M * 2^-126, so that inv_scale is finite. Only kE8m0 goes down to 2^-127, which is
// exact in float32 as a subnormal. Scales are finite: a power of two is at most 2^127, also under
// kPow2Ceil, and absmax / M is limited to float32's largest value.
Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept;

// MakeScale for many maxima: the constants of the format are computed once. The call operator also
// runs on a device and gives the same bits there. Apart from integer operations it uses only single
// products and quotients, which IEEE 754 rounds the same way everywhere.
class ScaleFactory {
 public:
  ScaleFactory(const FormatSpec& format, ScaleRule rule) noexcept;

  NUMSIM_HOST_DEVICE Scale operator()(float absmax) const noexcept;

 private:
  // significand * 2^(exponent - 23) with a significand in [2^23, 2^24).
  struct Normalised {
    uint32_t significand;
    int exponent;
  };
  static NUMSIM_HOST_DEVICE constexpr Normalised Normalise(float positive) {
    const uint32_t bits = std::bit_cast<uint32_t>(positive);
    const int field = static_cast<int>(bits >> 23);
    if (field != 0) return {(bits & 0x7FFFFFu) | 0x800000u, field - 127};
    const int shift = std::countl_zero(bits) - 8;  // of a subnormal
    return {bits << shift, -126 - shift};
  }
  // Returns floor(log2(a / b)) exactly, from both exponents and one comparison of significands.
  static NUMSIM_HOST_DEVICE constexpr int FloorLog2Ratio(float a, float b) {
    const Normalised x = Normalise(a), y = Normalise(b);
    return x.exponent - y.exponent - (x.significand < y.significand ? 1 : 0);
  }
  static NUMSIM_HOST_DEVICE constexpr bool IsPowerOfTwoRatio(float a, float b) {
    return Normalise(a).significand == Normalise(b).significand;
  }
  // Returns 2^exponent. Requires an exponent in -127 .. 127.
  static NUMSIM_HOST_DEVICE constexpr float Power(int exponent) {
    if (exponent == -127) return std::bit_cast<float>(0x00400000u);
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
  // Returns the scale 2^exponent. Exponents beyond +-127, for which scale or inv_scale would be
  // infinite, are clamped.
  static NUMSIM_HOST_DEVICE constexpr Scale PowerOfTwo(int exponent) {
    const int bounded = exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
    return {Power(bounded), Power(-bounded)};
  }

  ScaleRule rule_;
  float max_;
  int max_exponent_;
};

NUMSIM_HOST_DEVICE inline Scale ScaleFactory::operator()(float absmax) const noexcept {
  if (absmax == 0 || rule_ == ScaleRule::kNone) return {};
  // For a format with M < 1, M * 2^-126 may be subnormal. float32 holds it exactly enough.
  const float least = max_ * 0x1p-126f;
  const float bounded = absmax < least ? least : absmax;
  switch (rule_) {
    case ScaleRule::kAbsmax: {
      // If the format's largest value is below 1, the quotient can exceed float32's range.
      const float scale = bounded / max_;
      constexpr float kMost = std::numeric_limits<float>::max();
      return {scale < kMost ? scale : kMost, max_ / bounded};
    }
    case ScaleRule::kPow2Floor:
      return PowerOfTwo(FloorLog2Ratio(bounded, max_));
    case ScaleRule::kPow2Ceil:
      return PowerOfTwo(FloorLog2Ratio(bounded, max_) + (IsPowerOfTwoRatio(bounded, max_) ? 0 : 1));
    case ScaleRule::kE8m0:
      return PowerOfTwo(Normalise(absmax).exponent - max_exponent_);
    case ScaleRule::kNone:
      break;
  }
  return {};
}

// Converts between a rule and its name: absmax, pow2-floor, pow2-ceil, e8m0, none. Parsing throws
// Error, listing the names, for any other text.
std::string_view ToString(ScaleRule rule);
ScaleRule ParseScaleRule(std::string_view text);

// Delayed scaling: the scale of a tensor is computed from the absolute maxima of earlier steps
// [TransformerEngine].

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

struct DelayedScalingOptions {
  size_t history = 1024;  // number of absolute maxima remembered, including the newest; >= 1
  AmaxAlgorithm algorithm = AmaxAlgorithm::kMax;
  int margin = 0;                       // the scale leaves room for values 2^margin times larger
  ScaleRule rule = ScaleRule::kAbsmax;  // kAbsmax, kPow2Floor or kPow2Ceil

  friend bool operator==(const DelayedScalingOptions&, const DelayedScalingOptions&) = default;
};

// The scale of one tensor over the steps of training. In each step, quantise under Current(), call
// Record() with the absolute maximum of the quantised tensor, then call Update(). So a step never
// uses its own maximum.
class DelayedScale {
 public:
  // Starts with scale 1 and a history of zeros, so the first step is not scaled.
  DelayedScale(const FormatSpec& format, const DelayedScalingOptions& options);

  const Scale& Current() const { return scale_; }

  // Records an absolute maximum. The largest one recorded since the last Update counts; NaN counts
  // as larger than any number. `absmax` is the maximum of all elements, infinities and NaN included
  // (AbsmaxOfAll of quantize.h).
  void Record(float absmax);

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
  // Returns true if the next Update computes the scale anew.
  bool Sets() const;

  FormatSpec format_;
  DelayedScalingOptions options_;
  Scale scale_;
  std::vector<float> history_;  // in the order of Save
};

}  // namespace numsim
