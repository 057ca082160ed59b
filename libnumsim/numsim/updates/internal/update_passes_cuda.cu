// A thread handles, in order, the elements of one of the eight partial sums of a block of kSumBlock
// elements (step_sums.h). Eight neighbouring threads read 32 bytes at a time, and each thread has
// eight such accesses to every array in flight.
#include <fmt/format.h>

#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/backend/shared/directed_sums_cuda.cuh"
#include "numsim/base/error.h"
#include "numsim/random/shared/tile_draws.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_passes_device.h"
#include "numsim/updates/internal/update_rules_cuda.cuh"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kLanes = 8;  // partial sums of a block
constexpr unsigned kSteps = 8;  // elements of a lane that are loaded together
constexpr unsigned kTile = kLanes * kSteps;
constexpr unsigned kAll = 0xFFFFFFFFu;  // threads of a warp
static_assert(kSumBlock % kTile == 0 && kTile == 64);

// The place of a thread: a lane of a block.
struct Place {
  size_t block;
  unsigned lane;
  size_t begin;    // of the block
  unsigned count;  // elements of the block, 0 beyond the array

  __device__ explicit Place(size_t n) {
    const size_t thread = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    block = thread / kLanes;
    lane = threadIdx.x % kLanes;
    begin = block * kSumBlock;
    const size_t rest = begin < n ? n - begin : 0;
    count = static_cast<unsigned>(rest < kSumBlock ? rest : kSumBlock);
  }
};

// Returns the partial sums of a block added in order, in all its threads. Whole warps must call it.
__device__ double Total(double partial) {
  double total = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) total += __shfl_sync(kAll, partial, lane, kLanes);
  return total;
}

