// Case i of random:N (cases.h).
#pragma once

#include <cstdint>
#include <span>

#include "numsim/vectors/operation.h"

namespace numsim {

// What of an operation shapes its random cases.
struct RandomCaseShape {
  CaseShape shape = CaseShape::kElementwise;
  size_t operands = 0;
  size_t length = 1;
};

// Fills `inputs` (one number a column) with case `index`, a pure function of all arguments. The
// bits of column c come of stream kRandomCaseStream + c of the seed.
void RandomCase(std::span<const Column> columns,
                const RandomCaseShape& shape,
                uint64_t seed,
                uint64_t index,
                std::span<uint64_t> inputs) noexcept;

}  // namespace numsim
