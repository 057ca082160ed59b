// Arrays to and from codes, at memory speed and on all threads. Every function gives, element by
// element, the bits of the scalar rule (rounding/encode.h, formats/decode.h) on every backend and
// thread count. Under the backend cuda they throw Error where the device refuses; otherwise they
// throw nothing.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// The random bits of an array: element i of the call draws those of element first_index + i of
// the stream. Read only in a stochastic mode.
struct ArrayRandom {
  RandomStream stream;
  uint64_t first_index = 0;
};

// codes[i] = code of in[i]. Requires codes.size() == in.size(), no overlap, and a code type of
// plan.format.StorageBytes().
void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint8_t> codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint16_t> codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint32_t> codes,
            const ArrayRandom& random = {});

// From float64, rounded once; any format, codes in 32-bit words. Scalar code on all threads, under
// the backend cuda too.
void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint32_t> codes,
            const ArrayRandom& random = {});

// out[i] = value of codes[i], exact. Requires equal sizes, no overlap, and a code type of
// format.StorageBytes(); bits above the format's width are ignored.
void Decode(const FormatSpec& format, std::span<const uint8_t> codes, std::span<float> out);
void Decode(const FormatSpec& format, std::span<const uint16_t> codes, std::span<float> out);
void Decode(const FormatSpec& format, std::span<const uint32_t> codes, std::span<float> out);

// out[i] = the value of in[i] rounded to the format: Decode(Encode(in[i])). in and out may be the
// same span but must not overlap otherwise.
void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  std::span<float> out,
                  const ArrayRandom& random = {});

// out[i] = RandomBits(random.stream, random.first_index + i, bits): the draws that a stochastic
// Encode makes. Requires 1 <= bits <= 32.
void RandomBitsArray(const ArrayRandom& random, int bits, std::span<uint32_t> out);

}  // namespace numsim
