// The functions of cast.h for host arrays under the backend cuda. They copy chunks to the device,
// convert them there and copy the results back, on the calling thread's stream. Only in builds with
// CUDA. They throw Error if the device refuses.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/cast/cast.h"

namespace numsim {

template <typename Code>
void EncodeOnDevice(const EncodePlan& plan,
                    std::span<const float> in,
                    std::span<Code> codes,
                    const ArrayRandom& random);

template <typename Code>
void DecodeOnDevice(const FormatSpec& format, std::span<const Code> codes, std::span<float> out);

// `in` may be `out`.
void FakeQuantizeOnDevice(const EncodePlan& plan,
                          std::span<const float> in,
                          std::span<float> out,
                          const ArrayRandom& random);

void RandomBitsArrayOnDevice(const ArrayRandom& random, int bits, std::span<uint32_t> out);

}  // namespace numsim
