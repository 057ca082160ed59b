// Elements of bare kernels (optimizer_bare_kernels.h): states and weights that a device can take at
// the speed of its memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/kernel_threads.h"
#include "numsim/cast/shared/cast_shortcut.h"
#include "numsim/formats/named_formats.h"
#include "numsim/optim/internal/optimizer_element.h"
#include "numsim/optim/internal/optimizer_tables.h"

namespace numsim {

// Moderate elements are so far from zero and infinity that quotients and roots need no look at
// special cases: 2^-90 <= |m| < 2^45 and 2^-100 <= v < 2^35. Under a moderate step (IsModerateStep)
// quotients lie in 2^-119 .. 2^116, and the rests of divisions are exact.
//
// Returns less than kModerateSpan if |x| lies between 2^-least and 2^(135 - least).
inline constexpr uint32_t kModerateSpan = 135u << 23;
NUMSIM_INLINE uint32_t FromModerate(float x, uint32_t least) {
  return (std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu) - ((127u - least) << 23);
}

// Lanes of directions_rule.inc: one moderate element.
template <class Env>
struct ModerateLanes : ElementLanes {
  NUMSIM_INLINE float Div(float a, float b) const { return Env::DivModerate(a, b); }
  NUMSIM_INLINE float Sqrt(float a) const { return Env::SqrtModerate(a); }
  // Multiplies by the nearest float32 to the reciprocal, and adds the exact rest over the divisor
  // twice. The first time the quotient becomes one of the two float32 around it, the second time the
  // nearest [Markstein].
  NUMSIM_INLINE float DivBy(float x, float divisor) const {
    const float inverse = 1.0f / divisor;
    float q = x * inverse;
    q = fmaf(fmaf(-q, divisor, x), inverse, q);
    return fmaf(fmaf(-q, divisor, x), inverse, q);
  }
};

inline constexpr unsigned kBareBlock = 128;  // neighbours that share their scales

// True if bare kernels serve the states of a codec.
inline bool IsBare(const MomentCodec& codec) {
  if (codec.exact) return true;
  const bool scaled_by_blocks = codec.scaling == MomentScaling::kBlock;
  const bool scaling =
      codec.scaling == MomentScaling::kNone || codec.scaling == MomentScaling::kTensor ||
      (scaled_by_blocks && std::has_single_bit(codec.block) && codec.block >= kBareBlock);
  return scaling && EncodesByShortcut(codec.encode) && codec.decode.usable && !codec.packed &&
         codec.plan.format.HasNan() && !codec.decode.nan_is_negative_zero &&
         !codec.encode.unsigned_zero;
}

// True if the codes are those of e4m3fn or e5m2, which processors convert.
inline bool IsFp8(const MomentCodec& codec) {
  return !codec.exact && (codec.plan.format == kE4M3fn || codec.plan.format == kE5M2);
}

inline bool IsFp8OfTensors(const MomentCodec& codec) {
  return IsFp8(codec) && codec.scaling == MomentScaling::kTensor;
}

// True if a step finds the scales of states of a codec while it takes them.
inline bool FindsRangesInStep(const MomentCodec& codec) {
  return IsFp8(codec) && codec.scaling == MomentScaling::kBlock && codec.block == kBareBlock;
}

// Returns the value of a code, and the code of x. Both require IsBare(codec).
NUMSIM_INLINE float DecodeBare(const MomentCodec& codec, float scale, uint32_t code) {
  return std::bit_cast<float>(DecodeByShortcut<MomentFloats>(codec.decode, code)) * scale;
}
NUMSIM_INLINE uint32_t EncodeBare(const MomentCodec& codec, float inverse, float x) {
  return EncodeNearest(codec.encode, x != x ? x : x * inverse);  // keeps the sign of a NaN
}
// The same for a moderate x, whose product is no NaN.
NUMSIM_INLINE uint32_t EncodeModerate(const MomentCodec& codec, float inverse, float x) {
  const EncodeShortcut& s = codec.encode;
  const uint32_t bits = std::bit_cast<uint32_t>(x * inverse);
  const bool same = codec.wide && s.kind == EncodeShortcutKind::kNearestSame;
  return SignedCode(
      s, bits, same ? OrdinalNearestSame(s, bits) : OrdinalNearestNarrower<MomentFloats>(s, bits));
}

// How the states of a tensor are stored.
enum class BareStates : uint8_t {
  kFloat,  // all in float32
  kFp8,    // all in codes for which IsFp8 holds
  kAny,
};

// True if a state that an optimiser has is stored in float32, as moments of a tensor that the filter of
// moments leaves alone.
template <DirectionKind kKind>
NUMSIM_INLINE bool HasPlainState(const TensorRow& row) {
  return row.plain[0] || (kKind == DirectionKind::kAdam && row.plain[1]);
}

inline constexpr unsigned kQuad = 4;  // neighbours that are loaded and stored together

// Elements of a tensor.
template <DirectionKind kKind, BareStates kStored>
class BareElements {
 public:
  static constexpr int kStates = kKind == DirectionKind::kAdam ? 2 : 1;
  // Few bytes per element: more of them must be under way.
  static constexpr bool kLoadsAhead = kStored == BareStates::kFp8;

  // `encodes`: also takes the factors of InverseKernel.
  NUMSIM_INLINE BareElements(const StepArguments& args,
                             const TensorRow& row,
                             const TensorPlan& plan,
                             bool encodes)
      : constants_(args.constants),
        row_(row),
        rates_(plan.rates),
        factor_(args.tables.step->factor),
        encodes_(encodes) {
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) {
      if (IsCoded(s) && !Codec(s).has_blocks) Take(s, 0);
    }
  }

