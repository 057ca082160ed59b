// How a scale comes about from an absolute maximum.
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

// With A the absolute maximum and M the format's largest finite value. A value is
// code value * scale; quantising multiplies by `inv_scale`, the inverse of the scale.
enum class ScaleRule : uint8_t {
  // scale = fl(A / M), inv_scale = fl(M / A), both rounded to float32. For int8 this is
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
  float inv_scale = 1;
};

// Returns the scale of elements whose finite absolute maximum is `absmax` (>= 0, finite).
// absmax == 0 gives scale 1. Where absmax / M is below 2^-126, absmax is replaced by M * 2^-126, so
// that the inv_scale is finite (E8M0 alone goes down to 2^-127, exact in float32 as a subnormal).
// Scales are finite: a power of two is at most 2^127, also under kPow2Ceil, and absmax / M at most
// float32's largest value.
Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept;

// MakeScale for many maxima: what depends on the format alone is worked out once. The call runs on
// a device too, with the same bits: beside integers it uses single products and quotients, which
// IEEE 754 rounds alike everywhere.
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
  // floor(log2(a / b)), exact: the quotient's exponent from both exponents and one comparison.
  static NUMSIM_HOST_DEVICE constexpr int FloorLog2Ratio(float a, float b) {
    const Normalised x = Normalise(a), y = Normalise(b);
    return x.exponent - y.exponent - (x.significand < y.significand ? 1 : 0);
  }
  static NUMSIM_HOST_DEVICE constexpr bool IsPowerOfTwoRatio(float a, float b) {
    return Normalise(a).significand == Normalise(b).significand;
  }
  // 2^exponent. Requires -127 .. 127.
  static NUMSIM_HOST_DEVICE constexpr float Power(int exponent) {
    if (exponent == -127) return std::bit_cast<float>(0x00400000u);
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
  // Exponents beyond +-127, where scale or inv_scale would be infinite, are clamped.
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
  // M * 2^-126 itself may be a subnormal for a format with M < 1; float32 holds it exactly enough.
  const float least = max_ * 0x1p-126f;
  const float bounded = absmax < least ? least : absmax;
  switch (rule_) {
    case ScaleRule::kAbsmax: {
      // A format whose largest value is below 1 can ask for more than float32 has.
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

// absmax, pow2-floor, pow2-ceil, e8m0, none.
std::string_view ToString(ScaleRule rule);
ScaleRule ParseScaleRule(std::string_view text);

// Delayed scaling: the scale of a tensor from the absolute maxima of earlier steps
// [TransformerEngine].

enum class AmaxAlgorithm : uint8_t { kMax, kMostRecent };
// max, most-recent. Throws Error listing them.
AmaxAlgorithm ParseAmaxAlgorithm(std::string_view text);
std::string_view ToString(AmaxAlgorithm algorithm);

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
  // of all elements, infinities and NaN included (AbsmaxOfTensor).
  void Record(float absmax);

  // With A the newest maximum or the largest of the history, the newest included, by the algorithm:
  // inv_scale = M * 2^-margin / A, rounded once, and scale = 1 / inv_scale; M the largest value
  // of the format. NaN outweighs all in the history too. A of zero, infinity or NaN leaves the
  // scale as it is; a inv_scale beyond float32's normal numbers becomes the nearest of them. Then
  // the history moves on by one, unless nothing but zero was recorded since the last Update (the
  // layer did not run).
  void Update();

  // The state as numbers: inv_scale, then options.history maxima, the one being recorded first and
  // after it from the oldest to the newest. Restore throws Error for another count of numbers, a
  // inv_scale that is not a positive normal number, or a negative maximum.
  std::vector<float> Save() const;
  void Restore(std::span<const float> state);

 private:
  FormatSpec format_;
  DelayedScalingOptions options_;
  Scale scale_;
  std::vector<float> history_;  // as in Save
};

// The largest |x|, infinities included; NaN if there is one; 0 for none.
float AbsmaxOfTensor(std::span<const float> in);

}  // namespace numsim
