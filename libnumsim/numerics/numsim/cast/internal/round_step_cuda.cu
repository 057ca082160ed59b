// RoundStep on the device: four neighbouring elements per thread if all arrays are aligned to 16
// bytes, else one at a time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/backend/shared/directed_sums_cuda.cuh"
#include "numsim/cast/internal/cast_device.h"
#include "numsim/cast/shared/random_word_cuda.cuh"
#include "numsim/cast/shared/round_step_rule.h"

namespace numsim::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct StepArrays {
  const float* base;
  const float* direction;
  float* out;
  size_t n;
};

template <StepPath kPath>
__device__ float StepAt(const StepRule& rule,
                        float base,
                        float direction,
                        float factor,
                        const ArrayRandom& random,
                        size_t i) {
  uint32_t bits = 0;
  if constexpr (kPath == StepPath::kStochastic || kPath == StepPath::kStochasticGrid) {
    bits = RandomBitsAt(random.stream, random.first_index + i, rule.plan.rounding.random_bits);
  }
  return RoundStepOne<kPath>(rule, base, direction, factor, bits);
}

template <StepPath kPath>
__global__ void __launch_bounds__(kThreads) StepKernel(const __grid_constant__ StepRule rule,
                                                       const __grid_constant__ StepArrays arrays,
                                                       float factor,
                                                       const __grid_constant__ ArrayRandom random,
                                                       size_t quads) {
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  const size_t first = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (size_t q = first; q < quads; q += stride) {
    const float4 b = reinterpret_cast<const float4*>(arrays.base)[q];
    const float4 d = reinterpret_cast<const float4*>(arrays.direction)[q];
    float4 out;
    out.x = StepAt<kPath>(rule, b.x, d.x, factor, random, 4 * q);
    out.y = StepAt<kPath>(rule, b.y, d.y, factor, random, 4 * q + 1);
    out.z = StepAt<kPath>(rule, b.z, d.z, factor, random, 4 * q + 2);
    out.w = StepAt<kPath>(rule, b.w, d.w, factor, random, 4 * q + 3);
    reinterpret_cast<float4*>(arrays.out)[q] = out;
  }
  for (size_t i = 4 * quads + first; i < arrays.n; i += stride) {
    arrays.out[i] = StepAt<kPath>(rule, arrays.base[i], arrays.direction[i], factor, random, i);
  }
}

bool Aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

template <StepPath kPath>
void Launch(const StepRule& rule,
            const StepArrays& arrays,
            float factor,
            const ArrayRandom& random,
            DeviceStream& stream) {
  const bool wide = Aligned(arrays.base) && Aligned(arrays.direction) && Aligned(arrays.out);
  const size_t quads = wide ? arrays.n / 4 : 0;
  const size_t work = wide ? quads + 3 : arrays.n;
  const size_t blocks = std::min<size_t>((work + kThreads - 1) / kThreads, size_t{1} << 20);
  StepKernel<kPath><<<static_cast<unsigned>(blocks), kThreads, 0, Raw(stream)>>>(
      rule, arrays, factor, random, quads);
}

}  // namespace

void RoundStep(const EncodePlan& plan,
               MatrixSpan<const float> base,
               MatrixSpan<const float> direction,
               float factor,
               MatrixSpan<float> out,
               const ArrayRandom& random) {
  if (out.Empty()) return;
  const StepRule rule = MakeStepRule(plan);
  const StepArrays arrays{base.data, direction.data, out.data, out.Elements()};
  switch (rule.path) {
    case StepPath::kGrid:
      Launch<StepPath::kGrid>(rule, arrays, factor, random, out.place.Stream());
      break;
    case StepPath::kNearest:
      Launch<StepPath::kNearest>(rule, arrays, factor, random, out.place.Stream());
      break;
    case StepPath::kStochastic:
      Launch<StepPath::kStochastic>(rule, arrays, factor, random, out.place.Stream());
      break;
    case StepPath::kStochasticGrid:
      Launch<StepPath::kStochasticGrid>(rule, arrays, factor, random, out.place.Stream());
      break;
    case StepPath::kOther:
      Launch<StepPath::kOther>(rule, arrays, factor, random, out.place.Stream());
      break;
  }
  CheckLaunch("RoundStep", fmt::format("{} elements", out.Elements()));
}

}  // namespace numsim::cuda
