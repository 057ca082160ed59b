#include "tests/support/fiber_block.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>

#include "numsim/base/error.h"

// Sanitizers keep the stack of each fiber and have to know of each switch.
#if defined(__SANITIZE_ADDRESS__)
#define NUMSIM_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define NUMSIM_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NUMSIM_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define NUMSIM_THREAD_SANITIZER
#endif
#endif
#ifdef NUMSIM_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef NUMSIM_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace numsim {
namespace {

constexpr size_t kStackBytes = size_t{128} * 1024;

// Where code goes on, and its stack. That of the caller of Run is the program's own.
struct Fiber {
  ucontext_t context;  // where it begins; under sanitizers also where it goes on
  jmp_buf jump;        // where it goes on: without a system call per switch
  bool has_begun = true;
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* sanitizer = nullptr;  // what a sanitizer knows the fiber by
};

// Goes on in `to`, and returns when somebody goes on in `from`: never, if that has ended.
void Switch(Fiber& from, Fiber& to, [[maybe_unused]] bool ended = false) {
#ifdef NUMSIM_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(ended ? nullptr : &from.sanitizer, to.stack, to.stack_bytes);
#endif
#ifdef NUMSIM_THREAD_SANITIZER
  __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
#if defined(NUMSIM_ADDRESS_SANITIZER) || defined(NUMSIM_THREAD_SANITIZER)
  swapcontext(&from.context, &to.context);
#else
  if (_setjmp(from.jump) == 0) {
    if (to.has_begun) _longjmp(to.jump, 1);
    to.has_begun = true;
    setcontext(&to.context);
  }
#endif
#ifdef NUMSIM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
}

// The first thing that a fiber does.
void Arrive([[maybe_unused]] Fiber& from) {
#ifdef NUMSIM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &from.stack, &from.stack_bytes);
#endif
}

// Fibers are made before they first run, and ended while another one runs.
void Make([[maybe_unused]] Fiber& fiber) {
#ifdef NUMSIM_THREAD_SANITIZER
  fiber.sanitizer = __tsan_create_fiber(0);
#endif
}
void End([[maybe_unused]] Fiber& fiber) {
#ifdef NUMSIM_THREAD_SANITIZER
  __tsan_destroy_fiber(fiber.sanitizer);
#endif
}

// Returns memory for as many stacks: always the same, for the system takes long to provide it.
char* Stacks(size_t count) {
  thread_local std::vector<std::unique_ptr<char[]>> kept;
  thread_local size_t kept_count = 0;
  if (count > kept_count) {
    kept.emplace_back(new char[count * kStackBytes]);
    kept_count = count;
  }
  return kept.back().get();
}

enum class Wait { kNone, kBarrier, kGroup, kEnded };

struct Thread {
  Fiber fiber;
  Wait wait = Wait::kNone;
  CallSite at;
  // Of the shuffle that it waits for: the size of the group, whose word the thread takes, and words.
  unsigned lanes = 0, source = 0;
  uint64_t word = 0, result = 0;
  // Priorities: of the threads that run ahead together, and of one of them.
  uint32_t unit = 0, within = 0;

  bool WaitsLike(const Thread& other) const {
    return wait == other.wait && (wait == Wait::kEnded || (lanes == other.lanes && at == other.at));
  }
};

std::string Describe(const std::vector<Thread>& threads, size_t number) {
  const Thread& thread = threads[number];
  const std::string file = thread.at.file;
  const std::string at = file.substr(file.rfind('/') + 1) + ":" + std::to_string(thread.at.line);
  std::string name = "thread " + std::to_string(number);
  switch (thread.wait) {
    case Wait::kNone:
      return name + " can go on";
    case Wait::kBarrier:
      return name + " waits for its block at " + at;
    case Wait::kGroup:
      return name + " waits for its group of " + std::to_string(thread.lanes) + " at " + at;
    case Wait::kEnded:
      return name + " has ended";
  }
  return name;
}

}  // namespace

struct FiberBlock::State {
  FiberOptions options;
  std::vector<Thread> threads;
  std::vector<unsigned> order;  // of threads, by priority
  char* stacks = nullptr;
  std::vector<CallSite> barriers;
  Fiber caller;
  unsigned current = 0;
  uint64_t draws = 0;
  std::function<void(unsigned thread)> body;

  // Of the block that runs on this thread: makecontext passes no pointers.
  static thread_local State* running;

  static void Enter() {
    State& state = *running;
    Arrive(state.caller);
    state.body(state.current);
    state.Leave(Wait::kEnded);
  }

  void Start(unsigned thread) {
    Thread& t = threads[thread];
    t.wait = Wait::kNone;
    char* const stack = stacks + thread * kStackBytes;
    t.fiber.stack = stack;
    t.fiber.stack_bytes = kStackBytes;
    t.fiber.has_begun = false;
    getcontext(&t.fiber.context);
    t.fiber.context.uc_stack.ss_sp = stack;
    t.fiber.context.uc_stack.ss_size = kStackBytes;
    t.fiber.context.uc_link = nullptr;
    makecontext(&t.fiber.context, &State::Enter, 0);
  }

