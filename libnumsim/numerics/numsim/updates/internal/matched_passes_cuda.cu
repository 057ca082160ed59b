#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/base/error.h"
#include "numsim/cast/shared/random_word_cuda.cuh"
#include "numsim/updates/internal/matched_passes_device.h"

namespace numsim {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFu;  // threads of a warp
constexpr unsigned kTogether = 8;       // candidates per thread
constexpr unsigned kBuckets = 1u << kTieBucketBits;

// The arguments that most kernels share.
struct Problem {
  StepRule rule;
  MatchedTerms terms;
  DeviceElements elements;
};

struct Candidates {
  float alpha[kDeviceCandidates];
};

__device__ double WarpSum(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAll, x, step);
  return x;
}

// Returns the sum over a thread block, added in a fixed order.
__device__ double BlockSum(double x, double* warps) {
  x = WarpSum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  double total = 0;
  for (unsigned warp = 0; warp < kWarps; ++warp) total += warps[warp];
  return total;
}

__global__ void __launch_bounds__(kThreads)
    SampleKernel(DeviceElements all, RandomStream random, size_t part, DeviceElements sample) {
  const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= sample.count) return;
  const size_t run = i / kSampleRun;
  const size_t at = SampleRunBegin(cuda::RandomWordAt(random, run), run, part) + i % kSampleRun;
  const bool exists = at < all.count;  // if not, zeros add nothing
  sample.weights[i] = exists ? all.weights[at] : 0.0f;
  sample.update[i] = exists ? all.update[at] : 0.0f;
}

// Writes partial[candidate][part]. Thread block (x, y) sums part x of the elements at candidates
// 8 y .. 8 y + 7.
template <StepPath kPath>
__global__ void __launch_bounds__(kThreads)
    SumsKernel(const __grid_constant__ Problem problem,
               const __grid_constant__ Candidates candidates,
               bool deviations,
               double share,
               DeviceSum* partial) {
  const DeviceElements& elements = problem.elements;
  float alpha[kTogether];
  double sum[kTogether] = {}, squares[kTogether] = {};
#pragma unroll
  for (unsigned c = 0; c < kTogether; ++c) {
    alpha[c] = candidates.alpha[blockIdx.y * kTogether + c];
  }
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < elements.count;
       i += stride) {
    const float w = elements.weights[i], u = elements.update[i];
    const double square = static_cast<double>(u) * static_cast<double>(u);
#pragma unroll
    for (unsigned c = 0; c < kTogether; ++c) {
      const float v = NearestStep<kPath>(problem.rule, w, u, alpha[c]);
      if (deviations) {
        const double deviation = problem.terms(w, u, v) - share * square;
        sum[c] += deviation;
        squares[c] += deviation * deviation;
      } else if (v != w) {
        sum[c] += problem.terms(w, u, v);
      }
    }
  }
  __shared__ double warps[kWarps];
#pragma unroll
  for (unsigned c = 0; c < kTogether; ++c) {
    const DeviceSum total{BlockSum(sum[c], warps), BlockSum(squares[c], warps)};
    const size_t candidate = blockIdx.y * kTogether + c;
    if (threadIdx.x == 0) partial[candidate * gridDim.x + blockIdx.x] = total;
  }
}

// Adds the parts of each candidate, with one warp per candidate.
__global__ void JoinPartsKernel(const DeviceSum* partial, unsigned parts, DeviceSum* sums) {
  DeviceSum total;
  for (unsigned part = threadIdx.x; part < parts; part += 32) {
    const DeviceSum& x = partial[static_cast<size_t>(blockIdx.x) * parts + part];
    total.sum += x.sum;
    total.squares += x.squares;
  }
  total.sum = WarpSum(total.sum);
  total.squares = WarpSum(total.squares);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Reserves room for `count` elements of this thread and returns its place, which follows the
// elements of the block's previous threads. The block's elements follow the *used elements of other
// blocks. The whole block must call it.
__device__ uint64_t PlaceFor(unsigned count, unsigned* warps, uint64_t* begin, uint64_t* used) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned inclusive = count;
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned below = __shfl_up_sync(kAll, inclusive, step);
    if (lane >= step) inclusive += below;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = inclusive;
  __syncthreads();
  unsigned before = inclusive - count, all = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    before += w < warp ? warps[w] : 0;
    all += warps[w];
  }
  if (threadIdx.x == 0 && all > 0) {
    *begin = atomicAdd(reinterpret_cast<unsigned long long*>(used),
                       static_cast<unsigned long long>(all));
  }
  __syncthreads();
  return *begin + before;
}

__device__ uint64_t IndexOf(const DeviceElements& elements, size_t i) {
  return elements.index != nullptr ? elements.index[i] : i;
}

__device__ void Copy(const DeviceElements& from, size_t i, const DeviceElements& to, uint64_t at) {
  if (at >= to.count) return;
  to.weights[at] = from.weights[i];
  to.update[at] = from.update[i];
  to.index[at] = IndexOf(from, i);
}

