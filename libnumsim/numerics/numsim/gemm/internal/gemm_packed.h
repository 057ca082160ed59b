// Operands of a GEMM without gaps between their rows, as the kernels take them.
#pragma once

#include <optional>

#include "numsim/gemm/gemm.h"

namespace numsim {

// Memory for the copy of one operand, and the operand that refers to it.
class PackedOperand {
 public:
  // Returns the operand itself if its rows have no gaps: a copy would be a part of the time of small
  // products. Otherwise returns one with a copy of its elements at the same place. Valid as long as
  // this object, `x` and what `x` refers to, and until the next call.
  const GemmOperand& Of(const GemmOperand& x);

 private:
  std::optional<GemmOperand> packed_;
  Buffer<uint8_t> memory_;
};

}  // namespace numsim
