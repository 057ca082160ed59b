// What the search of a matched step asks of weights on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/backend/device.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/updates/internal/matched_sample.h"
#include "numsim/updates/internal/matched_terms.h"
#include "numsim/updates/internal/tie_set.h"

namespace numsim {

// Weights with their updates. `index` says where each stands in the tensor; null: at its own place.
struct DeviceElements {
  float* weights = nullptr;
  float* update = nullptr;
  uint64_t* index = nullptr;
  size_t count = 0;  // or room for so many
};

// Candidates of one pass.
inline constexpr size_t kDeviceCandidates = 128;

// What is summed at a candidate: terms, or the deviations of a sample, with `share` as in
// MatchedPopulation.
struct DeviceSum {
  double sum = 0, squares = 0;  // squares of the deviations
};

// What two candidates make of some weights.
struct DeviceCrossing {
  double sum_low = 0, sum_high = 0;
  double same = 0;       // what the weights add that have one value at both
  uint64_t changed = 0;  // the number of the others
};

// The passes of one step. Memory is the caller's: `partial` for kPartials sums, `results` for
// kResults bytes.
class MatchedPasses {
 public:
  static constexpr size_t kMostParts = 512;  // of a pass
  static constexpr size_t kPartials = kMostParts * kDeviceCandidates;
  static constexpr size_t kResults = (size_t{1} << kTieBucketBits) * sizeof(double);

  MatchedPasses(const StepRule& rule,
                const MatchedTerms& terms,
                DeviceSum* partial,
                void* results,
                DeviceStream& stream)
      : rule_(rule), terms_(terms), partial_(partial), results_(results), stream_(stream) {}

  // The sample of `all` (matched_sample.h), into `sample`, whose count says how many.
  void TakeSample(const DeviceElements& all, RandomStream random, const DeviceElements& sample);

  // Sums of terms(alpha), or of terms(alpha) - share u^2 where `share` is not null, at up to
  // kDeviceCandidates candidates, a multiple of 8. The same bits each time.
  std::vector<DeviceSum> SumsAt(const DeviceElements& elements,
                                std::span<const AlphaKey> candidates,
                                const double* share);

  // Copies those that differ at both candidates to `changed`, in no order, as far as there is room.
  DeviceCrossing Cross(const DeviceElements& elements,
                       AlphaKey low,
                       AlphaKey high,
                       const DeviceElements& changed);

  // What the members of the group of `key` add to S, by the bucket of their words. Exact below T.
  std::vector<double> SumBuckets(const DeviceElements& elements, AlphaKey key, RandomStream random);

  // Copies the group's members of one bucket to `members`, in no order. Returns how many there are.
  size_t CollectBucket(const DeviceElements& elements,
                       AlphaKey key,
                       RandomStream random,
                       uint32_t bucket,
                       const DeviceElements& members);

 private:
  const StepRule& rule_;
  const MatchedTerms& terms_;
  DeviceSum* partial_;
  void* results_;
  DeviceStream& stream_;
};

}  // namespace numsim
