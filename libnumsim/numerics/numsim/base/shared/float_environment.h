// Holds the processor's floating-point state at its default for a scope.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace numsim {

// Sets round to nearest even, no flush to zero and no traps. The destructor restores the previous
// state, including the exception flags. For code whose result depends on the processor's IEEE 754
// operations. The operations must be in functions that the compiler does not inline into the scope,
// and must not use the x87 unit.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept : saved_(Get()) { SetDefault(); }
  ~DefaultFloatEnvironment() { Set(saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  // The two registers that control rounding and traps; the x87 unit's is what std::fegetround
  // returns. std::fesetenv replaces the whole state of that unit, which takes much longer: 2 % of a
  // training step with int8, which quantises row by row.
  struct State {
    uint32_t mxcsr;
    uint16_t x87;
  };
  static State Get() noexcept {
    State state = {_mm_getcsr(), 0};
    asm volatile("fnstcw %0" : "=m"(state.x87));
    return state;
  }
  // Like a call, it keeps the compiler from moving memory accesses across.
  static void Set(const State& state) noexcept {
    asm volatile("fldcw %0" ::"m"(state.x87) : "memory");
    _mm_setcsr(state.mxcsr);
    asm volatile("" ::: "memory");
  }
  // All exceptions masked, none raised; rounding to nearest even; subnormals kept; the x87 unit with
  // 64 significant bits.
  static void SetDefault() noexcept { Set({.mxcsr = 0x1F80, .x87 = 0x037F}); }
#else
  using State = std::fenv_t;
  static State Get() noexcept {
    State state;
    std::fegetenv(&state);
    return state;
  }
  static void Set(const State& state) noexcept { std::fesetenv(&state); }
  static void SetDefault() noexcept { std::fesetenv(FE_DFL_ENV); }
#endif
  State saved_;
};

}  // namespace numsim
