// The enumerators of elementary functions in the C interface.
#pragma once

#include "numsim/arith/elementary.h"
#include "numsim/capi/internal/arguments.h"

namespace numsim::capi {

static_assert(static_cast<int>(ElementaryFunction::kExp) == NUMSIM_EXP);
static_assert(static_cast<int>(ElementaryFunction::kExp2) == NUMSIM_EXP2);
static_assert(static_cast<int>(ElementaryFunction::kLog) == NUMSIM_LOG);
static_assert(static_cast<int>(ElementaryFunction::kLog2) == NUMSIM_LOG2);
static_assert(static_cast<int>(ElementaryFunction::kTanh) == NUMSIM_TANH);
static_assert(static_cast<int>(ElementaryFunction::kSigmoid) == NUMSIM_SIGMOID);
static_assert(static_cast<int>(ElementaryFunction::kGelu) == NUMSIM_GELU);
static_assert(static_cast<int>(ElementaryFunction::kGeluTanh) == NUMSIM_GELU_TANH);

// Returns NUMSIM_ERROR_BAD_ARGUMENT unless `given` is an enumerator.
inline numsim_status_t ReadFunction(int given, ElementaryFunction* function) noexcept {
  if (given < 0 || given > NUMSIM_GELU_TANH) return NUMSIM_ERROR_BAD_ARGUMENT;
  *function = static_cast<ElementaryFunction>(given);
  return NUMSIM_OK;
}

}  // namespace numsim::capi
