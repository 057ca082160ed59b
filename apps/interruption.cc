#include "apps/interruption.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "experiments/sweep/scripts.h"

namespace numsim::apps {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler sets it

// The second signal, also of the other kind, ends the program: the signal is then sent again, to its
// default effect, which it has once the handler has returned.
void Interrupt(int signal) {
  if (!interrupted.exchange(true)) return;
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = Interrupt;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kCount; ++i) sigaction(kSignals[i], &action, &before_[i]);
}

InterruptScope::~InterruptScope() {
  for (size_t i = 0; i < kCount; ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& InterruptScope::Flag() const { return interrupted; }

GraceTimer::GraceTimer(const std::atomic<bool>& flag,
                       double seconds,
                       std::function<void()> give_up) {
  thread_ = std::thread([this, &flag, seconds, give_up = std::move(give_up)] {
    // A signal handler may set a flag and little else, so this thread has to look.
    constexpr auto kPause = std::chrono::milliseconds(20);
    using Clock = std::chrono::steady_clock;
    while (!flag && !ended_) std::this_thread::sleep_for(kPause);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (!ended_ && Clock::now() < end) std::this_thread::sleep_for(kPause);
    if (!ended_) give_up();
  });
}

GraceTimer::~GraceTimer() {
  ended_ = true;
  thread_.join();
}

std::string ResumeCommand(const std::vector<std::string>& command_line) {
  std::string text;
  for (const std::string& word : command_line) {
    text += (text.empty() ? "" : " ") + experiments::sweep::Quoted(word);
  }
  const bool has = std::count(command_line.begin(), command_line.end(), "--resume") > 0;
  return has ? text : text + " --resume";
}

}  // namespace numsim::apps
