// Runs of trials that a signal may stop: `run` and `pilot`.
#pragma once

#include <functional>
#include <optional>

#include "experiments/runner/runner.h"

namespace numsim::apps {

// Calls `work`, which runs `options`, until it ends or a signal stops it; sets options.interrupted.
// Running trials then have `grace` seconds to finish; after that they are lost, and only they. Returns
// nothing if it ended; otherwise says how to go on, and returns the exit code.
std::optional<int> RunUntilSignal(experiments::RunOptions& options,
                                  double grace,
                                  const std::function<experiments::RunReport()>& work);

}  // namespace numsim::apps
