#include "numsim/cast/shared/cast_simd.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "numsim/cast/internal/subnormal_gap_edges.h"
#include "numsim/rounding/shared/decode_range.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/shared/cast_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/philox-inl.h"
#include "numsim/cast/internal/shortcuts-inl.h"
#include "numsim/cast/internal/stochastic-inl.h"
#include "numsim/cast/internal/subnormal_gap-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {

// The number of elements whose subnormal gap is closed or opened at a time.
constexpr size_t kBlock = 1024;
// The largest number of 32-bit lanes of a vector.
constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(uint32_t);

// The rule as a coder: an operator that returns the codes of words of float32.
template <RuleMode kMode, ExponentRange kRange>
struct RuleCoder {
  static constexpr bool kDraws = kMode == RuleMode::kStochastic;
  EncodePlan plan;

  template <class L, class W = typename L::Word>
  HWY_INLINE W operator()(const L& lanes, W bits, W random) const {
    return EncodeWord<kMode, kRange>(lanes, plan, bits, random);
  }
};

// EncodeByCarry as a coder.
struct CarryCoder {
  static constexpr bool kDraws = true;
  EncodePlan plan;

  explicit CarryCoder(const EncodePlan& served) : plan(served) {
    plan.unsigned_zero = false;  // as it is: the compiler need not test it for every vector
  }

  template <class L, class W = typename L::Word>
  HWY_INLINE W operator()(const L& lanes, W bits, W random) const {
    return EncodeByCarry(lanes, plan, bits, random);
  }
};

// Encodes the vector of elements that `source` loads from `in`, which are those from number i on, and
// decodes it again if Out is float.
template <class D32, class Coder, class Source, typename Out>
HWY_INLINE void EncodeVector(D32 d32,
                             const Coder& coder,
                             const Source& source,
                             const float* in,
                             size_t i,
                             const uint32_t* HWY_RESTRICT random,
                             Out* out) {
  const hn::RebindToFloat<D32> df;
  const F32Lanes<D32> lanes;
  const auto bits = hn::BitCast(d32, source.Load(df, in, i));
  auto random_word = hn::Zero(d32);
  if constexpr (Coder::kDraws) random_word = hn::LoadU(d32, random);
  const auto code = coder(lanes, bits, random_word);
  if constexpr (std::is_same_v<Out, float>) {
    const auto value = DecodeWord(lanes, coder.plan.format, code);
    hn::StoreU(value, d32, reinterpret_cast<uint32_t*>(out));
  } else {
    StoreCodes(d32, code, out);
  }
}

// Encodes whole vectors and returns the number of elements encoded.
template <class Coder, class Source, typename Out>
HWY_NOINLINE size_t EncodeWhole(const EncodePlan& plan,
                                const Source source,
                                const float* in,
                                size_t n,
                                const uint32_t* random,
                                Out* out) {
  const Coder coder{plan};  // with a local copy of the plan: the stores below cannot alias it
  const hn::ScalableTag<uint32_t> d32;
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + source.ahead);
    EncodeVector(d32, coder, source, in + i, i, random + i, out + i);
  }
  return i;
}

// Encodes n elements. The tail goes through the same vector function as a padded copy. (A function
// of width one is not used: Highway 1.0.3 shifts single 32-bit lanes by a 64-bit count, half of
// which does not belong to the lane.)
template <class Coder, typename Out>
void EncodeBlock(
    const EncodePlan& plan, const float* in, size_t n, const uint32_t* random, Out* out) {
  const size_t i = EncodeWhole<Coder>(plan, Unscaled(), in, n, random, out);
  if (i == n) return;
  float in_tail[kMaxLanes] = {};
  uint32_t random_tail[kMaxLanes] = {};
  Out out_tail[kMaxLanes];
  std::copy(in + i, in + n, in_tail);
  if constexpr (Coder::kDraws) std::copy(random + i, random + n, random_tail);
  const hn::ScalableTag<uint32_t> d32;
  EncodeVector(d32, Coder{plan}, Unscaled(), in_tail, 0, random_tail, out_tail);
  std::copy(out_tail, out_tail + (n - i), out + i);
}

