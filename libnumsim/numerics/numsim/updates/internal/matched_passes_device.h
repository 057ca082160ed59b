// The device passes that the search of a matched step (matched_step.h) is made of.
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

// Weights with their updates. `index` gives the place of each in the tensor. If it is null, element
// i is weight i of the tensor.
struct DeviceElements {
  float* weights = nullptr;
  float* update = nullptr;
  uint64_t* index = nullptr;
  size_t count = 0;  // number of elements, or the room for elements in an output list
};

// The most candidates of one pass.
inline constexpr size_t kDeviceCandidates = 128;

// The sums at a candidate: of terms, or of the deviations of a sample, term - share u^2 with
// `share` as in MatchedPopulation.
struct DeviceSum {
  double sum = 0, squares = 0;  // squares of the deviations
};

// Sums of terms over some weights at two candidates.
struct DeviceCrossing {
  double sum_low = 0, sum_high = 0;
  double same = 0;       // sum over the weights that have the same value at both
  uint64_t changed = 0;  // number of the other weights
};

// The passes of one step. The caller provides the memory: `partial` for kPartials sums, `results`
// for kResults bytes.
class MatchedPasses {
 public:
  static constexpr size_t kMostParts = 512;  // the most parts (thread blocks) of a pass
  static constexpr size_t kPartials = kMostParts * kDeviceCandidates;
  static constexpr size_t kResults = (size_t{1} << kTieBucketBits) * sizeof(double);

  MatchedPasses(const StepRule& rule,
                const MatchedTerms& terms,
                DeviceSum* partial,
                void* results,
                DeviceStream& stream)
      : rule_(rule), terms_(terms), partial_(partial), results_(results), stream_(stream) {}

  // Copies the sample of `all` that matched_sample.h defines to `sample`. sample.count is the
  // number of weights to take.
  void TakeSample(const DeviceElements& all, RandomStream random, const DeviceElements& sample);

  // Returns the sums of terms(alpha), or of terms(alpha) - share u^2 if `share` is not null, at
  // each candidate. Requires at most kDeviceCandidates candidates, a multiple of 8. Gives the same
  // bits each time.
  std::vector<DeviceSum> SumsAt(const DeviceElements& elements,
                                std::span<const AlphaKey> candidates,
                                const double* share);

  // Returns the sums at both candidates. Copies the elements whose values differ between them to
  // `changed`, in no particular order, as far as there is room.
  DeviceCrossing Cross(const DeviceElements& elements,
                       AlphaKey low,
                       AlphaKey high,
                       const DeviceElements& changed);

  // Returns, per bucket of random words, what the members of the tie set of `key` add to S. The
  // sums are exact below T.
  std::vector<double> SumBuckets(const DeviceElements& elements, AlphaKey key, RandomStream random);

  // Copies the members of the tie set in one bucket to `members`, in no particular order, as far as
  // there is room. Returns their number.
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
