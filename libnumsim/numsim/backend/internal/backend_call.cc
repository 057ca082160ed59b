#include "numsim/backend/backend_call.h"

#include <atomic>

#include "numsim/backend/internal/backend_switch.h"

namespace numsim {
namespace {

std::mutex g_one_switch;
std::atomic<int> g_calls = 0;  // that live, or are about to find out that they must wait
std::atomic<bool> g_switching = false;

void EndCall() noexcept {
  if (g_calls.fetch_sub(1) == 1 && g_switching.load()) g_calls.notify_all();
}

}  // namespace

// Either this thread sees that a switch has begun, or the switch sees this call: both variables are
// written before the other is read, in one order for all threads.
BackendCall::BackendCall() noexcept {
  for (g_calls.fetch_add(1); g_switching.load(); g_calls.fetch_add(1)) {
    EndCall();
    g_switching.wait(true);
  }
}

BackendCall::~BackendCall() { EndCall(); }

void BackendCall::ForgetOtherThreads() noexcept {
  g_calls.store(0);
  g_switching.store(false);
}

BackendSwitch::BackendSwitch() : one_(g_one_switch) {
  g_switching.store(true);
  for (int calls = g_calls.load(); calls != 0; calls = g_calls.load()) g_calls.wait(calls);
}

BackendSwitch::~BackendSwitch() {
  g_switching.store(false);
  g_switching.notify_all();
}

}  // namespace numsim
