// The message of an Error, for tests of what the library refuses.
#pragma once

#include <string>

#include "numsim/base/error.h"

namespace numsim {

inline constexpr char kNoError[] = "no error";

// Returns the message of the Error that `action` throws, or kNoError if it throws none.
template <typename Action>
std::string ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return kNoError;
}

}  // namespace numsim
