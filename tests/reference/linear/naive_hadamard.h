// Hadamard transforms by halves: what quantize/hadamard.h must equal bit for bit. Shares nothing with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/reference/linear/naive_linear.h"

namespace numsim::naive {

// Whether element i of a block changes its sign.
using Negated = std::function<bool(size_t i)>;
Negated ByMask(uint16_t mask);
// By the definition of a stream's single bits: the words of Philox.
Negated ByStream(RandomStream stream);

// The transform of one block of 2^k numbers: that of the lower half plus and minus that of the upper half.
std::vector<float> HadamardBlock(const std::vector<float>& block, const Negated& negated);

// Each run of `size` numbers of the rows, or of the columns, transformed.
Matrix HadamardRows(const Matrix& in, size_t size, const Negated& negated);
Matrix HadamardColumns(const Matrix& in, size_t size, const Negated& negated);

}  // namespace numsim::naive
