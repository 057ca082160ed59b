#include "numsim/backend/backend_call.h"

#include <atomic>

#include "numsim/backend/internal/backend_switch.h"

namespace numsim {
namespace {

std::mutex g_one_switch;
std::atomic<int> g_calls = 0;    // that live, or are about to find out that they must wait
std::atomic<int> g_waiting = 0;  // that wait for a switch; the next switch lets them begin first
std::atomic<bool> g_switching = false;

void EndCall() noexcept {
  if (g_calls.fetch_sub(1) == 1 && g_switching.load()) g_calls.notify_all();
}

}  // namespace

// Either this thread sees that a switch has begun, or the switch sees this call: both variables are
// written before the other is read, in one order for all threads.
BackendCall::BackendCall() noexcept {
  g_calls.fetch_add(1);
  if (!g_switching.load()) return;
  g_waiting.fetch_add(1);
  do {
    EndCall();
    g_switching.wait(true);
    g_calls.fetch_add(1);
  } while (g_switching.load());
  if (g_waiting.fetch_sub(1) == 1) g_waiting.notify_all();
}

BackendCall::~BackendCall() { EndCall(); }

void BackendCall::ForgetOtherThreads() noexcept {
  g_calls.store(0);
  g_waiting.store(0);
  g_switching.store(false);
}

BackendSwitch::BackendSwitch() : one_(g_one_switch) {
  for (int calls = g_waiting.load(); calls != 0; calls = g_waiting.load()) g_waiting.wait(calls);
  g_switching.store(true);
  for (int calls = g_calls.load(); calls != 0; calls = g_calls.load()) g_calls.wait(calls);
}

BackendSwitch::~BackendSwitch() {
  g_switching.store(false);
  g_switching.notify_all();
}

}  // namespace numsim