template <RuleMode kMode, typename Out>
void EncodeRange(
    const EncodePlan& plan, const float* in, size_t n, const uint32_t* random, Out* out) {
  using enum ExponentRange;
  if constexpr (kMode == RuleMode::kStochastic) {
    if (ServesCarry(plan)) return EncodeBlock<CarryCoder>(plan, in, n, random, out);
  }
  if constexpr (kMode != RuleMode::kOther) {
    switch (plan.range_f32) {
      case kSame:
        return EncodeBlock<RuleCoder<kMode, kSame>>(plan, in, n, random, out);
      case kNarrower:
        return EncodeBlock<RuleCoder<kMode, kNarrower>>(plan, in, n, random, out);
      case kGeneral:
        break;
    }
  }
  EncodeBlock<RuleCoder<kMode, kGeneral>>(plan, in, n, random, out);
}

// Encodes in one mode by the rule. If the format has a subnormal gap, the rule reads a copy of the
// input with the gap closed (subnormal_gap_edges.h).
template <RuleMode kMode, typename Out>
void EncodeInMode(
    const EncodePlan& plan, const float* in, size_t n, const uint32_t* random, Out* out) {
  if (plan.format.subnormal_shift == 0) return EncodeRange<kMode>(plan, in, n, random, out);
  const EncodePlan without = WithoutSubnormalGap(plan);
  HWY_ALIGN uint32_t closed[kBlock];
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = std::min(kBlock, n - i);
    const uint32_t* const bits = reinterpret_cast<const uint32_t*>(in + i);
    CloseSubnormalGap<kMode, F32Lanes<hn::ScalableTag<uint32_t>>>(
        plan, bits, count, random + i, closed);
    EncodeRange<kMode>(without, reinterpret_cast<const float*>(closed), count, random + i, out + i);
    if constexpr (std::is_same_v<Out, float>) OpenSubnormalGap(plan.format, out + i, count);
  }
}

template <typename Out>
void EncodeStochastic(
    const EncodePlan& plan, const float* in, size_t n, Out* out, const ArrayRandom& random) {
  HWY_ALIGN uint32_t words[kDrawnWords];
  for (size_t i = 0; i < n; i += kDrawnBlock) {
    const size_t count = std::min(kDrawnBlock, n - i);
    const uint32_t* const drawn = DrawBlock(random, plan.rounding.random_bits, i, count, words);
    EncodeInMode<RuleMode::kStochastic>(plan, in + i, count, drawn, out + i);
  }
}

template <RuleMode kMode, typename Out>
void EncodeDeterministic(const EncodePlan& plan, const float* in, size_t n, Out* out) {
  // Offsets are added to this pointer, but nothing is read through it.
  const uint32_t* no_random = reinterpret_cast<const uint32_t*>(in);
  size_t done = 0;
  if constexpr (std::is_same_v<Out, uint8_t>) done = EncodeShortcut(plan, Unscaled(), in, n, out);
  EncodeInMode<kMode>(plan, in + done, n - done, no_random + done, out + done);
}

template <typename Out>
void EncodeAny(
    const EncodePlan& plan, const float* in, size_t n, Out* out, const ArrayRandom& random) {
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kStochastic:
      return EncodeStochastic(plan, in, n, out, random);
    case RuleMode::kNearestEven:
      return EncodeDeterministic<RuleMode::kNearestEven>(plan, in, n, out);
    case RuleMode::kOther:
      return EncodeDeterministic<RuleMode::kOther>(plan, in, n, out);
  }
}

void EncodeU8(
    const EncodePlan& plan, const float* in, size_t n, uint8_t* out, const ArrayRandom& random) {
  EncodeAny(plan, in, n, out, random);
}

// Encodes products of the elements with factors, in any mode with a path for them, and returns the number
// of elements encoded.
template <class Source>
size_t EncodeScaled(const EncodePlan& plan,
                    const Source source,
                    const float* in,
                    size_t n,
                    uint8_t* out,
                    const ArrayRandom& random) {
  if (plan.rounding.mode != RoundingMode::kStochastic) {
    return EncodeShortcut(plan, source, in, n, out);
  }
  if (!ServesCarry(plan)) return 0;
  HWY_ALIGN uint32_t words[kDrawnWords];
  n = std::min(n, kDrawnBlock);
  const uint32_t* const drawn = DrawBlock(random, plan.rounding.random_bits, 0, n, words);
  return EncodeWhole<CarryCoder>(plan, source, in, n, drawn, out);
}

