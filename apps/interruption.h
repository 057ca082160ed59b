// The orderly end of a long command at SIGINT or SIGTERM: `run` and `train`.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "experiments/runner/exit_code.h"

namespace numsim::apps {

using experiments::kStoppedBySignal;

// During its lifetime, the first SIGINT or SIGTERM only sets Flag(), which the work polls where it
// can stop without loss. A second one, of either kind, has its default effect. One object at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Returns the flag that the signal sets.
  const std::atomic<bool>& Flag() const;

 private:
  static constexpr size_t kCount = 2;
  static constexpr int kSignals[kCount] = {SIGINT, SIGTERM};
  struct sigaction before_[kCount];
};

// Calls `give_up` in a thread of its own once the flag has been set for `seconds`; not after the
// destructor. For work that cannot always stop in time.
class GraceTimer {
 public:
  GraceTimer(const std::atomic<bool>& flag, double seconds, std::function<void()> give_up);
  ~GraceTimer();
  GraceTimer(const GraceTimer&) = delete;
  GraceTimer& operator=(const GraceTimer&) = delete;

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

// Returns the command line, quoted for a shell, with --resume added if it is missing.
std::string ResumeCommand(const std::vector<std::string>& command_line);

}  // namespace numsim::apps
