// What implementations do that is not a rounding mode with an overflow policy.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/profiles/conversion_rule.h"

namespace numsim {

// amd_hip_fp8.h on the host [HIP-FP8]: a magnitude above the largest value overflows before it is
// rounded, and the distance by which a subnormal result is shifted right is taken modulo 64, as x86
// does. So a number 64 binades below the smallest normal binade converts as if multiplied by 2^64.
uint32_t EncodeHip(const ConversionRule& rule, uint64_t bits, uint32_t random);
void HipSeams(const ConversionRule& rule, std::vector<uint64_t>& seams);

// float32 to e8m0fnu as PyTorch and ml_dtypes have it: the exponent field, plus one for a mantissa
// of a half or more. Below 2^-126 a half itself, 2^-127, is exact and all above it become 2^-126.
// The first ignores the sign; the second makes every negative number NaN.
uint32_t EncodeExponentHalfUp(const ConversionRule& rule, uint64_t bits, uint32_t random);
uint32_t EncodeExponentHalfUpOfPositive(const ConversionRule& rule, uint64_t bits, uint32_t random);

// QPyTorch [QPyTorch]: results below the normals are made by adding and subtracting the smallest
// normal number in float32, so they are rounded twice: to nearest-even, then ties away. Negative
// numbers that round to zero become +0.
uint32_t EncodeQPyTorch(const ConversionRule& rule, uint64_t bits, uint32_t random);

// bitsandbytes [bnb] searches the sorted list of its values. A search that ends between two of them
// compares with their midpoint; which of both a tie takes depends on the way there, and that is the
// one at the even place of the list: the even code of a positive number, the odd one of a negative.
uint32_t EncodeBitsAndBytes(const ConversionRule& rule, uint64_t bits, uint32_t random);

// NaNs of float32 whose bits are rounded like a number's (QPyTorch, CPFloat): few leading payload
// bits make an infinity of them, and all bits set carry into the sign, which gives a zero.
uint32_t RoundNanPayload(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanPayloadSeams(const ConversionRule& rule, std::vector<uint64_t>& seams);

// CUDA's conversion of a float64 NaN to E5M2 keeps two payload bits, of which it sets the upper.
uint32_t CudaNanFromFloat64(const ConversionRule& rule, uint64_t bits, uint32_t random);
void CudaNanSeams(const ConversionRule& rule, std::vector<uint64_t>& seams);

// The stochastic rounding to bfloat16 of PyTorch's torchao on a NaN: its bits too are rounded, then
// what is still a NaN becomes 0x7FC0.
uint32_t RoundNanToBf16(const ConversionRule& rule, uint64_t bits, uint32_t random);
void RoundNanToBf16Seams(const ConversionRule& rule, std::vector<uint64_t>& seams);

}  // namespace numsim
