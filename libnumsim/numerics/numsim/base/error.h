// The two ways in which numsim code above the noexcept kernels reports failure.
//
// Error reports bad input: an option, a file or a field of a user, and arguments of a public
// function that do not meet its requirements (base/require.h). It says in one line what was given
// and what was expected. `main` catches it, prints it and exits with code 2; the C interface
// returns a status. A KeyError also tells which key was wrong. A program that uses the library
// catches numsim::Error.
// NUMSIM_CHECK detects a breach of contract inside numsim, a bug. It prints the file, the line and
// the values, then aborts.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace numsim {

// The error of bad input: the message names the file, field, option or argument at fault.
class Error : public std::runtime_error {
 public:
  // Makes the message one readable line (PrintableMessage), because it may quote user input.
  explicit Error(const std::string& message);

  // Returns an Error with a formatted message: one line that names the file, field, option or
  // argument at fault and what was expected.
  template <typename... Args>
  static Error Format(fmt::format_string<Args...> text, Args&&... args) {
    return Error(fmt::format(text, std::forward<Args>(args)...));
  }
};

// An Error about one key of a configuration, or one option of a group of options. The message is
// "KEY: " followed by the text.
class KeyError : public Error {
 public:
  KeyError(std::string key, std::string_view text)
      : Error(fmt::format("{}: {}", key, text)), key_(std::move(key)), text_(text) {}

  // Returns a KeyError whose text is formatted.
  template <typename... Args>
  static KeyError Format(std::string_view key, fmt::format_string<Args...> text, Args&&... args) {
    return {std::string(key), fmt::format(text, std::forward<Args>(args)...)};
  }

  const std::string& key() const { return key_; }    // "model.heads"
  const std::string& text() const { return text_; }  // the message without the key

 private:
  std::string key_, text_;
};

// Prints place, condition and values of a broken contract and aborts. NUMSIM_CHECK calls it.
[[noreturn]] void AbortOnBrokenContract(const char* file,
                                        int line,
                                        const char* condition,
                                        const std::string& values);

}  // namespace numsim

// Aborts if `condition` is false. The other arguments are an fmt format string and the values at
// fault.
#define NUMSIM_CHECK(condition, ...)                                                             \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      ::numsim::AbortOnBrokenContract(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
    }                                                                                            \
  } while (false)
