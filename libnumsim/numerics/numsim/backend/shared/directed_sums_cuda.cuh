// Float64 sums that a device rounds in any direction by one instruction. Included before
// cast/shared/round_f64.h, whose host code gets them from the sum to nearest and its error.
#pragma once

#ifdef __CUDA_ARCH__
#define NUMSIM_SUM_DOWN(a, b) __dadd_rd(a, b)
#define NUMSIM_SUM_UP(a, b) __dadd_ru(a, b)
#define NUMSIM_SUM_TOWARD_ZERO(a, b) __dadd_rz(a, b)
#endif
