// For tests of what an Error says.
#pragma once

#include <functional>
#include <string>

#include "numsim/base/error.h"

namespace numsim {

// Text of the Error that `action` throws; "no error" when it throws none.
inline std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace numsim
