// Reads what a study claims.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/study/read_parts.h"

namespace numsim::experiments::study {

// An outcome of a run: a column, or a function of that name.
struct NamedOutcome {
  std::function<double(const Frame& run)> of = {};
  std::string column = {};
  std::optional<Margin> margin = {};  // of claims that have none
  std::string note = {};              // ends their contrasts
};
using NamedOutcomes = Named<NamedOutcome>;

// Reads [outcomes], in whose texts {NAME} is one of the words.
NamedOutcomes ReadOutcomes(Node& root, const Functions& functions, const Words& words);

// Reads [every_claim] and [[claims]]. `study` has its tables.
void ReadClaims(Node& root,
                const Functions& functions,
                const NamedOutcomes& outcomes,
                const Words& words,
                Study& study);

}  // namespace numsim::experiments::study