size_t EncodeScaledU8(const EncodePlan& plan,
                      const float* in,
                      size_t n,
                      const RunFactors& factors,
                      size_t ahead,
                      uint8_t* out,
                      const ArrayRandom& random) {
  if (factors.log_run == 0) {
    return EncodeScaled(plan, ScaledByEach{factors.each, ahead}, in, n, out, random);
  }
  static_assert(kMaxLanes <= RunFactors::kLeastRun);
  return EncodeScaled(plan, ScaledByRuns{factors.each, factors.log_run, ahead}, in, n, out, random);
}
void EncodeU16(
    const EncodePlan& plan, const float* in, size_t n, uint16_t* out, const ArrayRandom& random) {
  EncodeAny(plan, in, n, out, random);
}
void EncodeU32(
    const EncodePlan& plan, const float* in, size_t n, uint32_t* out, const ArrayRandom& random) {
  EncodeAny(plan, in, n, out, random);
}
void EncodeDecode(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random) {
  EncodeAny(plan, in, n, out, random);
}

// Decodes one vector of codes by the decoding rule and returns the bits of its values.
struct RuleDecoder {
  FormatSpec format;

  template <class D32, typename Code>
  HWY_INLINE hn::Vec<D32> operator()(D32 d32, const Code* codes) const {
    const F32Lanes<D32> lanes;
    const hn::Rebind<Code, D32> d_code;
    const auto code =
        hn::And(hn::PromoteTo(d32, hn::LoadU(d_code, codes)), hn::Set(d32, format.CodeMask()));
    return DecodeWord(lanes, format, code);
  }
};

// True if a code equals the upper bits of its float32 value, as in bf16.
constexpr bool HoldsUpperBits(const FormatSpec& format) {
  return DecodesInLanes(format) && !format.flush_subnormals &&
         format.sign == Sign::kSignMagnitude && format.exponent_bits == 8 && format.bias == 127 &&
         format.zero == Zero::kSigned && format.infinity == Infinity::kIeee &&
         format.nan == Nan::kIeee;
}

// Decodes codes that are the upper bits of float32 by a shift. All NaN payloads give the same NaN.
struct UpperBitsDecoder {
  FormatSpec format;

  template <class D32, typename Code>
  HWY_INLINE hn::Vec<D32> operator()(D32 d32, const Code* codes) const {
    const hn::Rebind<Code, D32> d_code;
    const auto code = hn::PromoteTo(d32, hn::LoadU(d_code, codes));
    const auto bits = hn::ShiftLeftSame(code, 32 - format.Bits());
    const auto sign = hn::And(bits, hn::Set(d32, 0x80000000u));
    const auto is_nan = hn::Gt(hn::Xor(bits, sign), hn::Set(d32, 0x7F800000u));
    const auto nan = hn::Or(sign, hn::Set(d32, 0x7FC00000u));
    return hn::IfThenElse(is_nan, nan, bits);
  }
};

#if HWY_TARGET <= HWY_AVX2
// Decodes through binary16, which the processor widens exactly, subnormals included: moves the
// fields of the code to those of binary16, widens, and multiplies by a power of two. Most of this
// runs in 16-bit lanes, at half the work of the rule.
struct HalfDecoder {
  FormatSpec format;

