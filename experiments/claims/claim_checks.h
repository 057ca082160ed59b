// Checks of the arguments of TestClaim.
#pragma once

#include <string_view>

#include "experiments/claims/verdict.h"

namespace numsim::experiments {

// Throws Error, in the name of TestClaim, as it documents.
void CheckTest(const ClaimTest& test);
void CheckTable(const OutcomeTable& table);
void CheckLevel(const TestLevel& level);

}  // namespace numsim::experiments
