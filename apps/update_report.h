// Formats the outcome of a weight update.
#pragma once

#include <string>
#include <vector>

#include "numsim/io/csv.h"
#include "numsim/random/streams.h"
#include "numsim/updates/update_rule.h"

namespace numsim::apps {

// Returns one line "NAME VALUE" per figure of the outcome, with the names of UpdateOutcome, and the
// seed and step of its random bits. Numbers are printed with enough digits to parse to the same
// number.
std::string OutcomeText(const UpdateOutcome& outcome, RandomStream random);

// Returns a JSON object with the same names. Numbers that are not finite become null.
std::string OutcomeJson(const UpdateOutcome& outcome, RandomStream random);

// Returns a table with one row per group and the columns `group` (its number) and the same names.
Table OutcomeTable(const std::vector<UpdateOutcome>& groups);

}  // namespace numsim::apps