  template <class D32, typename Code>
  HWY_INLINE hn::Vec<D32> operator()(D32 d32, const Code* codes) const {
    const hn::Rebind<Code, D32> d_code;
    const hn::Rebind<uint16_t, D32> d16;
    const hn::Rebind<hwy::float16_t, D32> d_half;
    const hn::RebindToFloat<D32> d_float;
    const auto set16 = [&](uint32_t x) { return hn::Set(d16, static_cast<uint16_t>(x)); };
    const auto loaded = hn::LoadU(d_code, codes);
    auto code = hn::Zero(d16);
    if constexpr (sizeof(Code) == 1) {
      code = hn::PromoteTo(d16, loaded);
    } else {
      code = loaded;
    }
    code = hn::And(code, set16(format.CodeMask()));
    const auto code_sign = hn::And(code, set16(format.SignBit()));
    const auto magnitude = hn::Sub(code, code_sign);
    auto sign = hn::ShiftLeftSame(code_sign, 15 - format.MagnitudeBits());
    auto half = hn::ShiftLeftSame(magnitude, 10 - format.mantissa_bits);
    const uint32_t max_code = format.MaxFiniteCode();
    if (max_code < format.MagnitudeMask()) {  // codes above it are infinity or NaN
      auto special = set16(0x7E00);
      if (format.HasInfinity()) {
        const auto infinite = hn::Eq(magnitude, set16(format.InfinityCode()));
        special = hn::IfThenElse(infinite, set16(0x7C00), special);
      }
      half = hn::IfThenElse(hn::Gt(magnitude, set16(max_code)), special, half);
    }
    if (format.nan == Nan::kNegativeZero) {
      const auto is_nan = hn::Eq(code, set16(format.SignBit()));
      half = hn::IfThenElse(is_nan, set16(0x7E00), half);
      sign = hn::IfThenZeroElse(is_nan, sign);
    }
    const float scale = std::bit_cast<float>(static_cast<uint32_t>(127 + 15 - format.bias) << 23);
    const auto value = hn::PromoteTo(d_float, hn::BitCast(d_half, hn::Or(half, sign)));
    return hn::BitCast(d32, hn::Mul(value, hn::Set(d_float, scale)));
  }
};
#endif

// Decodes fewer elements than a vector has.
template <class Decoder, typename Code>
HWY_INLINE void DecodePart(const Decoder& decoder, const Code* codes, size_t n, float* out) {
  const hn::ScalableTag<uint32_t> d32;
  Code codes_part[kMaxLanes] = {};
  uint32_t out_part[kMaxLanes];
  std::copy(codes, codes + n, codes_part);
  hn::StoreU(decoder(d32, codes_part), d32, out_part);
  std::memcpy(out, out_part, n * sizeof(float));
}

template <class Decoder, typename Code>
HWY_NOINLINE void DecodeBlock(const Decoder& decoder_ref,
                              const Code* HWY_RESTRICT codes,
                              size_t n,
                              float* HWY_RESTRICT out) {
  const Decoder decoder = decoder_ref;  // a local copy: the stores below cannot alias it
  const hn::ScalableTag<uint32_t> d32;
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(decoder(d32, codes + i), d32, reinterpret_cast<uint32_t*>(out + i));
  }
  if (i < n) DecodePart(decoder, codes + i, n - i, out + i);
}

// Does what DecodeBlock does but writes past the caches, which do not read the old contents of
// `out` first then. That needs aligned stores, so the elements before the first such address are
// decoded by themselves.
template <class Decoder, typename Code>
HWY_NOINLINE void DecodeStreaming(const Decoder& decoder_ref,
                                  const Code* HWY_RESTRICT codes,
                                  size_t n,
                                  float* HWY_RESTRICT out) {
  const Decoder decoder = decoder_ref;
  const hn::ScalableTag<uint32_t> d32;
  const size_t lanes = hn::Lanes(d32);
  const size_t beyond = reinterpret_cast<uintptr_t>(out) / sizeof(float) % lanes;
  size_t i = std::min(n, beyond == 0 ? 0 : lanes - beyond);
  if (i > 0) DecodePart(decoder, codes, i, out);
  for (; i + lanes <= n; i += lanes) {
    hn::Stream(decoder(d32, codes + i), d32, reinterpret_cast<uint32_t*>(out + i));
  }
  hwy::FlushStream();
  if (i < n) DecodePart(decoder, codes + i, n - i, out + i);
}

// Decodes codes of a format with a subnormal gap by a decoder of the format without it.
template <class Decoder>
struct GapDecoder {
  Decoder decoder;
  SubnormalGapEdges subnormal_gap;

  template <class D32, typename Code>
  HWY_INLINE hn::Vec<D32> operator()(D32 d32, const Code* codes) const {
    return OpenGap(d32, subnormal_gap, decoder(d32, codes));
  }
};

template <class Decoder, typename Code>
void DecodeBy(const Decoder& decoder, const Code* codes, size_t n, float* out, Stores stores) {
  if (stores == Stores::kStreaming) return DecodeStreaming(decoder, codes, n, out);
  DecodeBlock(decoder, codes, n, out);
}

