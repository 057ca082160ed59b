// Holds the processor's floating-point state at its default for a scope.
#pragma once

#include <cfenv>

namespace numsim {

// Sets round to nearest even, no flush to zero and no traps. The destructor restores the previous
// state, including the exception flags. For code whose result depends on the processor's IEEE 754
// operations. The operations must be in functions that the compiler does not inline into the scope.
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
