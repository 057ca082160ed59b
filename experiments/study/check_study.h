// Finds what is wrong with a study before anything is trained.
#pragma once

#include "experiments/study/study.h"

namespace numsim::experiments::study {

// Throws Error naming the part of the study and the nearest name: texts with axes or options that do not
// exist, names that are taken, choices that set no key of `numsim train`, axes without options, claims
// without an outcome, with arms that the axes cannot make or with numbers that no test takes.
void CheckStudy(const Study& study);

}  // namespace numsim::experiments::study
