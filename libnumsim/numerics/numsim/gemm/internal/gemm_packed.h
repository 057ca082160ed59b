// Operands of a GEMM without gaps between their rows, as the kernels take them.
#pragma once

#include "numsim/gemm/gemm.h"

namespace numsim {

// Memory for the copy of one operand, and the operand that refers to it.
class PackedOperand {
 public:
  // Returns the operand, with a copy of its elements at the same place if its rows have gaps. Valid
  // as long as this object and what the operand refers to.
  GemmOperand Of(const GemmOperand& x);

 private:
  Buffer<uint8_t> memory_;
};

}  // namespace numsim
