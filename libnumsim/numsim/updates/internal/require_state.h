// The check of a state against its rule and weights.
#pragma once

#include <cstddef>

#include "numsim/updates/update_rule.h"

namespace numsim {

// Throws Error unless `state` has the sizes of a state of the rule for `weights` weights in
// `groups` groups of its scope.
void RequireState(const UpdateRule& rule,
                  const UpdateState& state,
                  size_t weights,
                  size_t groups,
                  const char* function);

}  // namespace numsim
