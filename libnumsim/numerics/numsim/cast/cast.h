// Conversion of arrays to and from codes, at memory speed and on all threads. For each element,
// every function gives the bits of the scalar rule (rounding/encode.h, formats/decode.h), whatever
// the backend, the place and the thread count.
//
// The arrays of a call are contiguous and at one place, where the call runs; on a device it returns
// before it is done. Elements count in memory order, whatever the shape; a vector, span or array of
// the host is one row. The functions throw Error if a requirement is not met, or if a device refuses.
#pragma once

#include <cstdint>

#include "numsim/backend/matrix.h"
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

// Writes codes[i] = the code of in[i]. Requires as many codes as numbers, no overlap, and a code
// type of plan.format.StorageBytes() bytes.
void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint8_t>& codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint16_t>& codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint32_t>& codes,
            const ArrayRandom& random = {});

// Writes the codes of float64 numbers, each rounded once. Requires codes.size() == in.size(), no
// overlap, and a code type of at least plan.format.StorageBytes() bytes. Arrays of the host are encoded
// by its threads, also under the backend cuda.
void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint8_t>& codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint16_t>& codes,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint32_t>& codes,
            const ArrayRandom& random = {});

// Writes out[i] = the exact value of codes[i]. Bits above the format's width are ignored. Requires
// equal sizes, no overlap, and a code type of format.StorageBytes() bytes.
void Decode(const FormatSpec& format,
            const MatrixSpan<const uint8_t>& codes,
            const MatrixSpan<float>& out);
void Decode(const FormatSpec& format,
            const MatrixSpan<const uint16_t>& codes,
            const MatrixSpan<float>& out);
void Decode(const FormatSpec& format,
            const MatrixSpan<const uint32_t>& codes,
            const MatrixSpan<float>& out);

// Writes out[i] = Decode(Encode(in[i])), the value that in[i] rounds to in the plan's format. `in`
// and `out` may be the same array but must not overlap otherwise. Requires equal sizes.
void FakeQuantize(const EncodePlan& plan,
                  const MatrixSpan<const float>& in,
                  const MatrixSpan<float>& out,
                  const ArrayRandom& random = {});
// The same for float64, which holds every value of a format; under the backend cuda on the host's
// threads.
void FakeQuantize(const EncodePlan& plan,
                  const MatrixSpan<const double>& in,
                  const MatrixSpan<double>& out,
                  const ArrayRandom& random = {});

// Do what Encode and FakeQuantize do, with the random bits of the caller: in[i] takes those in the
// low plan.rounding.random_bits bits of words[i]. Require as many words as numbers. Float is float or
// double, Code an unsigned integer of 1, 2 or 4 bytes. One element at a time, and so more slowly.
template <typename Float, typename Code>
void EncodeWithBits(const EncodePlan& plan,
                    const MatrixSpan<const Float>& in,
                    const MatrixSpan<Code>& codes,
                    const MatrixSpan<const uint32_t>& words);
template <typename Float>
void FakeQuantizeWithBits(const EncodePlan& plan,
                          const MatrixSpan<const Float>& in,
                          const MatrixSpan<Float>& out,
                          const MatrixSpan<const uint32_t>& words);

// Writes out[i] = RandomBits(random.stream, random.first_index + i, bits), the random bits that a
// stochastic Encode uses. Requires 1 <= bits <= 32.
void RandomBitsArray(const ArrayRandom& random, int bits, const MatrixSpan<uint32_t>& out);

}  // namespace numsim
