// Runs a check on every backend of the kernels.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"

namespace numsim {

// Puts back the active backend and the number of threads.
class ExecutionState {
 public:
  ExecutionState() : backend_(BackendName()), threads_(ThreadCount()) {}
  ~ExecutionState() {
    ForceBackend(backend_);
    SetThreadCount(threads_);
  }
  ExecutionState(const ExecutionState&) = delete;
  ExecutionState& operator=(const ExecutionState&) = delete;

 private:
  std::string backend_;
  int threads_;
};

// Calls check() with each backend active in turn; the trace of a failure names it.
template <typename Check>
void WithEachBackend(const Check& check) {
  const ExecutionState state;
  for (const std::string& backend : AvailableBackends()) {
    SCOPED_TRACE("backend " + backend);
    ForceBackend(backend);
    check();
  }
}

}  // namespace numsim
