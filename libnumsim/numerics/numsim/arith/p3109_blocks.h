// Block operations by the draft standard [P3109] v4.0, section 5. A block is a scale and elements; the
// value of an element is the exact product of both. Results are exact and projected once, as
// p3109.h says. `random` holds the random bits of each element under a stochastic mode, or is empty.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/arith/p3109.h"

namespace numsim::p3109 {

// A block: the value of element i is the exact product of the scale and of elements[i].
struct Block {
  Operand scale = {};
  FormatSpec format = {};  // of the elements
  std::span<const uint32_t> elements = {};

  ScaledOperand operator[](size_t i) const { return {scale, {format, elements[i]}}; }
};

// BlockOp: out[i] is op of the i-th elements divided by `scale`, the scale of the result. Requires as
// many blocks as the operation has operands, all of the size of `out`.
void ComputeBlock(Op op,
                  std::span<const Block> operands,
                  const Operand& scale,
                  const EncodePlan& to,
                  std::span<uint32_t> out,
                  std::span<const uint32_t> random = {}) noexcept;

// Writes the projected values of the elements. Requires `out` of their size.
void ConvertFromBlock(const Block& block,
                      const EncodePlan& to,
                      std::span<uint32_t> out,
                      std::span<const uint32_t> random = {}) noexcept;

// Writes the elements of a block with the given scale: x[i] / scale. Requires `out` of the size of x.
void ConvertToBlock(const FormatSpec& format,
                    std::span<const uint32_t> x,
                    const Operand& scale,
                    const EncodePlan& to,
                    std::span<uint32_t> out,
                    std::span<const uint32_t> random = {}) noexcept;

// The same with the scale that it returns: the largest finite |x[i]|, projected by `scale_to`. Without
// finite x it is the infinity among them, or NaN.
uint32_t ConvertToBlockMaxAbsFinite(const FormatSpec& format,
                                    std::span<const uint32_t> x,
                                    const EncodePlan& scale_to,
                                    const EncodePlan& to,
                                    std::span<uint32_t> out,
                                    uint32_t scale_random = 0,
                                    std::span<const uint32_t> random = {}) noexcept;

// Return the sum and the product of the elements' values.
uint32_t BlockReduceAdd(const Block& block, const EncodePlan& to, uint32_t random = 0) noexcept;
// Requires at most 4096 elements.
uint32_t BlockReduceMultiply(const Block& block,
                             const EncodePlan& to,
                             uint32_t random = 0) noexcept;
// Returns the sum of the products of the values of two blocks of the same size.
uint32_t BlockDotProduct(const Block& a,
                         const Block& b,
                         const EncodePlan& to,
                         uint32_t random = 0) noexcept;

}  // namespace numsim::p3109
