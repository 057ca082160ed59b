// One element of a stored moment, on host and device: MomentStore (moment_store.h) with plain data
// and without checks. Codes and scales give the bits that MomentStore defines.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/base/shared/elementary_text.h"
#include "numsim/cast/shared/cast_shortcut.h"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/moments/moment_format.h"
#include "numsim/quantize/scale.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/encode_scalar.h"

namespace numsim {

// Tables of a format of at most 8 bits, by code: its values (scaled by 1); for the dynamic map the
// thresholds of EncodeNearest; for COAT ln(|value| / M).
struct MomentTables {
  float values[256];
  float thresholds[256];
  double log_ratios[256];
};

// The constants of a stored format.
struct MomentCodec {
  // `at_place` are the format's tables where the codec is used; not read for wider formats.
  MomentCodec(const MomentFormat& moment, bool is_signed_moment, const MomentTables* at_place);

  MomentScaling scaling;
  bool exact, packed, wide;  // fp32; codes of 4 bits; codes of 16 bits
  bool is_signed;
  bool has_blocks;
  uint64_t block;    // elements per scale, read if has_blocks
  float max, least;  // largest and smallest positive value of the format
  double log_range;  // COAT's ln R0
  EncodePlan plan;
  EncodeShortcut encode;  // used if it rounds to nearest
  DecodeShortcut decode;  // of wide codes
  ScaleFactory factory;
  const MomentTables* tables;
};

// Fills the tables of a format.
MomentTables MakeMomentTables(const MomentFormat& moment, bool is_signed);
// Throws Error naming the format if it has no device form: a format with a subnormal gap.
void CheckMomentOnDevice(const MomentFormat& moment);

// Bits of the largest finite magnitude of the elements under one scale, and the smallest bits of a
// magnitude less one, so that zeros, which wrap to the largest number, do not count.
struct MomentRange {
  uint32_t most = 0, least_less_one = 0xFFFFFFFFu;
};

// A moment where it is stored.
struct StoredMoment {
  uint8_t* codes = nullptr;  // or float32 values; a multiple of four bytes
  float* scales = nullptr;
  MomentRange* ranges = nullptr;  // of the values to be stored, one per scale

