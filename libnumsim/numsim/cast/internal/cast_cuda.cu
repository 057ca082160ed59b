// The functions of cast_device.h, with the shortcuts for rounding to nearest even and for decoding.
#include "numsim/base/require.h"
#include "numsim/cast/internal/cast_cuda.cuh"
#include "numsim/formats/decode.h"

namespace numsim {
namespace cuda {
namespace {

template <EncodeShortcutKind kKind, typename T>
struct NearestEncoder {
  using In = float;
  using Out = T;
  static constexpr bool kOneByOne = false;
  EncodeShortcut shortcut;
  DecodeShortcut decode;

  __device__ __forceinline__ uint32_t Ordinal(uint32_t bits) const {
    if constexpr (kKind == EncodeShortcutKind::kNearestSame) {
      return OrdinalNearestSame(shortcut, bits);
    } else {
      return OrdinalNearestNarrower<DeviceFloats>(shortcut, bits);
    }
  }

  __device__ __forceinline__ StoredFour<T> Apply4(const uint32_t in[4]) const {
    uint32_t ordinals[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) ordinals[j] = Ordinal(in[j]);
    return FinishFour<T>(shortcut, decode, in, ordinals);
  }
  __device__ __forceinline__ uint32_t Apply(uint32_t bits, size_t) const {
    return FinishOne<T>(shortcut, decode, bits, Ordinal(bits));
  }
};

template <typename Code>
struct ShortcutDecoder {
  using In = Code;
  using Out = float;
  static constexpr bool kOneByOne = false;
  DecodeShortcut shortcut;

  __device__ __forceinline__ uint32_t Apply(uint32_t code, size_t) const {
    return DecodeByShortcut<DeviceFloats>(shortcut, code);
  }
  __device__ __forceinline__ StoredFour<float> Apply4(const uint32_t in[4]) const {
    uint32_t values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = Apply(in[j], 0);
    return Packed<float>(values);
  }
};

template <EncodeShortcutKind kKind, typename Out>
void MapNearest(const EncodePlan& plan,
                const EncodeShortcut& shortcut,
                DeviceSpan<const float> in,
                DeviceSpan<Out> out,
                DeviceStream& stream) {
  const NearestEncoder<kKind, Out> op = {shortcut, MakeDecodeShortcut(plan.format)};
  Map("encode, nearest even", op, in, out, stream);
}

template <typename Out>
void EncodeAny(const EncodePlan& plan,
               DeviceSpan<const float> in,
               DeviceSpan<Out> out,
               DeviceStream& stream,
               const ArrayRandom& random) {
  using Kind = EncodeShortcutKind;
  if constexpr (sizeof(Out) <= 2 || kIsValue<Out>) {
    const EncodeShortcut shortcut = MakeEncodeShortcut(plan);
    const bool usable = !kIsValue<Out> || MakeDecodeShortcut(plan.format).usable;
    if (usable && shortcut.kind == Kind::kNearestNarrower) {
      return MapNearest<Kind::kNearestNarrower>(plan, shortcut, in, out, stream);
    }
    if (sizeof(Out) > 1 && usable && shortcut.kind == Kind::kNearestSame) {
      return MapNearest<Kind::kNearestSame>(plan, shortcut, in, out, stream);
    }
    if (usable && shortcut.kind != Kind::kNone) {
      return EncodeStochastic(plan, shortcut, in, out, stream, random);
    }
  }
  EncodeByRule(plan, in, out, stream, random);
}

template <typename Code>
void EncodeCodes(const EncodePlan& plan,
                 DeviceSpan<const float> in,
                 DeviceSpan<Code> codes,
                 DeviceStream& stream,
                 const ArrayRandom& random) {
  RequireSize(codes.size(), in.size(), "Encode", "codes");
  RequireCodeBytes(sizeof(Code), plan.format.Bits(), "Encode", "codes");
  EncodeAny(plan, in, codes, stream, random);
}

template <typename Code>
void DecodeWords(const FormatSpec& format,
                 DeviceSpan<const Code> codes,
                 DeviceSpan<float> out,
                 DeviceStream& stream) {
  RequireSize(out.size(), codes.size(), "Decode", "out");
  RequireCodeBytes(sizeof(Code), format.Bits(), "Decode", "codes");
  const DecodeShortcut shortcut = MakeDecodeShortcut(format);
  if (!shortcut.usable) return DecodeByRule(format, codes, out, stream);
  Map("decode", ShortcutDecoder<Code>{shortcut}, codes, out, stream);
}

// Codes of 8 bits are decoded by a table in shared memory, with one copy in each of the 32 banks.
// So no two threads of a warp ever conflict in a bank, whatever the codes.
constexpr int kTableThreads = 512;
constexpr int kTableWords = 4;  // words of four codes that a thread decodes per round
constexpr size_t kTableChunk = size_t{4} * kTableThreads * kTableWords;

struct ValueTable {
  float value[256];
};

// One thread's copy of the table.
struct TableColumn {
  const char* table;
  uint32_t lane_bytes;

