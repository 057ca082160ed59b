// The columns of a case together with its answer, in the order in which files hold them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "numsim/vectors/operation.h"

namespace numsim {

// Inputs, results and last, where the operation has them, the flags: TestFloat's order [TestFloat].
struct CaseColumns {
  std::vector<Column> all;
  size_t inputs = 0;
  size_t results = 0;
  bool has_flags = false;

  size_t WithoutFlags() const { return inputs + results; }
  // Whether rows of that many columns hold a case with its answer; the flags may be missing.
  bool IsWidth(size_t columns) const {
    return columns == WithoutFlags() || (has_flags && columns == all.size());
  }
  // The names of the first `count` columns, "a b result", for messages; long lists are cut.
  std::string Names(size_t count) const;
};

CaseColumns ColumnsOf(const Operation& operation);

// The largest number of that many bits, 1..64.
constexpr uint64_t LargestOf(int bits) { return ~uint64_t{0} >> (64 - bits); }

}  // namespace numsim
