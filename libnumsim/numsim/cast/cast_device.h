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

// Writes out[i] = RandomBits(random.stream, random.first_index + i, bits). Requires
// 1 <= bits <= 32.
void RandomBitsArray(const ArrayRandom& random,
                     int bits,
                     DeviceSpan<uint32_t> out,
                     DeviceStream& stream);

}  // namespace numsim
