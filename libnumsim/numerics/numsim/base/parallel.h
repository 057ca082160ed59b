// Parallel loops. base/parallel.cc is the only file of numsim that calls OpenMP.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace numsim {

// A non-owning reference to a function, for the duration of a call. Like std::function, but it
// allocates nothing.

template <typename Signature>
class FunctionRef;

// Refers to a lambda or another callable object, which must outlive all calls through the
// reference. A lambda written in the argument list of the function that calls it does.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <typename Function>
  requires(std::is_class_v<std::remove_cvref_t<Function>> &&
           !std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
           std::is_invocable_r_v<Result, Function&, Arguments...>)
      FunctionRef(Function&& function)  // NOLINT: implicit, so that a lambda can be passed
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(object))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

// Returns the maximum number of threads that ParallelFor uses, >= 1. The default is OMP_NUM_THREADS
// or the number of cores. Throws Error if the default is above kMostThreads (base/thread_limit.h).
int ThreadCount();

// Sets the thread count of every later parallel loop in the process. Throws Error unless it is from 1
// to kMostThreads.
void SetThreadCount(int threads);

// Calls body(begin, end) for consecutive chunks that cover [0, n) exactly once. All chunks except
// the last have the same length, a multiple of `grain` (>= 1), so a kernel may rely on aligned
// starts. Up to `grain` indices run serially: choose a grain that is worth starting a thread for
// (tens of microseconds of work).
// The split depends on the thread count, so `body` must give the same result for every split.
// Inside a parallel region (a chunk that calls ParallelFor again) the inner loop runs serially.
// Every chunk runs in the default floating-point environment, whatever the caller's is
// (base/shared/float_environment.h). If chunks throw, the exception of the first one of them is
// thrown after all chunks have ended. Without threads the loop ends at the first exception.
void ParallelFor(size_t n, size_t grain, FunctionRef<void(size_t, size_t)> body);

// Calls body(i) once for each i in [0, n). Threads take one index at a time, in ascending order,
// which suits tasks of unequal cost. Every task runs in the default floating-point environment.
// Exceptions are as for ParallelFor.
void ParallelTasks(size_t n, FunctionRef<void(size_t)> body);

// Calls work(threads), in which the OpenMP loops of another library use `threads` threads:
// ThreadCount(), or 1 inside a chunk or task of the loops above. `work` must not throw.
void CallLibrary(FunctionRef<void(int)> work);

}  // namespace numsim
