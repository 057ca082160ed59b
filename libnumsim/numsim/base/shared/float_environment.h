// The processor's floating-point state, held at its default for a scope.
#pragma once

#include <cfenv>

namespace numsim {

// Round to nearest even, no flush to zero, no traps; restored at the end, exception flags included.
// For code whose result rests on IEEE 754 operations of the processor. The operations must stand in
// functions that the compiler does not inline into the scope.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace numsim
