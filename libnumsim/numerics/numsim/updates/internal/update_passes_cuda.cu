// In a scan, a thread handles, in order, the elements of one of the eight partial sums of a block of
// kSumBlock elements (step_sums.h). Eight neighbouring threads read 32 bytes at a time, and each
// thread has eight such accesses to every array in flight. For a step see update_step_kernel.h.
#include "numsim/backend/shared/launch_threads_cuda.cuh"
//
#include <fmt/format.h>

#include <bit>
#include <cstdint>

#include "numsim/base/error.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_passes_device.h"
#include "numsim/updates/internal/update_rules_cuda.cuh"
#include "numsim/updates/internal/update_step_kernel.h"
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

constexpr unsigned kReaders = kStepThreads - 32;

// Memory of a group of threads that it shares: the terms of a part, or the numbers that the group
// that adds blocks has read.
union StepShared {
  PartTerms terms;
  uint64_t read[2][kReaders][kStepSums];
};

constexpr uint64_t kAbsent = ~uint64_t{0};  // a word of a block that is not done

// Stores a word of a block. No sum is a NaN of these bits but by accident.
__device__ void Publish(uint64_t* word, uint64_t bits) {
  constexpr uint64_t kNan = 0x7FF8000000000000u;
  *static_cast<volatile uint64_t*>(word) = bits == kAbsent ? kNan : bits;
}
// Reads the words of a block as soon as it is done.
__device__ void Await(const uint64_t* words, uint64_t (&read)[StepTotalsAt::kBlockWords]) {
  const volatile uint64_t* const from = words;
  for (;;) {
    bool done = true;
#pragma unroll
    for (unsigned w = 0; w < StepTotalsAt::kBlockWords; ++w) read[w] = from[w];
#pragma unroll
    for (unsigned w = 0; w < StepTotalsAt::kBlockWords; ++w) done = done && read[w] != kAbsent;
    if (done) return;
    __nanosleep(100);
  }
}

// Takes the step of a block and publishes its sums and counts. kWhole: all its elements exist. One
// warp adds the terms, in each block another: warps of one number share a scheduler.
template <bool kWhole, class Rule>
__device__ void StepBlock(
    const DeviceStep& step, const Rule& rule, size_t block, PartTerms& terms, uint64_t* words) {
  __shared__ uint64_t counted;
  const unsigned thread = threadIdx.x;
  const unsigned adder = thread ^ static_cast<unsigned>(block % (kStepThreads / 32) * 32);
  BlockThread<Rule, kWhole> work(step, rule, block, thread);
  if (thread == 0) counted = 0;
  PartNumbers numbers;
  work.Load(0, numbers);
  double sum = 0;
  const unsigned parts = work.Parts();
  for (unsigned part = 0; part < parts; ++part) {
    work.Take(part, numbers, terms);
    if (part + 1 < parts) work.Load(part + 1, numbers);
    __syncthreads();
    if (adder < kStepSums * kSumLanes) sum = AddPart(terms, adder, sum);
    __syncthreads();
  }
  const StepCounts counts = work.Finish();
  const uint32_t both = __reduce_add_sync(kAll, counts.moved | counts.saturated << 16);
  const bool finite = __all_sync(kAll, counts.finite);
  if (thread % 32 == 0) {
    const StepCounts of_warp{both & 0xFFFFu, both >> 16, finite};
    atomicAdd(reinterpret_cast<unsigned long long*>(&counted),
              static_cast<unsigned long long>(of_warp.Packed()));
  }
  __syncthreads();
  if (adder >= 32) return;
  double total = 0;
  for (unsigned lane = 0; lane < kSumLanes; ++lane) {
    total += __shfl_sync(kAll, sum, static_cast<int>(lane), kSumLanes);
  }
  if (adder % kSumLanes != 0) return;
  const unsigned word = adder / kSumLanes;
  Publish(words + word, word < kStepSums ? std::bit_cast<uint64_t>(total) : counted);
}

// Adds the blocks in order while other groups take their steps. The first warp adds what the others
// have read before.
__device__ void AddBlocks(size_t blocks, StepShared& shared, const StepTotalsAt& to) {
  const unsigned thread = threadIdx.x, reader = threadIdx.x - 32;
  unsigned long long moved = 0, saturated = 0, not_finite = 0;
  double total = 0;
  size_t begin = 0;  // of the blocks that were read last
  unsigned count = 0, half = 0;
  do {
    const size_t next = begin + count;
    const auto reads = static_cast<unsigned>(min(blocks - next, size_t{kReaders}));
    if (thread >= 32 && reader < reads) {
      uint64_t words[StepTotalsAt::kBlockWords];
      Await(to.blocks + (next + reader) * StepTotalsAt::kBlockWords, words);
#pragma unroll
      for (unsigned s = 0; s < kStepSums; ++s) shared.read[half][reader][s] = words[s];
      moved += words[kStepSums] & 0xFFFFu;
      saturated += words[kStepSums] >> 16 & 0xFFFFu;
      not_finite += words[kStepSums] >> 32;
    }
    if (thread < kStepSums) {
#pragma unroll 16
      for (unsigned b = 0; b < count; ++b) {
        total += std::bit_cast<double>(shared.read[half ^ 1][b][thread]);
      }
    }
    __syncthreads();
    begin = next;
    count = reads;
    half ^= 1;
  } while (count > 0);
  if (thread < kStepSums) to.totals->sums[thread] = total;
  auto* const out = reinterpret_cast<unsigned long long*>(&to.totals->moved);
  atomicAdd(out, moved);
  atomicAdd(out + 1, saturated);
  atomicAdd(out + 2, not_finite);
}

