// Parallel loops. The one place of numsim that knows OpenMP.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace numsim {

// A function that somebody else owns, for the time of a call: std::function without its memory.

template <typename Signature>
class FunctionRef;

// Refers to a lambda or another callable object, which must live as long as calls are made; made
// at the call that takes it, it does. Allocates nothing.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <typename Function>
  requires(std::is_class_v<std::remove_cvref_t<Function>> &&
           !std::is_same_v<std::remove_cvref_t<Function>, FunctionRef> &&
           std::is_invocable_r_v<Result, Function&, Arguments...>)
      FunctionRef(Function&& function)  // NOLINT: a lambda is passed as it is
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
// (base/shared/float_environment.h). body must not throw.
void ParallelFor(size_t n, size_t grain, FunctionRef<void(size_t, size_t)> body);

// Calls body(i) for i in [0, n), each once, handing out one index at a time in ascending order:
// for tasks of unequal cost. In the default floating-point environment too. body must not throw.
void ParallelTasks(size_t n, FunctionRef<void(size_t)> body);

// Calls work(threads), and within it the OpenMP loops of another library take `threads` threads:
// ThreadCount(), or 1 in a chunk or task of the loops above. work must not throw.
void CallLibrary(FunctionRef<void(int)> work);

}  // namespace numsim
