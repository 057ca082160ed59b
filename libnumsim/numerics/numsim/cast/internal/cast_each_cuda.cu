// EncodeEach and RoundEach (cast_device.h): one element at a time, by the rules.
#include <type_traits>

#include "numsim/cast/internal/cast_cuda.cuh"
#include "numsim/rounding/shared/encode_scalar.h"
#include "numsim/rounding/shared/subnormal_gap.h"

namespace numsim::cuda {
namespace {

// The random bits of each element: a word of the caller's, or those of a stream.
struct EachRandom {
  const uint32_t* words;  // null: those of the stream
  PhiloxStream stream;
  uint64_t first_index;
};

struct EachPlan {
  EncodePlan plan;
  SubnormalGapPlans subnormal_gap;
  EachRandom random;

  // Returns the random bits of element i in the low bits, as EncodeF64 takes them.
  __device__ uint32_t RandomOf(size_t i) const {
    if (random.words != nullptr) return random.words[i];
    if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
    const int n = plan.rounding.random_bits;
    return TopAlignedDraw(random.stream, random.first_index + i, n) >> (32 - n);
  }
  __device__ uint32_t CodeOf(uint64_t bits, size_t i) const {
    if (plan.format.subnormal_shift != 0) {
      return scalar::EncodeWithSubnormalGap(plan, subnormal_gap, bits, RandomOf(i));
    }
    return scalar::EncodeWide(plan, bits, RandomOf(i));
  }
};

__device__ uint64_t WideBits(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
__device__ uint64_t WideBits(float x) { return scalar::WidenF32(__float_as_uint(x)); }

// The value of a code as a float, or as a double: exact, also for subnormals and NaN.
__device__ void StoreValue(const FormatSpec& format, uint32_t code, float* to) {
  *to = __uint_as_float(scalar::DecodeBits(format, code & format.CodeMask()));
}
__device__ void StoreValue(const FormatSpec& format, uint32_t code, double* to) {
  const uint32_t bits = scalar::DecodeBits(format, code & format.CodeMask());
  *to = __longlong_as_double(static_cast<long long>(scalar::WidenF32(bits)));
}

template <typename Float, typename Out>
__global__ void __launch_bounds__(kThreads)
    EachKernel(const Float* in, size_t n, Out* out, const __grid_constant__ EachPlan plan) {
  const size_t step = gridDim.x * size_t{kThreads};
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < n; i += step) {
    const uint32_t code = plan.CodeOf(WideBits(in[i]), i);
    if constexpr (std::is_floating_point_v<Out>) {
      StoreValue(plan.plan.format, code, out + i);
    } else {
      out[i] = static_cast<Out>(code);
    }
  }
}

template <typename Float, typename Out>
void LaunchEach(const EncodePlan& plan,
                MatrixSpan<const Float> in,
                MatrixSpan<Out> out,
                const ArrayRandom& random,
                MatrixSpan<const uint32_t> words) {
  if (in.Empty()) return;
  EachPlan each;
  each.plan = plan;
  each.subnormal_gap = MakeSubnormalGapPlans(plan);
  each.random = {words.data, MakePhiloxStream(random.stream), random.first_index};
  const size_t wanted = (in.Elements() + kThreads - 1) / kThreads;
  const size_t most = size_t{32} * static_cast<size_t>(Device().multiprocessors);
  const auto blocks = static_cast<unsigned>(wanted < most ? wanted : most);
  EachKernel<Float, Out>
      <<<blocks, kThreads, 0, Raw(out.place.Stream())>>>(in.data, in.Elements(), out.data, each);
  CheckLaunch("encode each", fmt::format("{} elements", in.Elements()));
}

}  // namespace

template <typename Float, typename Code>
void EncodeEach(const EncodePlan& plan,
                MatrixSpan<const Float> in,
                MatrixSpan<Code> codes,
                const ArrayRandom& random,
                MatrixSpan<const uint32_t> words) {
  LaunchEach(plan, in, codes, random, words);
}

template <typename Float>
void RoundEach(const EncodePlan& plan,
               MatrixSpan<const Float> in,
               MatrixSpan<Float> out,
               const ArrayRandom& random,
               MatrixSpan<const uint32_t> words) {
  LaunchEach(plan, in, out, random, words);
}

#define NUMSIM_INSTANTIATE_CODE(Float, Code)                     \
  template void EncodeEach<Float, Code>(const EncodePlan&,       \
                                        MatrixSpan<const Float>, \
                                        MatrixSpan<Code>,        \
                                        const ArrayRandom&,      \
                                        MatrixSpan<const uint32_t>);
#define NUMSIM_INSTANTIATE(Float)                         \
  NUMSIM_INSTANTIATE_CODE(Float, uint8_t)                 \
  NUMSIM_INSTANTIATE_CODE(Float, uint16_t)                \
  NUMSIM_INSTANTIATE_CODE(Float, uint32_t)                \
  template void RoundEach<Float>(const EncodePlan&,       \
                                 MatrixSpan<const Float>, \
                                 MatrixSpan<Float>,       \
                                 const ArrayRandom&,      \
                                 MatrixSpan<const uint32_t>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE
#undef NUMSIM_INSTANTIATE_CODE

}  // namespace numsim::cuda
