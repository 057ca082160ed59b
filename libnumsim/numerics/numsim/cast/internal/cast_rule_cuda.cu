// Conversions by the rounding and decoding rules, for any plan and format.
#include "numsim/cast/internal/cast_cuda.cuh"
#include "numsim/rounding/shared/encode_scalar.h"
#include "numsim/rounding/shared/subnormal_gap.h"

namespace numsim::cuda {
namespace {

using scalar::F32Lanes;

template <typename T>
__device__ __forceinline__ uint32_t CodeOrValue(const FormatSpec& format, uint32_t code) {
  if constexpr (kIsValue<T>) {
    return scalar::DecodeBits(format, code);
  } else {
    return code;
  }
}

template <RuleMode kMode, typename T>
struct RuleEncoder {
  static constexpr bool kOneByOne = true;
  using In = float;
  using Out = T;
  EncodePlan plan;
  PhiloxStream stream;
  uint64_t first_index;

  __device__ __forceinline__ uint32_t Apply(uint32_t bits, size_t i) const {
    uint32_t top = 0;
    if constexpr (kMode == RuleMode::kStochastic) {
      top = TopAlignedDraw(stream, first_index + i, plan.rounding.random_bits);
    }
    constexpr F32Lanes lanes;
    const uint32_t code =
        scalar::EncodeWord<kMode, ExponentRange::kGeneral>(lanes, plan, bits, top);
    return CodeOrValue<T>(plan.format, code);
  }
};

// Encodes over 64-bit words, for formats as precise as float32 or with a subnormal gap.
template <typename T>
struct WideEncoder {
  static constexpr bool kOneByOne = true;
  using In = float;
  using Out = T;
  EncodePlan plan;
  SubnormalGapPlans subnormal_gap;
  PhiloxStream stream;
  uint64_t first_index;

  __device__ __forceinline__ uint32_t Apply(uint32_t bits, size_t i) const {
    uint32_t r = 0;
    if (plan.rounding.mode == RoundingMode::kStochastic) {
      const int n = plan.rounding.random_bits;
      r = TopAlignedDraw(stream, first_index + i, n) >> (32 - n);
    }
    const uint64_t wide = scalar::WidenF32(bits);
    const uint32_t code = plan.format.subnormal_shift != 0
                              ? scalar::EncodeWithSubnormalGap(plan, subnormal_gap, wide, r)
                              : scalar::EncodeWide(plan, wide, r);
    return CodeOrValue<T>(plan.format, code);
  }
};

template <typename Code>
struct RuleDecoder {
  static constexpr bool kOneByOne = true;
  using In = Code;
  using Out = float;
  FormatSpec format;

  __device__ __forceinline__ uint32_t Apply(uint32_t code, size_t) const {
    return scalar::DecodeBits(format, code & format.CodeMask());
  }
};

template <RuleMode kMode, typename Out>
void MapRule(const EncodePlan& plan,
             MatrixSpan<const float> in,
             MatrixSpan<Out> out,
             const ArrayRandom& random) {
  RuleEncoder<kMode, Out> op;
  op.plan = plan;
  op.stream = MakePhiloxStream(random.stream);
  op.first_index = random.first_index;
  Map("encode by the rule", op, in, out);
}

}  // namespace

template <typename Out>
void EncodeByRule(const EncodePlan& plan,
                  MatrixSpan<const float> in,
                  MatrixSpan<Out> out,
                  const ArrayRandom& random) {
  if (scalar::NeedsWideWords(plan)) {
    WideEncoder<Out> op;
    op.plan = plan;
    op.subnormal_gap = MakeSubnormalGapPlans(plan);
    op.stream = MakePhiloxStream(random.stream);
    op.first_index = random.first_index;
    return Map("encode by the rule over 64-bit words", op, in, out);
  }
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return MapRule<RuleMode::kNearestEven>(plan, in, out, random);
    case RuleMode::kStochastic:
      return MapRule<RuleMode::kStochastic>(plan, in, out, random);
    case RuleMode::kOther:
      return MapRule<RuleMode::kOther>(plan, in, out, random);
  }
}

template <typename Code>
void DecodeByRule(const FormatSpec& format, MatrixSpan<const Code> codes, MatrixSpan<float> out) {
  RuleDecoder<Code> op;
  op.format = format;
  Map("decode by the rule", op, codes, out);
}

#define NUMSIM_INSTANTIATE(Out)    \
  template void EncodeByRule<Out>( \
      const EncodePlan&, MatrixSpan<const float>, MatrixSpan<Out>, const ArrayRandom&);
NUMSIM_INSTANTIATE(uint8_t)
NUMSIM_INSTANTIATE(uint16_t)
NUMSIM_INSTANTIATE(uint32_t)
NUMSIM_INSTANTIATE(float)
#undef NUMSIM_INSTANTIATE

template void DecodeByRule<uint16_t>(const FormatSpec&,
                                     MatrixSpan<const uint16_t>,
                                     MatrixSpan<float>);
template void DecodeByRule<uint32_t>(const FormatSpec&,
                                     MatrixSpan<const uint32_t>,
                                     MatrixSpan<float>);

}  // namespace numsim::cuda
