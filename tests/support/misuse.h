// Tables of calls that break a requirement of a public function.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace numsim {

struct Misuse {
  std::function<void()> call;
  std::string message;  // of the Error that it throws
};

inline void ExpectErrors(const std::vector<Misuse>& calls) {
  for (const Misuse& misuse : calls) EXPECT_EQ(ErrorOf(misuse.call), misuse.message);
}

}  // namespace numsim
