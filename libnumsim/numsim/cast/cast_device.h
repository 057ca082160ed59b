// cast.h on the device: the same conversions of arrays that lie there, bit for bit, in the order of
// a stream. Any alignment of the elements' own size; large arrays are fastest at 16 bytes.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/cast/cast.h"

namespace numsim {

// codes[i] = code of in[i]. Requires as Encode of cast.h.
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

// out[i] = value of codes[i].
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

// out[i] = Decode(Encode(in[i])). in and out may be the same but must not overlap otherwise.
void FakeQuantize(const EncodePlan& plan,
                  DeviceSpan<const float> in,
                  DeviceSpan<float> out,
                  DeviceStream& stream,
                  const ArrayRandom& random = {});

void RandomBitsArray(const ArrayRandom& random,
                     int bits,
                     DeviceSpan<uint32_t> out,
                     DeviceStream& stream);

}  // namespace numsim
