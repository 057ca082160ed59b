// Calls that use one backend from begin to end.
#pragma once

namespace numsim {

// While one lives, the backend stays as it is: ForceBackend and AvailableBackends in other threads
// wait for it to end, and calls that begin meanwhile wait for them. For programs that switch the
// backend while other threads compute, around each outermost call on arrays; a thread has at most
// one, and does not call those two functions while it has one. Costs some nanoseconds.
class BackendCall {
 public:
  BackendCall() noexcept;
  ~BackendCall();
  BackendCall(const BackendCall&) = delete;
  BackendCall& operator=(const BackendCall&) = delete;

  // Forgets the calls of all other threads, which a forked process does not have.
  static void ForgetOtherThreads() noexcept;
};

}  // namespace numsim