  // Gives the turn back to Run; returns when the thread need not wait any longer.
  void Leave(Wait wait) {
    threads[current].wait = wait;
    Switch(threads[current].fiber, caller, wait == Wait::kEnded);
  }

  uint32_t Draw() {  // splitmix64
    uint64_t z = draws += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<uint32_t>(z >> 32);
  }

  void DrawPriorities() {
    if (options.seed == 0) return;
    constexpr unsigned kUnits[] = {1, 16, 32};
    const unsigned unit = kUnits[Draw() % 3];
    for (unsigned t = 0; t < threads.size(); ++t) {
      threads[t].unit = t % unit == 0 ? Draw() : threads[t - 1].unit;
      threads[t].within = Draw();
    }
    std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
      const Thread &x = threads[a], &y = threads[b];
      return x.unit != y.unit ? x.unit < y.unit : x.within < y.within;
    });
  }

  // Lets the group of a thread go on if all of it is there.
  void ReleaseGroup(unsigned thread) {
    const unsigned lanes = threads[thread].lanes, first = thread / lanes * lanes;
    for (unsigned t = first; t < first + lanes; ++t) {
      if (!threads[t].WaitsLike(threads[thread])) return;
    }
    for (unsigned t = first; t < first + lanes; ++t) {
      threads[t].result = threads[threads[t].source].word;
    }
    for (unsigned t = first; t < first + lanes; ++t) threads[t].wait = Wait::kNone;
  }

  // Lets the block go on. Requires that no thread can go on by itself.
  void ReleaseBarrier(size_t block) {
    if (threads[0].wait != Wait::kBarrier) Fail(block);
    for (const Thread& thread : threads) {
      if (!thread.WaitsLike(threads[0])) Fail(block);
    }
    for (Thread& thread : threads) thread.wait = Wait::kNone;
    DrawPriorities();
  }

  // Names a thread that waits, and one for which it waits.
  [[noreturn]] void Fail(size_t block) const {
    size_t one = 0;
    const auto is_group = [](const Thread& thread) { return thread.wait == Wait::kGroup; };
    const auto group = std::find_if(threads.begin(), threads.end(), is_group);
    if (group != threads.end()) {
      one = static_cast<size_t>(group - threads.begin());
    } else {
      while (threads[one].wait == Wait::kEnded) ++one;
    }
    const size_t lanes = group != threads.end() ? group->lanes : threads.size();
    size_t other = one / lanes * lanes;
    while (threads[other].WaitsLike(threads[one])) ++other;
    throw Error("block " + std::to_string(block) + ": " + Describe(threads, one) + ", but " +
                Describe(threads, other));
  }
};

thread_local FiberBlock::State* FiberBlock::State::running = nullptr;

FiberBlock::FiberBlock(unsigned threads, const FiberOptions& options)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->threads.resize(threads);
  for (unsigned t = 0; t < threads; ++t) state_->order.push_back(t);
  state_->stacks = Stacks(threads);
#ifdef NUMSIM_THREAD_SANITIZER
  state_->caller.sanitizer = __tsan_get_current_fiber();
#endif
  for (Thread& thread : state_->threads) Make(thread.fiber);
}
FiberBlock::~FiberBlock() {
  for (Thread& thread : state_->threads) End(thread.fiber);
}

void FiberBlock::Run(size_t block, const std::function<void(FiberEnv&)>& body) {
  State& state = *state_;
  State::running = &state;
  state.body = [&](unsigned thread) {
    FiberEnv env(this, block, thread);
    body(env);
  };
  state.draws = state.options.seed << 32 | block;
  for (unsigned t = 0; t < state.threads.size(); ++t) state.Start(t);
  state.DrawPriorities();
  const auto has_ended = [](const Thread& thread) { return thread.wait == Wait::kEnded; };
  const auto is_ready = [&](unsigned t) { return state.threads[t].wait == Wait::kNone; };
  for (;;) {
    const auto next = std::find_if(state.order.begin(), state.order.end(), is_ready);
    if (next == state.order.end()) {
      if (std::all_of(state.threads.begin(), state.threads.end(), has_ended)) return;
      state.ReleaseBarrier(block);
      continue;
    }
    state.current = *next;
    Switch(state.caller, state.threads[*next].fiber);
    if (state.threads[state.current].wait == Wait::kGroup) state.ReleaseGroup(state.current);
  }
}

size_t FiberBlock::Barriers() const { return state_->barriers.size(); }

void FiberBlock::Sync(const CallSite& at) {
  State& state = *state_;
  const auto found = std::find(state.barriers.begin(), state.barriers.end(), at);
  const auto number = found - state.barriers.begin();
  if (found == state.barriers.end()) state.barriers.push_back(at);
  if (number == state.options.lost_barrier) return;
  Thread& thread = state.threads[state.current];
  thread.at = at;
  thread.lanes = 0;
  state.Leave(Wait::kBarrier);
}

uint64_t FiberBlock::Exchange(uint64_t word, unsigned lanes, unsigned source, const CallSite& at) {
  State& state = *state_;
  Thread& thread = state.threads[state.current];
  thread.at = at;
  thread.lanes = lanes;
  thread.source = state.options.wrong_lane ? source ^ 1u : source;
  thread.word = word;
  state.Leave(Wait::kGroup);
  return thread.result;
}

}  // namespace numsim
