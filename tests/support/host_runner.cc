#include "tests/support/host_runner.h"

#include "numsim/backend/shared/kernel_threads.h"

namespace numsim {
namespace {

struct LaunchOnHost {
  std::shared_ptr<size_t> launches = std::make_shared<size_t>(0);

  template <class Kernel>
  void operator()(const Kernel& kernel, size_t threads) const {
    const size_t launch = (*launches)++;
    const bool ascending = launch % 2 == 0;
    RunThreads(kernel, threads, threads / 3 * (launch % 3), ascending ? 1 : threads - 1);
  }
};

}  // namespace

std::unique_ptr<KernelRunner> MakeHostRunner() {
  return std::make_unique<LaunchingRunner<LaunchOnHost>>(LaunchOnHost());
}

}  // namespace numsim
