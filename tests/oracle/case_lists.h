// Cases as lists of numbers, for the tests of this directory.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

using Numbers = std::vector<uint64_t>;

inline Numbers CaseOf(const CaseGenerator& cases, uint64_t i, size_t width) {
  Numbers inputs(width, ~uint64_t{0});
  cases.Case(i, inputs);
  return inputs;
}

// Case i of a level; the last argument is a seed.
inline Numbers CaseOf(const Operation& operation,
                      std::string_view level,
                      uint64_t i,
                      uint64_t seed = 0) {
  const CaseGenerator cases(operation, ParseCaseLevel(level, seed));
  return CaseOf(cases, i, operation.inputs().size());
}

inline uint64_t SizeOf(const OperationRequest& request, std::string_view level) {
  return CaseGenerator(*MakeOperation(request), ParseCaseLevel(level)).size();
}

// The numbers that a column takes.
inline std::set<uint64_t> ColumnOf(const OperationRequest& request,
                                   std::string_view level,
                                   size_t column) {
  const auto operation = MakeOperation(request);
  const CaseGenerator cases(*operation, ParseCaseLevel(level));
  std::set<uint64_t> numbers;
  for (uint64_t i = 0; i < cases.size(); ++i) {
    numbers.insert(CaseOf(cases, i, operation->inputs().size())[column]);
  }
  return numbers;
}

}  // namespace numsim
