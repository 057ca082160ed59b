// The outcome of a weight update as text.
#pragma once

#include <string>
#include <vector>

#include "numsim/io/csv.h"
#include "numsim/updates/update_rule.h"

namespace numsim::apps {

// A line "NAME VALUE" for every figure of the outcome, named as in UpdateOutcome. Numbers read back
// to the same number.
std::string OutcomeText(const UpdateOutcome& outcome);

// An object with the same names; what is not finite is null.
std::string OutcomeJson(const UpdateOutcome& outcome);

// A row a group: its number, then the same names.
Table OutcomeTable(const std::vector<UpdateOutcome>& groups);

}  // namespace numsim::apps