// Elements that a thread handles between two calls of PlaceFor.
constexpr unsigned kEach = 16;

template <StepPath kPath>
__global__ void __launch_bounds__(kThreads) CrossKernel(const __grid_constant__ Problem problem,
                                                        float low,
                                                        float high,
                                                        const __grid_constant__ DeviceElements to,
                                                        DeviceCrossing* crossing) {
  const DeviceElements& elements = problem.elements;
  __shared__ unsigned counts[kWarps];
  __shared__ double warps[kWarps];
  __shared__ uint64_t begin;
  double sum_low = 0, sum_high = 0, same = 0;
  constexpr size_t kTile = static_cast<size_t>(kThreads) * kEach;
  for (size_t tile = blockIdx.x * kTile; tile < elements.count; tile += gridDim.x * kTile) {
    unsigned changed = 0;  // one bit per element
#pragma unroll 4
    for (unsigned k = 0; k < kEach; ++k) {
      const size_t i = tile + k * kThreads + threadIdx.x;
      const bool exists = i < elements.count;
      const float w = exists ? elements.weights[i] : 0.0f;
      const float u = exists ? elements.update[i] : 0.0f;
      const float at_low = NearestStep<kPath>(problem.rule, w, u, low);
      const float at_high = NearestStep<kPath>(problem.rule, w, u, high);
      const bool differs = exists && at_low != at_high;
      if (at_high != w) {  // else both terms are zero
        const double term_low = problem.terms(w, u, at_low);
        sum_low += term_low;
        sum_high += differs ? problem.terms(w, u, at_high) : term_low;
        same += differs ? 0 : term_low;
      }
      changed |= differs ? 1u << k : 0u;
    }
    uint64_t at = PlaceFor(__popc(changed), counts, &begin, &crossing->changed);
    for (; changed != 0; changed &= changed - 1) {
      const unsigned k = __ffs(changed) - 1;
      Copy(elements, tile + k * kThreads + threadIdx.x, to, at++);
    }
  }
  sum_low = BlockSum(sum_low, warps);
  sum_high = BlockSum(sum_high, warps);
  same = BlockSum(same, warps);
  if (threadIdx.x == 0) {  // sums are exact where it matters, so the order is free
    atomicAdd(&crossing->sum_low, sum_low);
    atomicAdd(&crossing->sum_high, sum_high);
    atomicAdd(&crossing->same, same);
  }
}

// Calls body(i, word, added) for the members of the tie set of `high`: the elements whose values at
// `low` and `high` differ.
template <StepPath kPath, class Body>
__device__ void ForEachMember(
    const Problem& problem, RandomStream random, float low, float high, const Body& body) {
  const DeviceElements& elements = problem.elements;
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < elements.count;
       i += stride) {
    const float w = elements.weights[i], u = elements.update[i];
    const float at_low = NearestStep<kPath>(problem.rule, w, u, low);
    const float at_high = NearestStep<kPath>(problem.rule, w, u, high);
    if (at_low == at_high) continue;
    const uint32_t word = cuda::RandomWordAt(random, IndexOf(elements, i));
    body(i, word, problem.terms(w, u, at_high) - problem.terms(w, u, at_low));
  }
}

template <StepPath kPath>
__global__ void __launch_bounds__(kThreads) BucketsKernel(const __grid_constant__ Problem problem,
                                                          RandomStream random,
                                                          float low,
                                                          float high,
                                                          double* added) {
  __shared__ double sums[kBuckets];
  for (unsigned b = threadIdx.x; b < kBuckets; b += kThreads) sums[b] = 0;
  __syncthreads();
  ForEachMember<kPath>(problem, random, low, high, [&](size_t, uint32_t word, double term) {
    atomicAdd(&sums[TieBucket(word)], term);
  });
  __syncthreads();
  for (unsigned b = threadIdx.x; b < kBuckets; b += kThreads) {
    if (sums[b] != 0) atomicAdd(&added[b], sums[b]);
  }
}

template <StepPath kPath>
__global__ void __launch_bounds__(kThreads) CollectKernel(const __grid_constant__ Problem problem,
                                                          RandomStream random,
                                                          float low,
                                                          float high,
                                                          uint32_t bucket,
                                                          const __grid_constant__ DeviceElements to,
                                                          uint64_t* count) {
  ForEachMember<kPath>(problem, random, low, high, [&](size_t i, uint32_t word, double) {
    if (TieBucket(word) != bucket) return;
    const uint64_t at = atomicAdd(reinterpret_cast<unsigned long long*>(count), 1ull);
    Copy(problem.elements, i, to, at);
  });
}

// Returns the number of thread blocks for `count` elements, `each` per block. It depends on nothing
// else.
unsigned PartsOf(size_t count, size_t each, size_t most) {
  return static_cast<unsigned>(std::clamp<size_t>((count + each - 1) / each, 1, most));
}

