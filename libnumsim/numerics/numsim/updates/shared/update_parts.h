// Parts of ApplyUpdate for optimisers that take steps by kernels of their own.
#pragma once

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Returns Q for weights of that format.
EncodePlan WeightPlan(const FormatSpec& format);

// Returns the kind's own rounding. stochastic: SR; master-fp16-scaled: to fp16; kahan: Qc;
// note-as-printed: Q without saturation; all others: Q. All except note-as-printed saturate.
EncodePlan OwnPlan(const UpdateRule& rule, const FormatSpec& format);

// Returns the outcome of a step: `found`, with the fields that follow from the sums filled in and
// the status raised accordingly.
UpdateOutcome CompleteOutcome(UpdateKind kind,
                              float learning_rate,
                              const StepSums& sums,
                              double update_square,
                              UpdateOutcome found);

}  // namespace numsim
