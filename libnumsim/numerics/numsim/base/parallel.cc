#include "numsim/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/base/thread_limit.h"

namespace numsim {
namespace {

std::atomic<int> g_threads = 0;  // 0: not set, use OpenMP's count

// Carries an exception out of a parallel region, which no exception may leave: that of the lowest
// number, so that the same one is thrown at any timing.
class LowestException {
 public:
  template <typename Work>
  void Run(size_t number, const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (exception_ != nullptr && number_ < number) return;
      exception_ = std::current_exception();
      number_ = number;
    }
  }
  // Throws the exception, if there was one. To be called after the region.
  void Rethrow() const {
    if (exception_ != nullptr) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
  size_t number_ = 0;
};

}  // namespace

int ThreadCount() {
  if (const int threads = g_threads; threads > 0) return threads;
  const int threads = omp_get_max_threads();
  if (threads > kMostThreads) {
    throw Error::Format(
        "OMP_NUM_THREADS: expected at most {} threads, found {}", kMostThreads, threads);
  }
  return threads;
}

void SetThreadCount(int threads) {
  NUMSIM_REQUIRE(threads >= 1 && threads <= kMostThreads,
                 "SetThreadCount: threads = {}, expected 1 to {}",
                 threads,
                 kMostThreads);
  g_threads = threads;
}

void ParallelFor(size_t n, size_t grain, FunctionRef<void(size_t, size_t)> body) {
  if (n == 0) return;
  const size_t threads = static_cast<size_t>(ThreadCount());
  if (threads == 1 || n <= grain || omp_in_parallel()) {
    const DefaultFloatEnvironment environment;
    body(0, n);
    return;
  }
  const size_t grains = (n + grain - 1) / grain;
  const size_t chunk = (grains + threads - 1) / threads * grain;
  LowestException failed;
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(threads))
  for (size_t t = 0; t < threads; ++t) {
    const DefaultFloatEnvironment environment;
    const size_t begin = t * chunk;
    if (begin < n) failed.Run(t, [&] { body(begin, std::min(n, begin + chunk)); });
  }
  failed.Rethrow();
}

void ParallelTasks(size_t n, FunctionRef<void(size_t)> body) {
  const int threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(ThreadCount()), n));
  if (threads <= 1 || omp_in_parallel()) {
    const DefaultFloatEnvironment environment;
    for (size_t i = 0; i < n; ++i) body(i);
    return;
  }
  LowestException failed;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (size_t i = 0; i < n; ++i) {
    const DefaultFloatEnvironment environment;
    failed.Run(i, [&] { body(i); });
  }
  failed.Rethrow();
}

void CallLibrary(FunctionRef<void(int)> work) {
  const int before = omp_get_max_threads();
  const int threads = omp_in_parallel() ? 1 : ThreadCount();
  omp_set_num_threads(threads);
  work(threads);
  omp_set_num_threads(before);
}

}  // namespace numsim