  NUMSIM_INLINE bool IsCoded(int s) const {
    return kStored == BareStates::kFp8 || (kStored == BareStates::kAny && !row_.plain[s]);
  }
  NUMSIM_INLINE const MomentCodec& Codec(int s) const { return constants_.codecs[s]; }

  // Takes the scales of the elements from i on. Called where i is a multiple of kBareBlock.
  NUMSIM_INLINE void TakeScales(size_t i) {
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) {
      if (IsCoded(s) && Codec(s).has_blocks) Take(s, ScaleNumber(s, i));
    }
  }
  // The same with scales that were loaded, and the factor by which new states are encoded.
  NUMSIM_INLINE void SetScales(const float (&scales)[kStates]) {
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) scale_[s] = scales[s];
  }
  NUMSIM_INLINE void SetInverse(int s, float inverse) { inverse_[s] = inverse; }
  NUMSIM_INLINE size_t ScaleNumber(int s, size_t i) const {
    return Codec(s).has_blocks ? i >> constants_.block_shift[s] : 0;
  }

  // An element before and after the step.
  struct Element {
    float gradient = 0;  // times the factor of the step
    float old[2] = {0, 0};
    float states[2] = {0, 0};
  };

  NUMSIM_INLINE bool IsWide(int s) const { return kStored == BareStates::kAny && Codec(s).wide; }
  // Returns the value of a code, and the code of a new state.
  NUMSIM_INLINE float ValueOf(int s, uint32_t code) const {
    return DecodeBare(Codec(s), scale_[s], code);
  }
  template <bool kModerate>
  NUMSIM_INLINE uint32_t CodeOf(int s, float x) const {
    return kModerate ? EncodeModerate(Codec(s), inverse_[s], x)
                     : EncodeBare(Codec(s), inverse_[s], x);
  }
  // The same for four codes of a byte, which are the bytes of a word.
  template <class Env>
  NUMSIM_INLINE void ValuesOf(int s, uint32_t word, Element (&e)[kQuad]) const {
    if constexpr (kStored == BareStates::kFp8 && Env::kConvertsFp8) {
      float values[kQuad];
      Env::DecodeFp8(word, IsE5m2(s), values);
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) e[c].old[s] = values[c] * scale_[s];
    } else {
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) e[c].old[s] = ValueOf(s, word >> (8 * c) & 0xFF);
    }
  }
  template <class Env, bool kModerate>
  NUMSIM_INLINE uint32_t CodesOf(int s, const Element (&e)[kQuad]) const {
    if constexpr (kModerate && kStored == BareStates::kFp8 && Env::kConvertsFp8) {
      float scaled[kQuad];
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) scaled[c] = e[c].states[s] * inverse_[s];
      return Env::EncodeFp8(scaled, IsE5m2(s));
    } else {
      uint32_t word = 0;
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) {
        word |= CodeOf<kModerate>(s, e[c].states[s]) << (8 * c);
      }
      return word;
    }
  }

  // Computes the new states.
  NUMSIM_INLINE void Advance(float gradient, Element& e) const {
    constexpr ElementLanes l;
    const float g = gradient * factor_;
    e.gradient = g;
    if constexpr (kKind == DirectionKind::kAdam) {
      e.states[1] = AverageLanes(l, e.old[1], g * g, rates_.v);
      e.states[0] = AverageLanes(l, e.old[0], g, rates_.m);
    } else {
      e.states[0] = AverageLanes(l, e.old[0], g, constants_.of_m);
    }
  }

  // Returns less than kModerateSpan if the element is moderate.
  NUMSIM_INLINE uint32_t FromModerateElement(const Element& e) const {
    uint32_t from = FromModerate(e.states[0], 90);
    if constexpr (kStates == 2) {
      const uint32_t from_v = FromModerate(e.states[1], 100);
      if (from_v > from) from = from_v;
    }
    return from;
  }
  // True if the constants of the step are moderate.
  NUMSIM_INLINE bool IsModerateStep() const {
    const AdamDenominator& denominator = rates_.denominator;
    return denominator.epsilon >= 0 && denominator.epsilon < 0x1p20f &&
           rates_.m_correction >= 0x1p-20f && rates_.m_correction <= 1 &&
           denominator.correction >= 0x1p-20f && denominator.correction <= 1;
  }

  template <class Lanes>
  NUMSIM_INLINE float Direction(const Lanes& l, const Element& e) const {
    if constexpr (kKind == DirectionKind::kAdam) {
      return AdamDirectionLanes(
          l, e.states[0], e.states[1], rates_.m_correction, rates_.denominator);
    }
    if constexpr (kKind == DirectionKind::kSgd) return e.states[0] * -1.0f;
    return LionDirectionLanes(l, e.gradient, e.old[0], constants_.of_direction);
  }

 private:
  NUMSIM_INLINE bool IsE5m2(int s) const { return Codec(s).plan.format.mantissa_bits == 2; }
  NUMSIM_INLINE void Take(int s, size_t number) {
    if (Codec(s).scaling == MomentScaling::kNone) return;
    scale_[s] = row_.moments[s].scales[number];
    if (encodes_) inverse_[s] = row_.inverses[s][number];
  }

  const StepConstants& constants_;
  const TensorRow& row_;
  const AdamRates rates_;
  const float factor_;
  const bool encodes_;
  float scale_[2] = {1, 1}, inverse_[2] = {1, 1};
};

}  // namespace numsim