  // Returns the value of the code whose lowest bit is bit `kBit` of the word.
  template <int kBit>
  __device__ __forceinline__ float Value(uint32_t word) const {
    const uint32_t row = kBit < 7 ? word << (7 - kBit) : word >> (kBit - 7);
    return *reinterpret_cast<const float*>(table + ((row & 0x7F80u) | lane_bytes));
  }
};

__global__ void __launch_bounds__(kTableThreads)
    TableKernel(const uint8_t* codes,
                size_t n,
                float* out,
                bool wide,
                const __grid_constant__ ValueTable values) {
  __shared__ float table[256 * 32];
  for (int i = threadIdx.x; i < 256 * 32; i += kTableThreads) table[i] = values.value[i / 32];
  __syncthreads();
  const TableColumn column = {reinterpret_cast<const char*>(table), threadIdx.x % 32 * 4};
  const size_t chunks = wide ? n / kTableChunk : 0;
  // The codes of the next round are being loaded while the values of this round are stored.
  const auto load = [&](size_t chunk, uint32_t(&words)[kTableWords]) {
    if (chunk >= chunks) return;
    const uint32_t* from =
        reinterpret_cast<const uint32_t*>(codes) + chunk * (kTableChunk / 4) + threadIdx.x;
#pragma unroll
    for (int w = 0; w < kTableWords; ++w) words[w] = from[w * kTableThreads];
  };
  uint32_t words[kTableWords], next[kTableWords];
  load(blockIdx.x, words);
  for (size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    load(chunk + gridDim.x, next);
    float4* to = reinterpret_cast<float4*>(out) + chunk * (kTableChunk / 4) + threadIdx.x;
#pragma unroll
    for (int w = 0; w < kTableWords; ++w) {
      to[w * kTableThreads] = make_float4(column.Value<0>(words[w]),
                                          column.Value<8>(words[w]),
                                          column.Value<16>(words[w]),
                                          column.Value<24>(words[w]));
      words[w] = next[w];
    }
  }
  const size_t step = size_t{gridDim.x} * kTableThreads;
  size_t i = chunks * kTableChunk + size_t{blockIdx.x} * kTableThreads + threadIdx.x;
  for (; i < n; i += step) out[i] = column.Value<0>(codes[i]);
}

void DecodeBytes(const FormatSpec& format,
                 DeviceSpan<const uint8_t> codes,
                 DeviceSpan<float> out,
                 DeviceStream& stream) {
  RequireSize(out.size(), codes.size(), "Decode", "out");
  RequireCodeBytes(1, format.Bits(), "Decode", "codes");
  const size_t n = codes.size();
  if (n == 0) return;
  ValueTable values;
  for (uint32_t code = 0; code < 256; ++code) {
    values.value[code] = Decode(format, code & format.CodeMask());
  }
  const size_t wanted = (n + kTableChunk - 1) / kTableChunk;
  const size_t resident = size_t{4} * static_cast<size_t>(Device().multiprocessors);
  const unsigned blocks = static_cast<unsigned>(wanted < resident ? wanted : resident);
  const bool wide = IsAligned(codes.data(), 4) && IsAligned(out.data(), 4);
  TableKernel<<<blocks, kTableThreads, 0, Raw(stream)>>>(codes.data(), n, out.data(), wide, values);
  CheckLaunch("decode by a table", fmt::format("{} codes", n));
}

}  // namespace
}  // namespace cuda

void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint8_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random) {
  cuda::EncodeCodes(plan, in, codes, stream, random);
}

void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint16_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random) {
  cuda::EncodeCodes(plan, in, codes, stream, random);
}

void Encode(const EncodePlan& plan,
            DeviceSpan<const float> in,
            DeviceSpan<uint32_t> codes,
            DeviceStream& stream,
            const ArrayRandom& random) {
  cuda::EncodeCodes(plan, in, codes, stream, random);
}

void Decode(const FormatSpec& format,
            DeviceSpan<const uint8_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream) {
  cuda::DecodeBytes(format, codes, out, stream);
}

void Decode(const FormatSpec& format,
            DeviceSpan<const uint16_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream) {
  cuda::DecodeWords(format, codes, out, stream);
}

void Decode(const FormatSpec& format,
            DeviceSpan<const uint32_t> codes,
            DeviceSpan<float> out,
            DeviceStream& stream) {
  cuda::DecodeWords(format, codes, out, stream);
}

void FakeQuantize(const EncodePlan& plan,
                  DeviceSpan<const float> in,
                  DeviceSpan<float> out,
                  DeviceStream& stream,
                  const ArrayRandom& random) {
  RequireSize(out.size(), in.size(), "FakeQuantize", "out");
  cuda::EncodeAny(plan, in, out, stream, random);
}

}  // namespace numsim
