// Computation of scales from absolute maxima (absmax).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

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
  // Two levels [NVFP4]: a scale of e4m3fn per group times a float32 scale of the tensor, so that the
  // largest group has the scale 448. With A_t the absolute maximum of the tensor, and every
  // operation rounded to float32:
  //   encode = 448 * M / A_t (1 if A_t = 0)    T = 1 / encode, the scale of the tensor
  //   S = A / M * encode, rounded to e4m3fn (nearest even, saturating)
  //   scale = S * T, inv_scale = 1 / scale
  // A quotient beyond float32 becomes its largest value. S = 0 gives scale = inv_scale = 0: such a
  // group becomes zeros.
  kNvfp4,
  // As kE8m0, but A is first increased by a part of its ulp in the format: with m the mantissa bits of
  // the format and e = floor(log2 A),
  //   scale = 2^(floor(log2(A + p * 2^(e - m))) - emax)
  // kE8m0Even: p = 1/2, as if A was rounded to the format (EVEN of [torchao], even_round of [Quark]).
  // kE8m0Ulp: p = 1; kE8m0ThreeEighths: p = 3/8 (modes 1 and 2 of MXFP4 of [Primus-Turbo], whose
  // default is p = 1/2).
  kE8m0Even,
  kE8m0Ulp,
  kE8m0ThreeEighths,
  // scale = 2^(ceil(log2 A) - emax), clamped as under kE8m0 (CEIL of [torchao]). Nothing saturates in
  // formats whose M is at least 2^emax, and blocks lose up to one binade more than under kPow2Ceil.
  kE8m0Ceil,
  // One level of scales of e4m3fn: scale = A / M rounded to float32 and then to e4m3fn (nearest even,
  // saturating), inv_scale = 1 / scale. scale = 0 gives inv_scale = 0: such a group becomes zeros.
  kE4m3,
  // Four over six [FourOverSix], as [TransformerEngine] has it: each group of kNvfp4 under a scale of the
  // tensor with 256 in the place of 448, or the same with 1.5 S in the place of S before S is rounded,
  // so that A becomes 4 and not 6. The one with the smaller sum of errors of the group, all float32:
  //   |code value * S * A_t / (6 * 256) - x| (kFourOverSixMae), or the square of that (kFourOverSixMse)
  // Elements are rounded to nearest even for this comparison; equal sums choose the first. Only for
  // e2m1fn, float32 elements and the host. A ScaleFactory, which sees no elements, has the first.
  kFourOverSixMae,
  kFourOverSixMse,
  // kNvfp4 with S = A * (encode * (1 / M)), each operation rounded to float32, as [TransformerEngine] has
  // it at commit d0067d0: another S where A / M * encode is near the middle of two numbers of e4m3fn.
  kNvfp4Inverse,
  // kNvfp4Inverse with a second level of scales per row in the place of that of the tensor, as
  // [TransformerEngine] has it (row_scaled_nvfp4): A_t is the absolute maximum of the row. For blocks of
  // rows, or of columns, which then are the rows. Only for the host and float32 elements.
  kNvfp4Row,
  // MS-EDEN [Quartet-II], unbiased under a Hadamard transform with random signs: two levels, with 256 in
  // the place of 448 and V = fl32(6 / 0.988125) in that of M, then rounded anew with a correction.
  //   T = 1 / encode, encode = 256 V / A_t    S = A / V * encode, rounded to e4m3fn as under kNvfp4
  // Elements are rounded to nearest even under S T. With y an element times inv_scale and q the value of
  // its code, each run of QuantizeOptions::correction_run elements of a row has the correction
  //   c = sum of y^2 / sum of y q        both sums in float64 from left to right; 1 for 0 / 0
  // and the scale of each of its blocks becomes S' T, with S' = fl32(S c) rounded stochastically to
  // e4m3fn, saturating, by the 32 random bits whose index is that of the block. Elements that are not
  // finite are left out of the sums. Only for e2m1fn, blocks, float32 elements and the host.
  kMsEden,
};

// Returns whether a rule chooses between two scales by the elements of the group.
NUMSIM_HOST_DEVICE constexpr bool ComparesElements(ScaleRule rule) {
  return rule == ScaleRule::kFourOverSixMae || rule == ScaleRule::kFourOverSixMse;
}

// Returns whether the scales follow from the elements and not from absolute maxima alone.
NUMSIM_HOST_DEVICE constexpr bool ReadsElements(ScaleRule rule) {
  return ComparesElements(rule) || rule == ScaleRule::kMsEden;
}

// Returns whether the scale of a block depends on other blocks of its row, so that scales must be those of
// blocks of rows, or of columns, which then are the rows.
NUMSIM_HOST_DEVICE constexpr bool DependsOnRow(ScaleRule rule) {
  return rule == ScaleRule::kNvfp4Row || rule == ScaleRule::kMsEden;
}

