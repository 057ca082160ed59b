// Operands at which arithmetic in a format can go wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/formats.h"
#include "tests/reference/inputs.h"

namespace numsim {

// Codes of both signs: zeros, infinities, NaNs; the first and last subnormals and normals; numbers
// around 1 and 2 and at both ends of some binades, with few and with many bits set.
std::vector<uint32_t> EdgeCodes(const oracle::Format& format);

// A random code: anything, or as often as not one whose exponent is close to that of `near`, so
// that sums cancel and quotients and remainders are small.
uint32_t RandomCode(oracle::TestRandom& random, const oracle::Format& format, uint32_t near);

}  // namespace numsim
