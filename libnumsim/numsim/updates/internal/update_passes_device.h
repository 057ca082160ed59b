// What update rules do to all weights in one pass on the device. Arrays lie there; finite numbers
// unless said otherwise, n > 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/updates/internal/tie_set.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Sums in the order of step_sums.h: of each block of kSumBlock elements, to be added in order.
struct DeviceBlockSums {
  double* squares = nullptr;
  double* projections = nullptr;
  uint64_t* counts = nullptr;  // moved, saturated: of all, added to what stands there
};

// The greatest bits of magnitudes, NaN included, added (as a maximum) to what stands there.
struct DeviceMaxima {
  uint32_t weights = 0, update = 0, state = 0;
};

// `values` and `words` may be null. With words, the state is the master that weight and word join
// to.
struct DeviceScan {
  const float* weights = nullptr;
  const float* update = nullptr;
  const float* values = nullptr;
  const uint16_t* words = nullptr;
  size_t n = 0;
};

// Any numbers. squares[b]: the sum of update^2 over block b.
void ScanPass(const DeviceScan& arrays,
              double* squares,
              DeviceMaxima* maxima,
              DeviceStream& stream);

// decayed[i] = fl32(fl64(u - weight_decay W)), W as in DecayedUpdate: of kahan w + c with c in
// `values`, else the master of `values` or `words`, else w.
void DecayPass(
    const DeviceScan& arrays, bool kahan, float weight_decay, float* decayed, DeviceStream& stream);

// A step of one of the rules that take each weight by itself.
struct DeviceStep {
  UpdateKind kind = UpdateKind::kNaive;
  StepRule rule;      // Q; of the stochastic rule SR
  EncodePlan own;     // kahan: Qc
  float largest = 0;  // finite value of the format
  double limit = 0;   // UpdateJob::LimitAt(learning_rate)
  const float* weights = nullptr;
  const float* update = nullptr;
  float* new_weights = nullptr;  // may be `weights`
  float* values = nullptr;
  uint16_t* words = nullptr;
  size_t n = 0;
  float learning_rate = 0;
  RandomStream random;
};

void ElementwisePass(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream);

// The last pass of a matched step: weights take their value at `low`, those that have another at
// `high` and that the decision moves take that one. step.limit belongs to `high`.
void MatchedPass(const DeviceStep& step,
                 float low,
                 float high,
                 const TieDecision& decision,
                 const DeviceBlockSums& sums,
                 DeviceStream& stream);

}  // namespace numsim
