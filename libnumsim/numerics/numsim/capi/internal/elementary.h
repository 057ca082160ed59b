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
static_assert(static_cast<int>(ElementaryFunction::kExpMinusOne) == NUMSIM_EXPM1);
static_assert(static_cast<int>(ElementaryFunction::kLogOnePlus) == NUMSIM_LOG1P);
static_assert(static_cast<int>(ElementaryFunction::kSoftplus) == NUMSIM_SOFTPLUS);
static_assert(static_cast<int>(ElementaryFunction::kRsqrt) == NUMSIM_RSQRT);
static_assert(static_cast<int>(ElementaryFunction::kSin) == NUMSIM_SIN);
static_assert(static_cast<int>(ElementaryFunction::kCos) == NUMSIM_COS);
static_assert(static_cast<int>(ElementaryFunction::kTan) == NUMSIM_TAN);
static_assert(static_cast<int>(ElementaryFunction::kArcSin) == NUMSIM_ASIN);
static_assert(static_cast<int>(ElementaryFunction::kArcCos) == NUMSIM_ACOS);
static_assert(static_cast<int>(ElementaryFunction::kArcTan) == NUMSIM_ATAN);
static_assert(static_cast<int>(ElementaryFunction::kSinPi) == NUMSIM_SINPI);
static_assert(static_cast<int>(ElementaryFunction::kCosPi) == NUMSIM_COSPI);
static_assert(static_cast<int>(ElementaryFunction::kTanPi) == NUMSIM_TANPI);
static_assert(static_cast<int>(ElementaryFunction::kArcSinPi) == NUMSIM_ASINPI);
static_assert(static_cast<int>(ElementaryFunction::kArcCosPi) == NUMSIM_ACOSPI);
static_assert(static_cast<int>(ElementaryFunction::kArcTanPi) == NUMSIM_ATANPI);
static_assert(static_cast<int>(ElementaryFunction::kSinh) == NUMSIM_SINH);
static_assert(static_cast<int>(ElementaryFunction::kCosh) == NUMSIM_COSH);
static_assert(static_cast<int>(ElementaryFunction::kArcSinh) == NUMSIM_ASINH);
static_assert(static_cast<int>(ElementaryFunction::kArcCosh) == NUMSIM_ACOSH);
static_assert(static_cast<int>(ElementaryFunction::kArcTanh) == NUMSIM_ATANH);

// Returns NUMSIM_ERROR_BAD_ARGUMENT unless `given` is an enumerator.
inline numsim_status_t ReadFunction(int given, ElementaryFunction* function) noexcept {
  if (given < 0 || given > NUMSIM_ATANH) return NUMSIM_ERROR_BAD_ARGUMENT;
  *function = static_cast<ElementaryFunction>(given);
  return NUMSIM_OK;
}

}  // namespace numsim::capi