// Returns whether neither a device has the rule nor float64 elements.
NUMSIM_HOST_DEVICE constexpr bool IsOnlyForHost(ScaleRule rule) {
  return ReadsElements(rule) || DependsOnRow(rule);
}

// Returns whether every scale is a power of two, a number of e8m0fnu. kNone's scale is 1.
NUMSIM_HOST_DEVICE constexpr bool GivesPowersOfTwo(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::kPow2Floor:
    case ScaleRule::kPow2Ceil:
    case ScaleRule::kE8m0:
    case ScaleRule::kNone:
    case ScaleRule::kE8m0Even:
    case ScaleRule::kE8m0Ulp:
    case ScaleRule::kE8m0ThreeEighths:
    case ScaleRule::kE8m0Ceil:
      return true;
    case ScaleRule::kAbsmax:
    case ScaleRule::kNvfp4:
    case ScaleRule::kE4m3:
    case ScaleRule::kFourOverSixMae:
    case ScaleRule::kFourOverSixMse:
    case ScaleRule::kNvfp4Inverse:
    case ScaleRule::kNvfp4Row:
    case ScaleRule::kMsEden:
      break;
  }
  return false;
}

// Returns whether scales follow from the absolute maximum of the tensor, or of the row, too.
NUMSIM_HOST_DEVICE constexpr bool TakesTensorMaximum(ScaleRule rule) {
  return rule == ScaleRule::kNvfp4 || rule == ScaleRule::kNvfp4Inverse ||
         rule == ScaleRule::kNvfp4Row || ReadsElements(rule);
}

// A scale, and the number by which elements are multiplied before they are rounded.
struct Scale {
  float scale = 1;
  float inv_scale = 1;
};

// The constants of two levels of scales in one tensor, or row. A group with the absolute maximum A has
// the scale S * tensor, with S = A / divisor * factor, each operation rounded to float32, rounded to
// e4m3fn; then scale and inverse are as under ScaleRule::kNvfp4.
struct ScaleLevels {
  float divisor = 1;
  float factor = 1;
  float tensor = 1;
};

// Returns the scale of elements whose absolute maximum over finite elements is `absmax`. Requires
// absmax finite and >= 0. absmax == 0 gives scale 1. Scales and their inverses are finite. A power of
// two is at least 2^-127, which float32 holds as a subnormal, and at most 2^127, as in e8m0fnu. Under
// kAbsmax, if absmax / M is below 2^-126, absmax is replaced by M * 2^-126, and absmax / M is limited
// to float32's largest value. Under kNvfp4 the group is the whole tensor. Under kNvfp4 and kE4m3 only
// what their comments say holds.
Scale MakeScale(const FormatSpec& format, float absmax, ScaleRule rule) noexcept;

// MakeScale for many maxima: the constants of the format are computed once. The call operator also
// runs on a device and gives the same bits there. Apart from integer operations it uses only single
// products and quotients, which IEEE 754 rounds the same way everywhere.
class ScaleFactory {
 public:
  ScaleFactory(const FormatSpec& format, ScaleRule rule) noexcept;

  NUMSIM_HOST_DEVICE Scale operator()(float absmax) const noexcept;

  // Returns the factory for groups of a tensor with this absolute maximum, under a rule with
  // TakesTensorMaximum. Without it each group is a tensor.
  NUMSIM_HOST_DEVICE ScaleFactory ForTensor(float absmax) const noexcept {
    ScaleFactory result = *this;
    const float largest = ReadsElements(rule_) ? kMaxOfFourOverSix : kMaxE4m3;
    result.encode_ = absmax == 0 ? 1 : Bounded(largest * max_ / absmax);
    return result;
  }
  // Returns the scale T of the tensor under such a rule; 1 under others.
  NUMSIM_HOST_DEVICE float TensorScale() const noexcept { return encode_ == 0 ? 1 : 1 / encode_; }
  // Returns the constants of all groups under such a rule. Requires ForTensor.
  NUMSIM_HOST_DEVICE ScaleLevels Levels() const noexcept {
    const bool multiplies = rule_ == ScaleRule::kNvfp4Inverse || rule_ == ScaleRule::kNvfp4Row;
    if (multiplies) return {1, encode_ * (1 / max_), TensorScale()};
    return {max_, encode_, TensorScale()};
  }
  // Returns the second scale of a group under a rule that compares elements. Requires ForTensor.
  NUMSIM_HOST_DEVICE Scale MapToFour(float absmax) const noexcept {
    return FromShare(absmax / max_ * encode_ * 1.5f);
  }