  friend bool operator==(const StoredMoment&, const StoredMoment&) = default;
};

// The numbers by which elements under one scale are decoded and encoded.
struct MomentScale {
  float scale = 1;     // factor of a decoded value; COAT and the dynamic map: the absmax
  float inverse = 1;   // factor of a value to be encoded
  float exponent = 1;  // COAT: k
};

// Returns the number of the scale of element i.
NUMSIM_INLINE size_t ScaleIndex(const MomentCodec& codec, size_t i) {
  return codec.has_blocks ? i / codec.block : 0;
}

// Returns the first element after i that has another scale.
NUMSIM_INLINE size_t EndOfScale(const MomentCodec& codec, size_t i) {
  return codec.has_blocks ? (i / codec.block + 1) * codec.block : ~size_t{0};
}

// Returns COAT's k for a block of these magnitudes (moment_coat.h). Requires most > 0.
NUMSIM_HOST_DEVICE inline float CoatExponent(float most, float least, double log_range) {
  constexpr double kSteps = 16, kMostSteps = 65536.0 * kSteps;
  if (most == least) return 1;
  const double log_ratio = elementary::Log(static_cast<double>(most) / static_cast<double>(least));
  const double steps = std::floor(kSteps * log_range / log_ratio);
  const double bounded = steps < 1 ? 1 : steps > kMostSteps ? kMostSteps : steps;
  return static_cast<float>(bounded / kSteps);
}

// Returns the scale under which values are stored whose magnitudes are in the range.
NUMSIM_HOST_DEVICE inline MomentScale NextScale(const MomentCodec& codec,
                                                const MomentRange& range) {
  const float most = std::bit_cast<float>(range.most);
  MomentScale next;
  switch (codec.scaling) {
    case MomentScaling::kNone:
      break;
    case MomentScaling::kTensor:
    case MomentScaling::kBlock: {
      const Scale made = codec.factory(most);
      next.inverse = made.inv_scale;
      next.scale = made.scale;
      // The largest scale at which nothing decodes as infinity.
      while (next.scale * codec.max > 0x1.fffffep127f) {
        next.scale = std::bit_cast<float>(std::bit_cast<uint32_t>(next.scale) - 1);
      }
      break;
    }
    case MomentScaling::kDynamic:
      next.scale = most == 0 ? 1 : most;
      break;
    case MomentScaling::kCoat:
      next.scale = most == 0 ? codec.max : most;
      if (most != 0) {
        const float least = std::bit_cast<float>(range.least_less_one + 1);
        next.exponent = CoatExponent(most, least, codec.log_range);
      }
      break;
  }
  return next;
}

// Returns the stored scale number `index`, for decoding.
NUMSIM_INLINE MomentScale StoredScale(const MomentCodec& codec, const float* scales, size_t index) {
  MomentScale scale;
  if (codec.scaling == MomentScaling::kNone) return scale;
  if (codec.scaling == MomentScaling::kCoat) return {scales[2 * index], 1, scales[2 * index + 1]};
  scale.scale = scales[index];
  return scale;
}

// Stores a scale.
NUMSIM_INLINE void StoreScale(const MomentCodec& codec,
                              const MomentScale& scale,
                              float* scales,
                              size_t index) {
  if (codec.scaling == MomentScaling::kCoat) {
    scales[2 * index] = scale.scale;
    scales[2 * index + 1] = scale.exponent;
  } else if (codec.scaling != MomentScaling::kNone) {
    scales[index] = scale.scale;
  }
}

// Returns COAT's M (|x| / a)^k with the sign of x: a division, square roots and products in
// float64 (Raise of moment_coat_simd.h).
NUMSIM_HOST_DEVICE inline float ExpandCoat(const MomentScale& scale, float max, float x) {
  uint32_t power = static_cast<uint32_t>(scale.exponent * 16);
  double base = fabs(static_cast<double>(x)) / static_cast<double>(scale.scale);
  int roots = 4;
  for (; roots > 0 && power % 2 == 0; --roots) power /= 2;
  for (; roots > 0; --roots) base = sqrt(base);
  double product = static_cast<double>(max);
  for (;; base = base * base) {
    if (power % 2 != 0) product = product * base;
    power /= 2;
    if (power == 0) break;
  }
  return std::copysign(static_cast<float>(product), x);
}

// Returns the number of the last of 256 ascending bounds that is at most x; 0 if there is none.
NUMSIM_HOST_DEVICE inline uint32_t LastBoundNotAbove(const float* bounds, float x) {
  uint32_t last = 0;
  for (uint32_t step = 128; step > 0; step /= 2) {
    if (bounds[last + step] <= x) last += step;
  }
  return last;
}

// Returns the code of the dynamic map for x, which is not NaN. `draw` are the random bits.
NUMSIM_HOST_DEVICE inline uint32_t EncodeDynamic(const MomentCodec& codec, float x, uint32_t draw) {
  const MomentTables& tables = *codec.tables;
  if (codec.plan.rounding.mode != RoundingMode::kStochastic) {
    return LastBoundNotAbove(tables.thresholds, x);
  }
  const float bounded = x < tables.values[0]     ? tables.values[0]
                        : x > tables.values[255] ? tables.values[255]
                                                 : x;
  const uint32_t code = LastBoundNotAbove(tables.values, bounded);
  if (code == 255) return code;
  const double low = static_cast<double>(tables.values[code]);
  const double gap = static_cast<double>(tables.values[code + 1]) - low;
  const int64_t whole = int64_t{1} << codec.plan.rounding.random_bits;
  const double share = (static_cast<double>(bounded) - low) / gap * static_cast<double>(whole);
  return code + (static_cast<int64_t>(share) + int64_t{draw} >= whole ? 1 : 0);
}

// The operations of cast_shortcut.h that rounding to nearest and decoding need.
struct MomentFloats {
  static NUMSIM_INLINE float Magnitude(uint32_t bits) {
    return std::bit_cast<float>(bits & 0x7FFFFFFFu);
  }
  static NUMSIM_INLINE float Add(float a, float b) { return a + b; }
  static NUMSIM_INLINE float Multiply(float a, float b) { return a * b; }
};

// True if EncodeNearest serves the shortcut.
NUMSIM_INLINE bool EncodesByShortcut(const EncodeShortcut& s) {
  return s.kind == EncodeShortcutKind::kNearestNarrower ||
         s.kind == EncodeShortcutKind::kNearestSame;
}

// Returns the code of the value nearest to `scaled`.
NUMSIM_INLINE uint32_t EncodeNearest(const EncodeShortcut& s, float scaled) {
  const uint32_t bits = std::bit_cast<uint32_t>(scaled);
  if (scaled != scaled) return NanOf(s, bits);
  const uint32_t ordinal = s.kind == EncodeShortcutKind::kNearestNarrower
                               ? OrdinalNearestNarrower<MomentFloats>(s, bits)
                               : OrdinalNearestSame(s, bits);
  return s.unsigned_zero && ordinal == 0 ? 0 : SignedCode(s, bits, ordinal);
}

// Returns the code of a scaled value in a format that is not the dynamic map.
NUMSIM_HOST_DEVICE inline uint32_t EncodeScaled(const MomentCodec& codec,
                                                float scaled,
                                                uint32_t draw) {
  if (EncodesByShortcut(codec.encode)) return EncodeNearest(codec.encode, scaled);
  return scalar::EncodeGeneral<scalar::F32Lanes>(
      codec.plan, std::bit_cast<uint32_t>(scaled), scalar::TopAligned(codec.plan, draw));
}

// Returns the value of a code of 16 bits, without its scale.
NUMSIM_HOST_DEVICE inline float DecodeWide(const MomentCodec& codec, uint32_t code) {
  return std::bit_cast<float>(codec.decode.usable
                                  ? DecodeByShortcut<MomentFloats>(codec.decode, code)
                                  : scalar::DecodeBits(codec.plan.format, code));
}

// Returns the code of x. `draw` are the random bits, in the low end.
NUMSIM_HOST_DEVICE inline uint32_t EncodeMoment(const MomentCodec& codec,
                                                const MomentScale& scale,
                                                float x,
                                                uint32_t draw) {
  const bool dynamic = codec.scaling == MomentScaling::kDynamic;
  float scaled = x;
  if (dynamic) {
    scaled = x / scale.scale;
  } else if (codec.scaling == MomentScaling::kCoat) {
    scaled = ExpandCoat(scale, codec.max, x);
  } else if (codec.scaling != MomentScaling::kNone) {
    scaled = x * scale.inverse;
  }
  if (x != x) scaled = x;  // with its sign, which a product loses on a device
  if ((dynamic || !codec.plan.format.HasNan()) && scaled != scaled) scaled = 0;
  if (dynamic) return EncodeDynamic(codec, scaled, draw);
  return EncodeScaled(codec, scaled, draw);
}

// Returns the value that a code stands for.
NUMSIM_HOST_DEVICE inline float DecodeMoment(const MomentCodec& codec,
                                             const MomentScale& scale,
                                             uint32_t code) {
  if (codec.wide) {
    const float value = DecodeWide(codec, code);
    return codec.scaling == MomentScaling::kNone ? value : value * scale.scale;
  }
  const float value = codec.tables->values[code];
  if (codec.scaling == MomentScaling::kNone) return value;
  if (codec.scaling != MomentScaling::kCoat) return value * scale.scale;
  double factor = static_cast<double>(value);
  if (value != 0 && value - value == 0) {
    const double power = codec.tables->log_ratios[code] / static_cast<double>(scale.exponent);
    factor = std::copysign(elementary::Exp(power), factor);
  }
  return static_cast<float>(static_cast<double>(scale.scale) * factor);
}

// Returns true if x lies beyond the largest value that can be stored. Under a scale from the absmax
// no element does, except in the signed dynamic map, which ends above -1.
NUMSIM_HOST_DEVICE inline bool Saturates(const MomentCodec& codec,
                                         const MomentScale& scale,
                                         float x) {
  if (codec.scaling == MomentScaling::kNone) return fabsf(x) > codec.max;
  if (codec.scaling != MomentScaling::kDynamic || !codec.is_signed) return false;
  return x / scale.scale < codec.tables->values[0];
}

// Returns the code of element i.
NUMSIM_INLINE uint32_t LoadCode(const MomentCodec& codec, const uint8_t* codes, size_t i) {
  if (codec.packed) return static_cast<uint32_t>(codes[i / 2] >> (i % 2 * 4)) & 0xFu;
  if (codec.wide) return reinterpret_cast<const uint16_t*>(codes)[i];
  return codes[i];
}

// Replaces the code `old` of element i. Codes that share a word may be replaced at the same time.
template <class Env>
NUMSIM_INLINE void ReplaceCode(
    const MomentCodec& codec, uint8_t* codes, size_t i, uint32_t old, uint32_t code) {
  if (codec.packed) {
    Env::FlipBits(reinterpret_cast<uint32_t*>(codes) + i / 8, (old ^ code) << (i % 8 * 4));
  } else if (codec.wide) {
    reinterpret_cast<uint16_t*>(codes)[i] = static_cast<uint16_t>(code);
  } else {
    codes[i] = static_cast<uint8_t>(code);
  }
}

// Takes x into a range that no other thread widens.
NUMSIM_INLINE void TakeIn(float x, MomentRange& range) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
  if (bits < 0x7F800000u && bits > range.most) range.most = bits;
  if (bits - 1 < range.least_less_one) range.least_less_one = bits - 1;
}

// Joins a range to one that other threads widen too.
template <class Env>
NUMSIM_INLINE void JoinRange(const MomentRange& range, MomentRange& shared) {
  if (range.most != 0) Env::RaiseTo(&shared.most, range.most);
  if (range.least_less_one != 0xFFFFFFFFu) {
    Env::LowerTo(&shared.least_less_one, range.least_less_one);
  }
}

}  // namespace numsim