// Group 0 adds the blocks, and group b + 1 takes the step of block b.
template <class Rule>
__global__ void __launch_bounds__(kStepThreads, 8)
    StepKernel(const __grid_constant__ DeviceStep step,
               const __grid_constant__ Rule rule,
               const __grid_constant__ StepTotalsAt to) {
  __shared__ StepShared shared;
  if (blockIdx.x == 0) {
    AddBlocks(gridDim.x - 1, shared, to);
  } else {
    const size_t block = blockIdx.x - 1;
    uint64_t* const words = to.blocks + block * StepTotalsAt::kBlockWords;
    if ((block + 1) * kSumBlock <= step.n) {
      StepBlock<true>(step, rule, block, shared.terms, words);
    } else {
      StepBlock<false>(step, rule, block, shared.terms, words);
    }
  }
}

__global__ void __launch_bounds__(256) RestoreKernel(const __grid_constant__ DeviceStep step) {
  const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < step.n) RestoreElement(step, i);
}

template <class Rule>
void Launch(const DeviceStep& step,
            const Rule& rule,
            const StepTotalsAt& to,
            DeviceStream& stream) {
  const size_t blocks = (step.n + kSumBlock - 1) / kSumBlock;
  const size_t bytes = blocks * StepTotalsAt::kBlockWords * sizeof(uint64_t);
  device_memory::FillBytes(to.blocks, 0xFF, bytes, stream);  // kAbsent
  device_memory::FillBytes(to.totals, 0, sizeof(StepTotals), stream);
  const auto groups = static_cast<unsigned>(blocks + 1);
  StepKernel<<<groups, kStepThreads, 0, cuda::Raw(stream)>>>(step, rule, to);
  cuda::CheckLaunch("weight update", fmt::format("{} weights", step.n));
}

template <template <StepPath> class Rule>
void LaunchOnPath(const DeviceStep& step, const StepTotalsAt& to, DeviceStream& stream) {
  if (step.rule.path == StepPath::kGrid) {
    Launch(step, Rule<StepPath::kGrid>{}, to, stream);
  } else {
    Launch(step, Rule<StepPath::kNearest>{}, to, stream);
  }
}

void LaunchStochastic(const DeviceStep& step, const StepTotalsAt& to, DeviceStream& stream) {
  if (step.rule.path == StepPath::kStochasticGrid) {
    Launch(step, StochasticRuleOn<StepPath::kStochasticGrid>{}, to, stream);
  } else {
    Launch(step, StochasticRuleOn<StepPath::kStochastic>{}, to, stream);
  }
}

void LaunchKahan(const DeviceStep& step, const StepTotalsAt& to, DeviceStream& stream) {
  constexpr StepPath kGrid = StepPath::kGrid, kAny = StepPath::kNearest;
  const bool on_grid = step.rule.path == kGrid;
  if (on_grid && step.own.path == kGrid) {
    Launch(step, KahanRuleOn<kGrid, kGrid>{}, to, stream);
  } else if (on_grid) {
    Launch(step, KahanRuleOn<kGrid, kAny>{}, to, stream);
  } else {
    Launch(step, KahanRuleOn<kAny, kAny>{}, to, stream);
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

void ElementwisePass(const DeviceStep& step, const StepTotalsAt& to, DeviceStream& stream) {
  switch (step.kind) {
    case UpdateKind::kNaive:
      return LaunchOnPath<NaiveRule>(step, to, stream);
    case UpdateKind::kStochastic:
      return LaunchStochastic(step, to, stream);
    case UpdateKind::kMasterFp32:
      return LaunchOnPath<MasterFp32Rule>(step, to, stream);
    case UpdateKind::kSplitMaster:
      return Launch(step, SplitMasterRule{}, to, stream);
    case UpdateKind::kKahan:
      return LaunchKahan(step, to, stream);
    default:
      NUMSIM_CHECK(false, "kind {}", static_cast<int>(step.kind));
  }
}

void RestorePass(const DeviceStep& step, DeviceStream& stream) {
  const auto blocks = static_cast<unsigned>((step.n + 255) / 256);
  RestoreKernel<<<blocks, 256, 0, cuda::Raw(stream)>>>(step);
  cuda::CheckLaunch("return of a weight update", fmt::format("{} weights", step.n));
}

void MatchedPass(const DeviceStep& step,
                 float low,
                 float high,
                 const TieDecision& decision,
                 const StepTotalsAt& to,
                 DeviceStream& stream) {
  if (step.rule.path == StepPath::kGrid) {
    Launch(step, cuda::MatchedRule<StepPath::kGrid>{low, high, decision}, to, stream);
  } else {
    Launch(step, cuda::MatchedRule<StepPath::kNearest>{low, high, decision}, to, stream);
  }
}

}  // namespace numsim
