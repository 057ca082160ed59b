// The change of the backend, which excludes calls that hold a BackendCall.
#pragma once

#include <mutex>

namespace numsim {

// While one lives, no BackendCall does: the constructor lets no new one begin and waits for the
// others. One thread at a time has one.
class BackendSwitch {
 public:
  BackendSwitch();
  ~BackendSwitch();
  BackendSwitch(const BackendSwitch&) = delete;
  BackendSwitch& operator=(const BackendSwitch&) = delete;

 private:
  std::unique_lock<std::mutex> one_;
};

}  // namespace numsim
