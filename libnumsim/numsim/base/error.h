// The two ways in which numsim reports failure above the noexcept kernels.
//
// Error: bad input of a user (an option, a file, a field). One clear line; caught once in `main`,
// which prints it and exits with code 2.
// NUMSIM_CHECK: a breach of contract by our own code. Prints file, line and values, then aborts.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace numsim {

class Error : public std::runtime_error {
 public:
  // Control characters of the message, which may quote what a user gave, become '?'.
  explicit Error(const std::string& message);

  // The message is one line that names the file, field or option at fault and what was expected.
  template <typename... Args>
  static Error Format(fmt::format_string<Args...> text, Args&&... args) {
    return Error(fmt::format(text, std::forward<Args>(args)...));
  }
};

[[noreturn]] void AbortOnBrokenContract(const char* file,
                                        int line,
                                        const char* condition,
                                        const std::string& values);

}  // namespace numsim

// Aborts when `condition` is false; the rest is an fmt format string with the values at fault.
#define NUMSIM_CHECK(condition, ...)                                                             \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      ::numsim::AbortOnBrokenContract(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
    }                                                                                            \
  } while (false)