// Calls body(path) with the rule's path as a compile-time constant.
template <class Body>
void OnPath(const StepRule& rule, const Body& body) {
  if (rule.path == StepPath::kGrid) {
    body(std::integral_constant<StepPath, StepPath::kGrid>{});
  } else {
    body(std::integral_constant<StepPath, StepPath::kNearest>{});
  }
}

void Check(const char* kernel, const DeviceElements& elements) {
  cuda::CheckLaunch(kernel, fmt::format("{} weights", elements.count));
}

}  // namespace

void MatchedPasses::TakeSample(const DeviceElements& all,
                               RandomStream random,
                               const DeviceElements& sample) {
  const auto blocks = static_cast<unsigned>((sample.count + kThreads - 1) / kThreads);
  const size_t part = all.count / (sample.count / kSampleRun);
  SampleKernel<<<blocks, kThreads, 0, cuda::Raw(stream_)>>>(all, random, part, sample);
  Check("sample of a matched step", sample);
}

std::vector<DeviceSum> MatchedPasses::SumsAt(const DeviceElements& elements,
                                             std::span<const AlphaKey> candidates,
                                             const double* share) {
  NUMSIM_CHECK(candidates.size() <= kDeviceCandidates && candidates.size() % kTogether == 0,
               "{} candidates",
               candidates.size());
  Candidates alphas{};
  for (size_t c = 0; c < candidates.size(); ++c) alphas.alpha[c] = AlphaOf(candidates[c]);
  const Problem problem{rule_, terms_, elements};
  const dim3 grid(PartsOf(elements.count, 4 * kThreads, kMostParts),
                  static_cast<unsigned>(candidates.size() / kTogether));
  OnPath(rule_, [&](auto path) {
    SumsKernel<path.value><<<grid, kThreads, 0, cuda::Raw(stream_)>>>(
        problem, alphas, share != nullptr, share != nullptr ? *share : 0, partial_);
  });
  Check("sums of a matched step", elements);
  auto* const joined = static_cast<DeviceSum*>(results_);
  JoinPartsKernel<<<static_cast<unsigned>(candidates.size()), 32, 0, cuda::Raw(stream_)>>>(
      partial_, grid.x, joined);
  Check("joined sums of a matched step", elements);
  return device_memory::Fetch<DeviceSum>(joined, candidates.size(), stream_);
}

DeviceCrossing MatchedPasses::Cross(const DeviceElements& elements,
                                    AlphaKey low,
                                    AlphaKey high,
                                    const DeviceElements& changed) {
  auto* const crossing = static_cast<DeviceCrossing*>(results_);
  device_memory::FillBytes(crossing, 0, sizeof(DeviceCrossing), stream_);
  const Problem problem{rule_, terms_, elements};
  const unsigned blocks = PartsOf(elements.count, static_cast<size_t>(kThreads) * kEach, 2048);
  OnPath(rule_, [&](auto path) {
    CrossKernel<path.value><<<blocks, kThreads, 0, cuda::Raw(stream_)>>>(
        problem, AlphaOf(low), AlphaOf(high), changed, crossing);
  });
  Check("crossing of a matched step", elements);
  return device_memory::Fetch<DeviceCrossing>(crossing, 1, stream_)[0];
}

std::vector<double> MatchedPasses::SumBuckets(const DeviceElements& elements,
                                              AlphaKey key,
                                              RandomStream random) {
  auto* const added = static_cast<double*>(results_);
  device_memory::FillBytes(added, 0, kBuckets * sizeof(double), stream_);
  const Problem problem{rule_, terms_, elements};
  const unsigned blocks = PartsOf(elements.count, 8 * kThreads, 1024);
  OnPath(rule_, [&](auto path) {
    BucketsKernel<path.value><<<blocks, kThreads, 0, cuda::Raw(stream_)>>>(
        problem, random, AlphaOf(key - 1), AlphaOf(key), added);
  });
  Check("buckets of a matched step", elements);
  return device_memory::Fetch<double>(added, kBuckets, stream_);
}

size_t MatchedPasses::CollectBucket(const DeviceElements& elements,
                                    AlphaKey key,
                                    RandomStream random,
                                    uint32_t bucket,
                                    const DeviceElements& members) {
  auto* const count = static_cast<uint64_t*>(results_);
  device_memory::FillBytes(count, 0, sizeof(uint64_t), stream_);
  const Problem problem{rule_, terms_, elements};
  const unsigned blocks = PartsOf(elements.count, 8 * kThreads, 1024);
  OnPath(rule_, [&](auto path) {
    CollectKernel<path.value><<<blocks, kThreads, 0, cuda::Raw(stream_)>>>(
        problem, random, AlphaOf(key - 1), AlphaOf(key), bucket, members, count);
  });
  Check("members of a matched step", elements);
  return device_memory::Fetch<uint64_t>(count, 1, stream_)[0];
}

}  // namespace numsim
