// Digests of what a study file says: a correction of one part must not cost what follows from another.
#pragma once

#include <string>

#include "experiments/study/node.h"

namespace numsim::experiments::study {

// Returns the SHA-256 of what the rows of trainings follow from. Files with the same one have the same rows
// in all runs with the same settings: texts, limits, derived tables, figures and claims do not count, nor
// do comments and the values of presets, which are settings of a run.
std::string DigestOfRows(Node root);

// Returns the SHA-256 of what is claimed, and of what the claims are judged by.
std::string DigestOfClaims(Node root);

}  // namespace numsim::experiments::study