 private:
  static constexpr float kMaxE4m3 = 448, kMaxOfFourOverSix = 256;
  static NUMSIM_HOST_DEVICE constexpr float Bounded(float x) {
    constexpr float kMost = std::numeric_limits<float>::max();
    return x < kMost ? x : kMost;
  }
  // Returns x >= 0 rounded to e4m3fn, nearest even, saturating. Below 2^-6 its values are the
  // multiples of 2^-9, which is the ulp of the sum.
  static NUMSIM_HOST_DEVICE constexpr float RoundToE4m3(float x) {
    if (!(x < kMaxE4m3)) return kMaxE4m3;
    if (x < 0x1p-6f) return (x + 0x1p14f) - 0x1p14f;
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7FFFFu + (bits >> 20 & 1u)) & ~0xFFFFFu);
  }
  // Returns the scale of a group. Requires ForTensor.
  NUMSIM_HOST_DEVICE Scale OfGroup(float absmax) const noexcept {
    const ScaleLevels levels = Levels();
    return FromShare(absmax / levels.divisor * levels.factor);
  }
  // Returns the scale of a group whose S is `share` before it is rounded.
  NUMSIM_HOST_DEVICE Scale FromShare(float share) const noexcept {
    const float scale = RoundToE4m3(share) * TensorScale();
    if (scale == 0) return {0, 0};
    return {scale, Bounded(1 / scale)};
  }
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
  // Returns floor(log2 A) - emax, with A increased by `eighths` eighths of its ulp in the format.
  NUMSIM_HOST_DEVICE int Biased(float absmax, uint32_t eighths) const noexcept {
    const Normalised a = Normalise(absmax);
    const uint32_t bias = (eighths << 20) >> mantissa_bits_;
    return a.exponent + (a.significand + bias >= 0x1000000u ? 1 : 0) - max_exponent_;
  }
  NUMSIM_HOST_DEVICE Scale OneLevel(float absmax) const noexcept {
    const float scale = RoundToE4m3(absmax / max_);
    if (scale == 0) return {0, 0};
    return {scale, 1 / scale};
  }

  float max_;
  int max_exponent_;
  int mantissa_bits_;
  float encode_ = 0;  // of the tensor, or 0: not known
};

NUMSIM_HOST_DEVICE inline Scale ScaleFactory::operator()(float absmax) const noexcept {
  if (TakesTensorMaximum(rule_)) {
    return encode_ == 0 ? ForTensor(absmax).OfGroup(absmax) : OfGroup(absmax);
  }
  if (rule_ == ScaleRule::kE4m3) return OneLevel(absmax);
  if (absmax == 0 || rule_ == ScaleRule::kNone) return {};
  switch (rule_) {
    case ScaleRule::kAbsmax: {
      // For a format with M < 1, M * 2^-126 may be subnormal. float32 holds it exactly enough.
      const float least = max_ * 0x1p-126f;
      const float bounded = absmax < least ? least : absmax;
      // If the format's largest value is below 1, the quotient can exceed float32's range.
      return {Bounded(bounded / max_), max_ / bounded};
    }
    case ScaleRule::kPow2Floor:
      return PowerOfTwo(FloorLog2Ratio(absmax, max_));
    case ScaleRule::kPow2Ceil:
      return PowerOfTwo(FloorLog2Ratio(absmax, max_) + (IsPowerOfTwoRatio(absmax, max_) ? 0 : 1));
    case ScaleRule::kE8m0:
      return PowerOfTwo(Normalise(absmax).exponent - max_exponent_);
    case ScaleRule::kE8m0Even:
      return PowerOfTwo(Biased(absmax, 4));
    case ScaleRule::kE8m0Ulp:
      return PowerOfTwo(Biased(absmax, 8));
    case ScaleRule::kE8m0ThreeEighths:
      return PowerOfTwo(Biased(absmax, 3));
    case ScaleRule::kE8m0Ceil: {
      const Normalised a = Normalise(absmax);
      return PowerOfTwo(a.exponent + (a.significand == 0x800000u ? 0 : 1) - max_exponent_);
    }
    case ScaleRule::kNone:
    case ScaleRule::kNvfp4:
    case ScaleRule::kE4m3:
    case ScaleRule::kFourOverSixMae:
    case ScaleRule::kFourOverSixMse:
    case ScaleRule::kNvfp4Inverse:
    case ScaleRule::kNvfp4Row:
    case ScaleRule::kMsEden:
      break;
  }
  return {};
}

// Converts between a rule and its name: absmax, pow2-floor, pow2-ceil, e8m0, none, nvfp4, e8m0-even,
// e8m0-ulp, e8m0-three-eighths, e8m0-ceil, e4m3, 4over6-mae, 4over6-mse, nvfp4-inverse, nvfp4-row,
// ms-eden. Parsing throws
// Error, listing the names, for any other text.
std::string_view ToString(ScaleRule rule);
ScaleRule ParseScaleRule(std::string_view text);
// Returns the names, separated by ", ".
std::string ScaleRuleNames();

}  // namespace numsim
