// Calls that use one backend from begin to end.
#pragma once

namespace numsim {

// While a BackendCall exists, the backend cannot change: ForceBackend and AvailableBackends in other
// threads wait until it ends, and new calls wait for them. A program that switches the backend while
// other threads compute holds one around each outermost call on arrays. A thread holds at most one, and
// calls neither function while it does. Costs some nanoseconds.
class BackendCall {
 public:
  BackendCall() noexcept;
  ~BackendCall();
  BackendCall(const BackendCall&) = delete;
  BackendCall& operator=(const BackendCall&) = delete;

  // Forgets the calls of all other threads, which a forked process does not have. Call it in the child
  // after fork().
  static void ForgetOtherThreads() noexcept;
};

}  // namespace numsim
