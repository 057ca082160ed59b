// Checks of the matrices and the state of a step.
#pragma once

#include <cstddef>

#include "numsim/updates/update_rule.h"

namespace numsim {

// Throws Error unless `matrix` is contiguous float32 of the shape and place of `weights`.
void RequireLikeWeights(MatrixSpan<const float> matrix,
                        MatrixSpan<const float> weights,
                        const char* function,
                        const char* argument);

// Throws Error unless `state` has the sizes of a state of the rule for these weights, in `groups`
// groups of its scope, and lies at their place.
void RequireState(const UpdateRule& rule,
                  const UpdateState& state,
                  MatrixSpan<const float> weights,
                  size_t groups,
                  const char* function);

}  // namespace numsim
