// The conversions of cast.h for arrays in device memory. Results are the same bit for bit, and
// calls run in the order of a stream. Arrays need only the alignment of their element type; large
// arrays are fastest when aligned to 16 bytes.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/cast/cast.h"

namespace numsim {

// Writes codes[i] = the code of in[i]. Requires what Encode of cast.h requires.
void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint8_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint16_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random = {});
void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint32_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random = {});

// Writes out[i] = the value of codes[i]. Requires what Decode of cast.h requires.
void Decode(const FormatSpec& format,
            DeviceSpan<const uint8_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream);
void Decode(const FormatSpec& format,
            DeviceSpan<const uint16_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream);
void Decode(const FormatSpec& format,
            DeviceSpan<const uint32_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream);

// Writes out[i] = Decode(Encode(in[i])). `in` and `out` may be the same span but must not overlap
// otherwise.
void FakeQuantize(const EncodePlan& plan,
                  DeviceSpan<const float> in,
                  DeviceSpan<float> out,
                  DeviceStream& stream,
                  const ArrayRandom& random = {});

// Do the same from float32 or float64, one element at a time and so more slowly: codes[i] is the code
// of in[i], and out[i] its value. If `words` is not empty, its element i holds the random bits of
// in[i] in its low plan.rounding.random_bits bits, and `random` is not read. Float is float or
// double, Code an unsigned integer of 1, 2 or 4 bytes. `in` and `out` may be the same span.
template <typename Float, typename Code>
void EncodeEach(const EncodePlan& plan,
                DeviceSpan<const Float> in,
                DeviceSpan<Code> codes,
                DeviceStream& stream,
                const ArrayRandom& random,
                DeviceSpan<const uint32_t> words = {});
template <typename Float>
void RoundEach(const EncodePlan& plan,
               DeviceSpan<const Float> in,
               DeviceSpan<Float> out,
               DeviceStream& stream,
               const ArrayRandom& random,
               DeviceSpan<const uint32_t> words = {});

// Writes out[i] = RandomBits(random.stream, random.first_index + i, bits). Requires
// 1 <= bits <= 32.
void RandomBitsArray(const ArrayRandom& random,
                     int bits,
                     DeviceSpan<uint32_t> out,
                     DeviceStream& stream);

}  // namespace numsim
