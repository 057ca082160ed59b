// Parallel loops. The one place of numsim that knows OpenMP.
#pragma once

#include <cstddef>

#include "numsim/base/function_ref.h"

namespace numsim {

// Threads that ParallelFor uses at most, >= 1. Initially OMP_NUM_THREADS or the number of cores.
int ThreadCount();

// Requires threads >= 1. Holds for every later ParallelFor of the process.
void SetThreadCount(int threads);

// Calls body(begin, end) for consecutive chunks that cover [0, n) exactly once. Every chunk but the
// last has the same length, a multiple of `grain` (>= 1), so a kernel may rely on aligned starts;
// choose a grain worth a thread's while (tens of microseconds), for up to that many run serially.
// The split depends on the thread count: a body must give the same result for every split.
// Inside a parallel region (a chunk that calls ParallelFor again) the inner loop runs serially.
// Every chunk runs in the default floating-point environment, whatever the caller's is
// (base/float_environment.h). body must not throw.
void ParallelFor(size_t n, size_t grain, FunctionRef<void(size_t, size_t)> body);

// Calls body(i) for i in [0, n), each once, handing out one index at a time in ascending order:
// for tasks of unequal cost. In the default floating-point environment too. body must not throw.
void ParallelTasks(size_t n, FunctionRef<void(size_t)> body);

// Calls work(threads), and within it the OpenMP loops of another library take `threads` threads:
// ThreadCount(), or 1 in a chunk or task of the loops above. work must not throw.
void CallLibrary(FunctionRef<void(int)> work);

}  // namespace numsim
