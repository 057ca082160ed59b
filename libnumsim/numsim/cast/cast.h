// Conversion of arrays to and from codes, at memory speed and on all threads. For each element,
// every function gives the bits of the scalar rule (rounding/encode.h, formats/decode.h), whatever
// the backend and the thread count. The functions throw Error if a requirement stated below is not
// met, and under the backend cuda if the device refuses. Otherwise they throw nothing.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Selects the random bits of an array: element i of a call uses those of index first_index + i of
// the stream. Read only in a stochastic mode. Calls with the same seed and stream use the same bits
// for the same index, so two arrays whose rounding errors should be independent, such as the two
// operands of a GEMM, need different streams.
struct ArrayRandom {
  RandomStream stream = {};
  uint64_t first_index = 0;
};

// Writes codes[i] = the code of in[i]. Requires codes.size() == in.size(), no overlap, and a code
// type of plan.format.StorageBytes() bytes.
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

// Writes the codes of float64 numbers, each rounded once. Requires codes.size() == in.size(), no
// overlap, and a code type of at least plan.format.StorageBytes() bytes. Runs on the host's threads,
// also under the backend cuda.
void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint8_t> codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint16_t> codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint32_t> codes,
            const ArrayRandom& random = {});

// Writes out[i] = the exact value of codes[i]. Bits above the format's width are ignored. Requires
// equal sizes, no overlap, and a code type of format.StorageBytes() bytes.
void Decode(const FormatSpec& format, std::span<const uint8_t> codes, std::span<float> out);
void Decode(const FormatSpec& format, std::span<const uint16_t> codes, std::span<float> out);
void Decode(const FormatSpec& format, std::span<const uint32_t> codes, std::span<float> out);

// Writes out[i] = Decode(Encode(in[i])), the value that in[i] rounds to in the plan's format. `in`
// and `out` may be the same span but must not overlap otherwise. Requires equal sizes.
void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  std::span<float> out,
                  const ArrayRandom& random = {});

// Writes out[i] = RandomBits(random.stream, random.first_index + i, bits), the random bits that a
// stochastic Encode uses. Requires 1 <= bits <= 32.
void RandomBitsArray(const ArrayRandom& random, int bits, std::span<uint32_t> out);

}  // namespace numsim
