// Runs the kernels of an optimiser on the host.
#pragma once

#include <memory>

#include "numsim/optim/internal/optimizer_runner.h"

namespace numsim {

// Returns a runner that runs threads on the calling one, in another order at each launch.
std::unique_ptr<KernelRunner> MakeHostRunner();

}  // namespace numsim
