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

// The sums of a step in the order of step_sums.h: of update^2, D^2 and D update.
inline constexpr unsigned kStepSums = 3;

// The sums and counts of a step over all weights.
struct StepTotals {
  double sums[kStepSums] = {};
  uint64_t moved = 0, saturated = 0;
  uint64_t not_finite = 0;  // nonzero if a weight or a number of the state is not finite
};

// Where a pass leaves them. `blocks` has kBlockWords words per block of kSumBlock elements.
struct StepTotalsAt {
  static constexpr unsigned kBlockWords = kStepSums + 1;
  uint64_t* blocks = nullptr;
  StepTotals* totals = nullptr;
};

// Where a step keeps what it overwrites, so that RestorePass can take it back. Null: not kept.
struct KeptNumbers {
  float* weights = nullptr;
  float* values = nullptr;
  uint16_t* words = nullptr;
  // Not null: `values` are kept only where nothing else tells them, which these bits say:
  // kStepThreads words per block of kSumBlock elements (update_step_kernel.h).
  uint32_t* lost = nullptr;
  // Upper halves of the values, which are all of most compensations. Null: the step of a master
  // tells what it was.
  uint16_t* halves = nullptr;
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
  double limit = 0;   // `largest`, or infinity if no weight can go beyond it
  const float* weights = nullptr;
  const float* update = nullptr;
  float* new_weights = nullptr;  // may be `weights`
  float* values = nullptr;
  uint16_t* words = nullptr;
  size_t n = 0;
  float learning_rate = 0;
  RandomStream random;
  KeptNumbers kept;
};

// Writes the new weights and state, what it keeps, and the totals. Takes any numbers; those that are
// not finite show in the totals.
void ElementwisePass(const DeviceStep& step, const StepTotalsAt& to, DeviceStream& stream);

// Takes the step of ElementwisePass back: the new weights become the old ones, and the state what it
// was, to the bit.
void RestorePass(const DeviceStep& step, DeviceStream& stream);

// Does the last pass of a matched step. Each weight takes its value at `low`; if its value at
// `high` differs and `decision` moves it, it takes that one. step.limit belongs to `high`.
void MatchedPass(const DeviceStep& step,
                 float low,
                 float high,
                 const TieDecision& decision,
                 const StepTotalsAt& to,
                 DeviceStream& stream);

}  // namespace numsim
