// Conversion of codes to float32 or bf16 (Dequantize), and between float32 and bf16 (Convert).
#include <fmt/format.h>

#include <algorithm>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantize_device.h"

namespace numsim::cuda {
namespace {

constexpr int kThreads = 256;
// A block of DequantizeVectors handles kCols columns (8 vectors of 8 codes) and kRows rows, 32 rows
// at a time.
constexpr uint32_t kCols = 64;
constexpr uint32_t kRows = 128;

// Returns x as bf16, rounded to nearest even. Overflow gives infinity. NaN keeps only its sign.
__device__ uint32_t Bf16Of(float x) {
  const uint32_t bits = Bits(x);
  if (x != x) return (bits >> 16 & 0x8000u) | 0x7FC0u;
  return (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

// Returns two numbers as bf16, the first in the low half. Requires numbers, not NaN.
__device__ uint32_t Bf16PairOf(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// The fast decoders: Quad writes the values of four codes.
struct Int8Values {
  static constexpr FormatSpec kFormat = kInt8;

  static __device__ void Quad(uint32_t codes, float* x) {
    const uint32_t biased = codes ^ 0x80808080u;  // code + 128
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // The bits of 2^23 + (code + 128), which is exact.
      const uint32_t bits = __byte_perm(biased, 0x4B000000u, 0x7540 + i);
      x[i] = __fadd_rn(__uint_as_float(bits), -8388736.0f);
    }
  }
};

inline __device__ float2 FloatsOfHalves(uint32_t pair) {
  float2 x;
  asm("{ .reg .f16 a, b;\n"
      "mov.b32 {a, b}, %2;\n"
      "cvt.f32.f16 %0, a;\n"
      "cvt.f32.f16 %1, b; }"
      : "=f"(x.x), "=f"(x.y)
      : "r"(pair));
  return x;
}

struct E4M3fnValues {
  static constexpr FormatSpec kFormat = kE4M3fn;

  // Returns two codes as binary16, which is exact. From sm_89 on this is one instruction; before,
  // CUDA's own emulation.
  static __device__ uint32_t Halves(uint16_t pair) {
#if __CUDA_ARCH__ >= 890
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
#else
    const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3);
    return halves.x | uint32_t{halves.y} << 16;
#endif
  }

  static __device__ void Quad(uint32_t codes, float* x) {
    const float2 a = FloatsOfHalves(Halves(static_cast<uint16_t>(codes)));
    const float2 b = FloatsOfHalves(Halves(static_cast<uint16_t>(codes >> 16)));
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y;
  }
};

struct E5M2Values {
  static constexpr FormatSpec kFormat = kE5M2;

  // A code is the upper half of a binary16 number.
  static __device__ void Quad(uint32_t codes, float* x) {
    const float2 a = FloatsOfHalves(__byte_perm(codes, 0, 0x1404));
    const float2 b = FloatsOfHalves(__byte_perm(codes, 0, 0x3424));
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y;
  }
};

__device__ float ExactValue(const FormatSpec& format, uint32_t code, float scale) {
  const uint32_t bits = scalar::DecodeBits(format, code & format.CodeMask());
  return __uint_as_float(ProductBits(__uint_as_float(bits), scale));
}

template <bool kBf16>
__device__ void StoreValue(void* out, size_t i, float x) {
  if constexpr (kBf16) {
    static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(Bf16Of(x));
  } else {
    static_cast<float*>(out)[i] = x;
  }
}

// Stores eight neighbouring values from element i on. bf16 values must not be NaN.
template <bool kBf16>
__device__ void StoreEight(void* out, size_t i, const float (&x)[8]) {
  if constexpr (kBf16) {
    static_cast<uint4*>(out)[i / 8] = make_uint4(Bf16PairOf(x[0], x[1]),
                                                 Bf16PairOf(x[2], x[3]),
                                                 Bf16PairOf(x[4], x[5]),
                                                 Bf16PairOf(x[6], x[7]));
  } else {
    float4* to = static_cast<float4*>(out) + i / 4;
    to[0] = make_float4(x[0], x[1], x[2], x[3]);
    to[1] = make_float4(x[4], x[5], x[6], x[7]);
  }
}

// Dequantises vectors of 8 codes that share a scale.
template <class Values, bool kBf16>
__global__ void __launch_bounds__(kThreads) DequantizeVectors(FormatSpec format,
                                                              const uint2* __restrict__ codes,
                                                              uint32_t rows,
                                                              uint32_t cols,
                                                              uint32_t tiles_across,
                                                              TileIndex index,
                                                              const float* __restrict__ scales,
                                                              void* __restrict__ out) {
  const uint32_t col = blockIdx.x % tiles_across * kCols + threadIdx.x % 8 * 8;
  const uint32_t first_row = blockIdx.x / tiles_across * kRows + threadIdx.x / 8;
  if (col >= cols) return;
  uint2 loaded[kRows / 32] = {};
  float scale[kRows / 32] = {};
#pragma unroll
  for (uint32_t u = 0; u < kRows / 32; ++u) {
    const uint32_t row = first_row + 32 * u;
    if (row >= rows) continue;
    loaded[u] = __ldg(codes + (size_t{row} * cols + col) / 8);
    scale[u] = __ldg(scales + index(row, col));
  }
#pragma unroll
  for (uint32_t u = 0; u < kRows / 32; ++u) {
    const uint32_t row = first_row + 32 * u;
    if (row >= rows) return;
    const size_t at = size_t{row} * cols + col;
    float x[8];
    Values::Quad(loaded[u].x, x);
    Values::Quad(loaded[u].y, x + 4);
    bool any_nan = false;
#pragma unroll
    for (float& value : x) {
      value = __fmul_rn(value, scale[u]);
      any_nan = any_nan || value != value;
    }
    if (any_nan) {  // the device's NaN differs from the host's
      for (int i = 0; i < 8; ++i) {
        const uint32_t code = reinterpret_cast<const uint8_t*>(codes)[at + i];
        StoreValue<kBf16>(out, at + i, ExactValue(format, code, scale[u]));
      }
    } else {
      StoreEight<kBf16>(out, at, x);
    }
  }
}

template <typename Code, bool kBf16>
__global__ void __launch_bounds__(kThreads) DequantizeEach(FormatSpec format,
                                                           const Code* codes,
                                                           MatrixShape shape,
                                                           TileIndex index,
                                                           const float* scales,
                                                           void* out) {
  const size_t n = shape.rows * shape.cols;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < n;
       i += gridDim.x * size_t{kThreads}) {
    const float scale = scales[index(i / shape.cols, i % shape.cols)];
    StoreValue<kBf16>(out, i, ExactValue(format, codes[i], scale));
  }
}

struct DequantizeCall {
  const FormatSpec& format;
  const void* codes;
  TileIndex index;
  const float* scales;
  FloatSpan out;
};

template <class Values>
bool DequantizeVectorsOf(const DequantizeCall& call, DeviceStream& stream) {
  if (!(call.format == Values::kFormat)) return false;
  const MatrixShape shape = call.out.Shape();
  const size_t across = CeilDiv(shape.cols, kCols);
  const size_t blocks = across * CeilDiv(shape.rows, kRows);
  NUMSIM_CHECK(blocks < (size_t{1} << 31), "{} x {}", shape.rows, shape.cols);
  const auto launch = [&](auto kernel) {
    kernel<<<static_cast<uint32_t>(blocks), kThreads, 0, Raw(stream)>>>(
        call.format,
        static_cast<const uint2*>(call.codes),
        static_cast<uint32_t>(shape.rows),
        static_cast<uint32_t>(shape.cols),
        static_cast<uint32_t>(across),
        call.index,
        call.scales,
        call.out.data);
  };
  if (call.out.element == Element::kBfloat16) {
    launch(DequantizeVectors<Values, true>);
  } else {
    launch(DequantizeVectors<Values, false>);
  }
  CheckLaunch("DequantizeVectors", Text(shape));
  return true;
}

bool DequantizeQuickly(const DequantizeCall& call, DeviceStream& stream) {
  const MatrixShape shape = call.out.Shape();
  const bool shared = call.index.across == 1 || call.index.tile_cols % 8 == 0;
  if (!shared || !FitsUint32(shape) || shape.cols % 8 != 0 || !IsAligned(call.codes, 8) ||
      !IsAligned(call.out.data, 16)) {
    return false;
  }
  return DequantizeVectorsOf<Int8Values>(call, stream) ||
         DequantizeVectorsOf<E4M3fnValues>(call, stream) ||
         DequantizeVectorsOf<E5M2Values>(call, stream);
}

// Returns the number of blocks for a loop over elements.
uint32_t BlocksFor(size_t elements) {
  const size_t most = size_t{64} * Device().multiprocessors;
  return static_cast<uint32_t>(std::min(CeilDiv(elements, kThreads), most));
}

template <typename Code>
void LaunchEach(const DequantizeCall& call, DeviceStream& stream) {
  const auto launch = [&](auto kernel) {
    kernel<<<BlocksFor(call.out.Elements()), kThreads, 0, Raw(stream)>>>(
        call.format,
        static_cast<const Code*>(call.codes),
        call.out.Shape(),
        call.index,
        call.scales,
        call.out.data);
  };
  if (call.out.element == Element::kBfloat16) {
    launch(DequantizeEach<Code, true>);
  } else {
    launch(DequantizeEach<Code, false>);
  }
  CheckLaunch("DequantizeEach", Text(call.out.Shape()));
}

// Converts float32 to bf16: `vectors` vectors of 8 elements first, then single elements.
__global__ void __launch_bounds__(kThreads) NarrowToBf16(const float* __restrict__ in,
                                                         size_t n,
                                                         size_t vectors,
                                                         uint16_t* __restrict__ out) {
  const size_t thread = blockIdx.x * size_t{kThreads} + threadIdx.x;
  const size_t threads = gridDim.x * size_t{kThreads};
#pragma unroll 2
  for (size_t v = thread; v < vectors; v += threads) {
    const uint4 a = LoadVector(in, 2 * v), b = LoadVector(in, 2 * v + 1);
    const uint32_t bits[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    uint32_t halves[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) halves[i] = Bf16Of(__uint_as_float(bits[i]));
    reinterpret_cast<uint4*>(out)[v] = make_uint4(halves[0] | halves[1] << 16,
                                                  halves[2] | halves[3] << 16,
                                                  halves[4] | halves[5] << 16,
                                                  halves[6] | halves[7] << 16);
  }
  for (size_t i = 8 * vectors + thread; i < n; i += threads) {
    out[i] = static_cast<uint16_t>(Bf16Of(in[i]));
  }
}

__global__ void __launch_bounds__(kThreads) WidenToFloat32(const uint16_t* __restrict__ in,
                                                           size_t n,
                                                           size_t vectors,
                                                           float* __restrict__ out) {
  const size_t thread = blockIdx.x * size_t{kThreads} + threadIdx.x;
  const size_t threads = gridDim.x * size_t{kThreads};
  using E = Elements<Element::kBfloat16>;
#pragma unroll 2
  for (size_t v = thread; v < vectors; v += threads) {
    const uint4 loaded = LoadVector(in, v);
    float x[8];
    E::Quad(loaded, 0, x);
    E::Quad(loaded, 1, x + 4);
    StoreEight<false>(out, 8 * v, x);
  }
  for (size_t i = 8 * vectors + thread; i < n; i += threads) out[i] = E::At(in, i);
}

}  // namespace

void Dequantize(const FormatSpec& format,
                const void* codes,
                const ScaleLayout& layout,
                MatrixSpan<const float> scales,
                FloatSpan out) {
  if (out.Elements() == 0) return;
  const DequantizeCall call = {
      format, codes, TileIndex{ScaleGrid(out.Shape(), layout)}, scales.data, out};
  DeviceStream& stream = out.place.Stream();
  if (DequantizeQuickly(call, stream)) return;
  if (format.StorageBytes() == 1) return LaunchEach<uint8_t>(call, stream);
  LaunchEach<uint16_t>(call, stream);
}

void Convert(ConstFloatSpan in, FloatSpan out) {
  DeviceStream& stream = out.place.Stream();
  const size_t n = in.Elements();
  if (n == 0) return;
  if (in.element == out.element) {
    return device_memory::CopyWithin(in.data, out.data, in.Bytes(), stream);
  }
  const size_t vectors = IsAligned(in.data, 16) && IsAligned(out.data, 16) ? n / 8 : 0;
  const uint32_t blocks = BlocksFor(vectors != 0 ? vectors : n);
  const cudaStream_t raw = Raw(stream);
  if (out.element == Element::kBfloat16) {
    NarrowToBf16<<<blocks, kThreads, 0, raw>>>(in.Float32().data, n, vectors, out.Bf16().data);
  } else {
    WidenToFloat32<<<blocks, kThreads, 0, raw>>>(in.Bf16().data, n, vectors, out.Float32().data);
  }
  CheckLaunch("Convert", Text(in.Shape()));
}

}  // namespace numsim::cuda