template <typename Code>
void DecodeAny(const FormatSpec& format, const Code* codes, size_t n, float* out, Stores stores) {
  // Calls DecodeBy with a decoder, which opens the subnormal gap too where there is one.
  const auto decode = [&]<class Decoder>(const Decoder& decoder) {
    if (format.subnormal_shift == 0) return DecodeBy(decoder, codes, n, out, stores);
    const GapDecoder<Decoder> opening{decoder, SubnormalGapEdges(format)};
    DecodeBy(opening, codes, n, out, stores);
  };
  const FormatSpec without = WithoutSubnormalGap(format);
  if (HoldsUpperBits(format)) return DecodeBy(UpperBitsDecoder{format}, codes, n, out, stores);
#if HWY_TARGET <= HWY_AVX2
  if (FitsBinary16Fields(without)) return decode(HalfDecoder{without});
#endif
  decode(RuleDecoder{without});
}

void DecodeU8(const FormatSpec& format, const uint8_t* codes, size_t n, float* out, Stores stores) {
  DecodeAny(format, codes, n, out, stores);
}
void DecodeU16(
    const FormatSpec& format, const uint16_t* codes, size_t n, float* out, Stores stores) {
  DecodeAny(format, codes, n, out, stores);
}

void RandomBitsU32(const ArrayRandom& random, int bits, size_t n, uint32_t* out) {
  HWY_ALIGN uint32_t words[kDrawnWords];
  for (size_t i = 0; i < n; i += kDrawnBlock) {
    const size_t count = std::min(kDrawnBlock, n - i);
    const uint32_t* const drawn = DrawBlock(random, bits, i, count, words);
    for (size_t j = 0; j < count; ++j) out[i + j] = drawn[j] >> (32 - bits);
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(EncodeU8);
HWY_EXPORT(EncodeScaledU8);
HWY_EXPORT(EncodeU16);
HWY_EXPORT(EncodeU32);
HWY_EXPORT(EncodeDecode);
HWY_EXPORT(DecodeU8);
HWY_EXPORT(DecodeU16);
HWY_EXPORT(RandomBitsU32);

bool EncodesInVectors(const EncodePlan& plan) noexcept {
  if (plan.format.IsTable()) return false;
  if (plan.format.subnormal_shift != 0) return SubnormalGapFitsLanes(plan.format);
  return plan.mantissa_bits < 23;
}

bool DecodesInVectors(const FormatSpec& format) noexcept {
  if (format.subnormal_shift == 0) return DecodesInLanes(format);
  return SubnormalGapFitsLanes(format) && DecodesInLanes(WithoutSubnormalGap(format));
}

void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint8_t* codes, const ArrayRandom& random) {
  HWY_DYNAMIC_DISPATCH(EncodeU8)(plan, in, n, codes, random);
}
size_t EncodeScaledSimd(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        const RunFactors& factors,
                        size_t ahead,
                        uint8_t* codes,
                        const ArrayRandom& random) {
  return HWY_DYNAMIC_DISPATCH(EncodeScaledU8)(plan, in, n, factors, ahead, codes, random);
}
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint16_t* codes, const ArrayRandom& random) {
  HWY_DYNAMIC_DISPATCH(EncodeU16)(plan, in, n, codes, random);
}
void EncodeSimd(
    const EncodePlan& plan, const float* in, size_t n, uint32_t* codes, const ArrayRandom& random) {
  HWY_DYNAMIC_DISPATCH(EncodeU32)(plan, in, n, codes, random);
}
void FakeQuantizeSimd(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random) {
  HWY_DYNAMIC_DISPATCH(EncodeDecode)(plan, in, n, out, random);
}
void DecodeSimd(
    const FormatSpec& format, const uint8_t* codes, size_t n, float* out, Stores stores) {
  HWY_DYNAMIC_DISPATCH(DecodeU8)(format, codes, n, out, stores);
}
void DecodeSimd(
    const FormatSpec& format, const uint16_t* codes, size_t n, float* out, Stores stores) {
  HWY_DYNAMIC_DISPATCH(DecodeU16)(format, codes, n, out, stores);
}
void RandomBitsSimd(const ArrayRandom& random, int bits, size_t n, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(RandomBitsU32)(random, bits, n, out);
}

}  // namespace numsim
#endif  // HWY_ONCE
