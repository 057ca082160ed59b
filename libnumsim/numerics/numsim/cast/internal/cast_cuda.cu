// The functions of cast_device.h of whole arrays, with the shortcuts for rounding to nearest even and for decoding.
#include "numsim/cast/internal/cast_cuda.cuh"
#include "numsim/formats/decode.h"

namespace numsim::cuda {
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
                MatrixSpan<const float> in,
                MatrixSpan<Out> out) {
  const NearestEncoder<kKind, Out> op = {shortcut, MakeDecodeShortcut(plan.format)};
  Map("encode, nearest even", op, in, out);
}

template <typename Out>
void EncodeAny(const EncodePlan& plan,
               MatrixSpan<const float> in,
               MatrixSpan<Out> out,
               const ArrayRandom& random) {
  using Kind = EncodeShortcutKind;
  if constexpr (sizeof(Out) <= 2 || kIsValue<Out>) {
    const EncodeShortcut shortcut = MakeEncodeShortcut(plan);
    const bool usable = !kIsValue<Out> || MakeDecodeShortcut(plan.format).usable;
    if (usable && shortcut.kind == Kind::kNearestNarrower) {
      return MapNearest<Kind::kNearestNarrower>(plan, shortcut, in, out);
    }
    if (sizeof(Out) > 1 && usable && shortcut.kind == Kind::kNearestSame) {
      return MapNearest<Kind::kNearestSame>(plan, shortcut, in, out);
    }
    if (usable && shortcut.kind != Kind::kNone) {
      return EncodeStochastic(plan, shortcut, in, out, random);
    }
  }
  EncodeByRule(plan, in, out, random);
}

template <typename Code>
void DecodeWords(const FormatSpec& format, MatrixSpan<const Code> codes, MatrixSpan<float> out) {
  const DecodeShortcut shortcut = MakeDecodeShortcut(format);
  if (!shortcut.usable) return DecodeByRule(format, codes, out);
  Map("decode", ShortcutDecoder<Code>{shortcut}, codes, out);
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

void DecodeBytes(const FormatSpec& format, MatrixSpan<const uint8_t> codes, MatrixSpan<float> out) {
  const size_t n = codes.Elements();
  if (n == 0) return;
  ValueTable values;
  for (uint32_t code = 0; code < 256; ++code) {
    values.value[code] = numsim::Decode(format, code & format.CodeMask());
  }
  const size_t wanted = (n + kTableChunk - 1) / kTableChunk;
  const size_t resident = size_t{4} * static_cast<size_t>(Device().multiprocessors);
  const unsigned blocks = static_cast<unsigned>(wanted < resident ? wanted : resident);
  const bool wide = IsAligned(codes.data, 4) && IsAligned(out.data, 4);
  TableKernel<<<blocks, kTableThreads, 0, Raw(out.place.Stream())>>>(
      codes.data, n, out.data, wide, values);
  CheckLaunch("decode by a table", fmt::format("{} codes", n));
}

}  // namespace

template <typename Code>
void Encode(const EncodePlan& plan,
            MatrixSpan<const float> in,
            MatrixSpan<Code> codes,
            const ArrayRandom& random) {
  EncodeAny(plan, in, codes, random);
}

template <typename Code>
void Decode(const FormatSpec& format, MatrixSpan<const Code> codes, MatrixSpan<float> out) {
  if constexpr (sizeof(Code) == 1) {
    DecodeBytes(format, codes, out);
  } else {
    DecodeWords(format, codes, out);
  }
}

void FakeQuantize(const EncodePlan& plan,
                  MatrixSpan<const float> in,
                  MatrixSpan<float> out,
                  const ArrayRandom& random) {
  EncodeAny(plan, in, out, random);
}

#define NUMSIM_INSTANTIATE(Code)                                                         \
  template void Encode<Code>(                                                            \
      const EncodePlan&, MatrixSpan<const float>, MatrixSpan<Code>, const ArrayRandom&); \
  template void Decode<Code>(const FormatSpec&, MatrixSpan<const Code>, MatrixSpan<float>);
NUMSIM_INSTANTIATE(uint8_t)
NUMSIM_INSTANTIATE(uint16_t)
NUMSIM_INSTANTIATE(uint32_t)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim::cuda
