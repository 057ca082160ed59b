// Passes of the update rules over all weights on the device. Arrays are on the device, numbers are
// finite unless stated otherwise, and n > 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/updates/internal/tie_set.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Sums in the order of step_sums.h: one per block of kSumBlock elements, to be added in order.
struct DeviceBlockSums {
  double* squares = nullptr;
  double* projections = nullptr;
  uint64_t* counts = nullptr;  // moved and saturated, for all blocks; a pass adds to them
};

// The greatest bits of magnitudes, including NaN. A pass only raises them.
struct DeviceMaxima {
  uint32_t weights = 0, update = 0, state = 0;
};

// The input of a scan. `values` and `words` may be null. With `words`, the state is the masters
// that weights and words join to (JoinMaster).
struct DeviceScan {
  const float* weights = nullptr;
  const float* update = nullptr;
  const float* values = nullptr;
  const uint16_t* words = nullptr;
  size_t n = 0;
};

// Writes squares[b] = the sum of update^2 over block b, and raises the maxima. Takes any numbers.
void ScanPass(const DeviceScan& arrays,
              double* squares,
              DeviceMaxima* maxima,
              DeviceStream& stream);

// Writes decayed[i] = fl32(fl64(u - weight_decay W)), with W as in DecayedUpdate: w + c for kahan,
// with c in `values`; else the master in `values` or `words`; else w.
void DecayPass(
    const DeviceScan& arrays, bool kahan, float weight_decay, float* decayed, DeviceStream& stream);

// A step of a rule that treats each weight by itself.
struct DeviceStep {
  UpdateKind kind = UpdateKind::kNaive;
  StepRule rule;      // Q; stochastic: SR
  StepRule own;       // kahan: Qc
  float largest = 0;  // largest finite value of the format
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

// Writes the new weights, state and block sums, and adds to the counts.
void ElementwisePass(const DeviceStep& step, const DeviceBlockSums& sums, DeviceStream& stream);

// Does the last pass of a matched step. Each weight takes its value at `low`; if its value at
// `high` differs and `decision` moves it, it takes that one. step.limit belongs to `high`.
void MatchedPass(const DeviceStep& step,
                 float low,
                 float high,
                 const TieDecision& decision,
                 const DeviceBlockSums& sums,
                 DeviceStream& stream);

}  // namespace numsim
