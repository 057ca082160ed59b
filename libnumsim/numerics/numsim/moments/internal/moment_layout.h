// The storage layout of a moment: codes, and float32 scales in an array of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/moments/moment_format.h"

namespace numsim {

// Returns true if two codes share a byte: formats of at most 4 bits, except dynamic.
bool PacksCodes(const MomentFormat& format);

// Returns the number of bytes of n codes, or of n float32 values for fp32.
size_t MomentCodeBytes(const MomentFormat& format, size_t n);

// Returns the number of float32 scales for n codes: none; one per tensor; one per block; COAT: two
// per block.
size_t MomentScaleCount(const MomentFormat& format, size_t n);

// Code 2i is in the low half of byte i, code 2i + 1 in the high half. Requires codes below 16.
void PackCodes(const uint8_t* codes, size_t n, uint8_t* bytes) noexcept;
void UnpackCodes(const uint8_t* bytes, size_t n, uint8_t* codes) noexcept;

}  // namespace numsim