__device__ uint32_t MagnitudeBits(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

unsigned GridOf(size_t n) {
  const size_t threads = (n + kSumBlock - 1) / kSumBlock * kLanes;
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__global__ void __launch_bounds__(kThreads)
    ScanKernel(const __grid_constant__ DeviceScan arrays, double* squares, DeviceMaxima* maxima) {
  const Place place(arrays.n);
  double square = 0;
  uint32_t weights = 0, update = 0, state = 0;
  for (unsigned tile = 0; tile < place.count; tile += kTile) {
    float w[kSteps], u[kSteps];
#pragma unroll
    for (unsigned k = 0; k < kSteps; ++k) {
      const unsigned i = tile + k * kLanes + place.lane;
      w[k] = i < place.count ? arrays.weights[place.begin + i] : 0.0f;
      u[k] = i < place.count ? arrays.update[place.begin + i] : 0.0f;
    }
    if (arrays.values != nullptr || arrays.words != nullptr) {
#pragma unroll
      for (unsigned k = 0; k < kSteps; ++k) {
        const unsigned i = tile + k * kLanes + place.lane;
        if (i >= place.count) continue;
        const size_t at = place.begin + i;
        const float x =
            arrays.values != nullptr ? arrays.values[at] : JoinMaster(w[k], arrays.words[at]);
        state = max(state, MagnitudeBits(x));
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kSteps; ++k) {
      weights = max(weights, MagnitudeBits(w[k]));
      update = max(update, MagnitudeBits(u[k]));
      const double value = static_cast<double>(u[k]);
      square += value * value;  // beyond the end it adds +0
    }
  }
  const double total = Total(square);
  if (place.count > 0 && place.lane == 0) squares[place.block] = total;
  weights = __reduce_max_sync(kAll, weights);
  update = __reduce_max_sync(kAll, update);
  state = __reduce_max_sync(kAll, state);
  if (threadIdx.x % 32 == 0) {
    // Most warps find a greater value already stored.
    volatile DeviceMaxima* const known = maxima;
    if (weights > known->weights) atomicMax(&maxima->weights, weights);
    if (update > known->update) atomicMax(&maxima->update, update);
    if (state > known->state) atomicMax(&maxima->state, state);
  }
}

__global__ void __launch_bounds__(256) DecayKernel(const __grid_constant__ DeviceScan arrays,
                                                   bool kahan,
                                                   double decay,
                                                   float* decayed) {
  const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= arrays.n) return;
  const double u = static_cast<double>(arrays.update[i]);
  if (kahan) {
    decayed[i] = DecayedCompensated(
        u, decay, static_cast<double>(arrays.weights[i]), static_cast<double>(arrays.values[i]));
    return;
  }
  float weight = arrays.weights[i];
  if (arrays.values != nullptr) weight = arrays.values[i];
  if (arrays.words != nullptr) weight = JoinMaster(weight, arrays.words[i]);
  decayed[i] = DecayedElement(u, decay, static_cast<double>(weight));
}

// A lane's part of the StepSums of a step.
struct LaneSums {
  double square = 0, projection = 0;
  uint32_t moved = 0, saturated = 0;

  __device__ void Add(float before, float after, float update, bool beyond) {
    saturated += beyond ? 1 : 0;
    if (after == before) return;  // the terms would be zero, and sums are never -0
    const double d = static_cast<double>(after) - static_cast<double>(before);
    square += d * d;
    projection += d * static_cast<double>(update);
    ++moved;
  }
};

// Takes the step of elements tile .. tile + 63 of a block. kWhole: all of them exist.
template <bool kWhole, class Rule>
__device__ void StepTile(
    const DeviceStep& step, const Rule& rule, const Place& place, unsigned tile, LaneSums& sums) {
  const size_t first = place.begin + tile;
  float w[kSteps], u[kSteps];
  ElementState extra[kSteps];
#pragma unroll
  for (unsigned k = 0; k < kSteps; ++k) {
    const size_t i = first + k * kLanes + place.lane;
    const bool exists = kWhole || tile + k * kLanes + place.lane < place.count;
    w[k] = exists ? step.weights[i] : 0.0f;
    u[k] = exists ? step.update[i] : 0.0f;
    if (exists) extra[k] = rule.Load(step, i);
  }
  const auto finish = [&](unsigned k, uint32_t draw) {
    if (!kWhole && tile + k * kLanes + place.lane >= place.count) return;
    const size_t i = first + k * kLanes + place.lane;
    bool beyond = false;
    const float after = rule.Next(step, i, w[k], u[k], extra[k], draw, beyond);
    step.new_weights[i] = after;
    sums.Add(w[k], after, u[k], beyond);
  };
  if constexpr (Rule::kDraws) {
    const TileDraws draws(step.random, step.rule.plan.rounding.random_bits, first, place.lane);
#pragma unroll
    for (unsigned k = 0; k < kSteps; ++k) finish(k, draws.At(k));
  } else {
#pragma unroll
    for (unsigned k = 0; k < kSteps; ++k) finish(k, 0);
  }
}

template <class Rule>
__global__ void __launch_bounds__(kThreads) StepKernel(const __grid_constant__ DeviceStep step,
                                                       const __grid_constant__ Rule rule,
                                                       const __grid_constant__ DeviceBlockSums to) {
  const Place place(step.n);
  LaneSums sums;
  unsigned tile = 0;
  for (; tile + kTile <= place.count; tile += kTile) {
    StepTile<true>(step, rule, place, tile, sums);
  }
  if (tile < place.count) StepTile<false>(step, rule, place, tile, sums);
  const double square = Total(sums.square);
  const double projection = Total(sums.projection);
  if (place.count > 0 && place.lane == 0) {
    to.squares[place.block] = square;
    to.projections[place.block] = projection;
  }
  const uint32_t moved = __reduce_add_sync(kAll, sums.moved);
  const uint32_t saturated = __reduce_add_sync(kAll, sums.saturated);
  if (threadIdx.x % 32 == 0) {
    auto* const counts = reinterpret_cast<unsigned long long*>(to.counts);
    if (moved > 0) atomicAdd(counts, static_cast<unsigned long long>(moved));
    if (saturated > 0) atomicAdd(counts + 1, static_cast<unsigned long long>(saturated));
  }
}

template <class Rule>
void Launch(const DeviceStep& step,
            const Rule& rule,
            const DeviceBlockSums& sums,
            DeviceStream& stream) {
  StepKernel<<<GridOf(step.n), kThreads, 0, cuda::Raw(stream)>>>(step, rule, sums);
  cuda::CheckLaunch("weight update", fmt::format("{} weights", step.n));
}

template <template <StepPath> class Rule>
void LaunchOnPath(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream) {
  if (step.rule.path == StepPath::kGrid) {
    Launch(step, Rule<StepPath::kGrid>{}, sums, stream);
  } else {
    Launch(step, Rule<StepPath::kNearest>{}, sums, stream);
  }
}

void LaunchStochastic(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream) {
  if (step.rule.path == StepPath::kStochasticGrid) {
    Launch(step, StochasticRuleOn<StepPath::kStochasticGrid>{}, sums, stream);
  } else {
    Launch(step, StochasticRuleOn<StepPath::kStochastic>{}, sums, stream);
  }
}

void LaunchKahan(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream) {
  constexpr StepPath kGrid = StepPath::kGrid, kAny = StepPath::kNearest;
  const bool on_grid = step.rule.path == kGrid;
  if (on_grid && step.own.path == kGrid) {
    Launch(step, KahanRuleOn<kGrid, kGrid>{}, sums, stream);
  } else if (on_grid) {
    Launch(step, KahanRuleOn<kGrid, kAny>{}, sums, stream);
  } else {
    Launch(step, KahanRuleOn<kAny, kAny>{}, sums, stream);
  }
}

}  // namespace

void ScanPass(const DeviceScan& arrays,
              double* squares,
              DeviceMaxima* maxima,
              DeviceStream& stream) {
  ScanKernel<<<GridOf(arrays.n), kThreads, 0, cuda::Raw(stream)>>>(arrays, squares, maxima);
  cuda::CheckLaunch("scan of a weight update", fmt::format("{} weights", arrays.n));
}

void DecayPass(const DeviceScan& arrays,
               bool kahan,
               float weight_decay,
               float* decayed,
               DeviceStream& stream) {
  const auto blocks = static_cast<unsigned>((arrays.n + 255) / 256);
  DecayKernel<<<blocks, 256, 0, cuda::Raw(stream)>>>(
      arrays, kahan, static_cast<double>(weight_decay), decayed);
  cuda::CheckLaunch("weight decay", fmt::format("{} weights", arrays.n));
}

void ElementwisePass(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream) {
  switch (step.kind) {
    case UpdateKind::kNaive:
      return LaunchOnPath<NaiveRule>(step, sums, stream);
    case UpdateKind::kStochastic:
      return LaunchStochastic(step, sums, stream);
    case UpdateKind::kMasterFp32:
      return LaunchOnPath<MasterFp32Rule>(step, sums, stream);
    case UpdateKind::kSplitMaster:
      return Launch(step, SplitMasterRule{}, sums, stream);
    case UpdateKind::kKahan:
      return LaunchKahan(step, sums, stream);
    default:
      NUMSIM_CHECK(false, "kind {}", static_cast<int>(step.kind));
  }
}

void MatchedPass(const DeviceStep& step,
                 float low,
                 float high,
                 const TieDecision& decision,
                 const DeviceBlockSums& sums,
                 DeviceStream& stream) {
  if (step.rule.path == StepPath::kGrid) {
    Launch(step, cuda::MatchedRule<StepPath::kGrid>{low, high, decision}, sums, stream);
  } else {
    Launch(step, cuda::MatchedRule<StepPath::kNearest>{low, high, decision}, sums, stream);
  }
}

}  // namespace numsim
