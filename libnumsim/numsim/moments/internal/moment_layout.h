// Where the numbers of a stored moment lie: codes, and float32 scales beside
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/moments/moment_format.h"

namespace numsim {

// Codes of up to 4 bits, two a byte.
bool PacksCodes(const MomentFormat& format);

// Bytes of n codes, or of n float32 values in fp32.
size_t MomentCodeBytes(const MomentFormat& format, size_t n);

// float32 numbers beside n codes: none; one for a tensor; one a block; COAT:
// two a block.
size_t MomentScaleCount(const MomentFormat& format, size_t n);

// Code 2i takes the low half of byte i, code 2i + 1 the high half. Requires
// codes below 16.
void PackCodes(const uint8_t* codes, size_t n, uint8_t* bytes) noexcept;
void UnpackCodes(const uint8_t* bytes, size_t n, uint8_t* codes) noexcept;

}  // namespace numsim
