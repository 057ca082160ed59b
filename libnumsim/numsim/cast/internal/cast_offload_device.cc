#include <algorithm>

#include "numsim/backend/device.h"
#include "numsim/cast/cast_device.h"
#include "numsim/cast/internal/cast_offload.h"
#include "numsim/cast/shared/cast_serial.h"

namespace numsim {
namespace {

// The largest number of elements on the device at a time.
constexpr size_t kChunk = size_t{1} << 26;

// Calls run(begin, from, to, stream) for consecutive chunks. `from` holds the chunk's elements of
// `in` on the device (none if `in` is empty). `to` has room for the chunk's results, which are then
// copied to `out`.
template <typename In, typename Out, typename Body>
void InChunks(std::span<const In> in, std::span<Out> out, const Body& run) {
  if (out.empty()) return;
  DeviceStream& stream = ThreadStream();
  const size_t most = std::min(kChunk, out.size());
  DeviceArray<In> inputs(in.empty() ? 0 : most);
  DeviceArray<Out> outputs(most);
  for (size_t begin = 0; begin < out.size(); begin += kChunk) {
    const size_t count = std::min(kChunk, out.size() - begin);
    if (!in.empty()) CopyToDevice(in.subspan(begin, count), inputs.first(count), stream);
    const DeviceSpan<const In> from = inputs.first(in.empty() ? 0 : count);
    run(begin, from, outputs.first(count), stream);
    CopyToHost(DeviceSpan<const Out>(outputs.first(count)), out.subspan(begin, count), stream);
  }
}

}  // namespace

template <typename Code>
void EncodeOnDevice(const EncodePlan& plan,
                    std::span<const float> in,
                    std::span<Code> codes,
                    const ArrayRandom& random) {
  InChunks(
      in,
      codes,
      [&](size_t begin, DeviceSpan<const float> from, DeviceSpan<Code> to, DeviceStream& stream) {
        Encode(plan, from, to, stream, Advance(random, begin));
      });
}

template <typename Code>
void DecodeOnDevice(const FormatSpec& format, std::span<const Code> codes, std::span<float> out) {
  InChunks(codes,
           out,
           [&](size_t, DeviceSpan<const Code> from, DeviceSpan<float> to, DeviceStream& stream) {
             Decode(format, from, to, stream);
           });
}

void FakeQuantizeOnDevice(const EncodePlan& plan,
                          std::span<const float> in,
                          std::span<float> out,
                          const ArrayRandom& random) {
  InChunks(
      in,
      out,
      [&](size_t begin, DeviceSpan<const float> from, DeviceSpan<float> to, DeviceStream& stream) {
        FakeQuantize(plan, from, to, stream, Advance(random, begin));
      });
}

void RandomBitsArrayOnDevice(const ArrayRandom& random, int bits, std::span<uint32_t> out) {
  InChunks(
      std::span<const uint32_t>(),
      out,
      [&](size_t begin, DeviceSpan<const uint32_t>, DeviceSpan<uint32_t> to, DeviceStream& stream) {
        RandomBitsArray(Advance(random, begin), bits, to, stream);
      });
}

#define NUMSIM_INSTANTIATE(Code)                                                       \
  template void EncodeOnDevice<Code>(                                                  \
      const EncodePlan&, std::span<const float>, std::span<Code>, const ArrayRandom&); \
  template void DecodeOnDevice<Code>(const FormatSpec&, std::span<const Code>, std::span<float>);
NUMSIM_INSTANTIATE(uint8_t)
NUMSIM_INSTANTIATE(uint16_t)
NUMSIM_INSTANTIATE(uint32_t)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
