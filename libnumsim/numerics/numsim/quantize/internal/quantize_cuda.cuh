// Parts of the kernels of quantize_device.h: access to elements, their finite maxima, the index of
// an element's factor, and the fast encoders.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "numsim/backend/float_matrix.h"
#include "numsim/cast/shared/cast_shortcut_cuda.cuh"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/shared/scale_grid.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim::cuda {

inline __device__ uint32_t Bits(float x) { return __float_as_uint(x); }

// Returns the bits of x * m as computed on the host. Only NaN differs: a product on the device
// loses the sign and payload of a NaN operand. An invalid product of numbers is a negative NaN, as
// on x86.
inline __device__ uint32_t ProductBits(float x, float m) {
  const float p = __fmul_rn(x, m);
  if (p == p) return Bits(p);
  if (x != x) return Bits(x) | 0x400000u;
  if (m != m) return Bits(m) | 0x400000u;
  return 0xFFC00000u;
}

// True if the product of m and any x, NaN included, has the sign of x. The fast encoders are then
// exact.
inline __device__ bool IsUsualFactor(float m) { return m > 0 && m < __int_as_float(0x7F800000); }

// The largest magnitude of finite elements is computed with signed integers. The bits of a
// magnitude plus one unit of the exponent are negative for infinity and NaN, and at least
// kNoMaximum for finite numbers.
inline constexpr int kNoMaximum = 0x00800000;
inline __device__ float MaximumOf(int biased) { return __int_as_float(biased - kNoMaximum); }

inline __device__ int FiniteMagnitude(float x) {
  return static_cast<int>((Bits(x) & 0x7FFFFFFFu) + 0x00800000u);
}

// Access to elements in either storage type. A vector is 16 bytes; a quad is four elements.
template <Element kElement>
struct Elements;

template <>
struct Elements<Element::kBfloat16> {
  static constexpr int kPerVector = 8;
  static constexpr int kQuads = 2;  // quads per vector
  static constexpr size_t kBytes = 2;

  static __device__ float At(const void* data, size_t i) {
    return __uint_as_float(uint32_t{static_cast<const uint16_t*>(data)[i]} << 16);
  }
  static __device__ void Quad(const uint4& v, int quad, float* x) {
    const uint32_t a = quad == 0 ? v.x : v.z, b = quad == 0 ? v.y : v.w;
    x[0] = __uint_as_float(a << 16);
    x[1] = __uint_as_float(a & 0xFFFF0000u);
    x[2] = __uint_as_float(b << 16);
    x[3] = __uint_as_float(b & 0xFFFF0000u);
  }
  // Returns the bytes of a quad that hold the signs.
  static __device__ uint32_t SignBytes(const uint4& v, int quad) {
    return quad == 0 ? __byte_perm(v.x, v.y, 0x7531) : __byte_perm(v.z, v.w, 0x7531);
  }

  // Maxima of finite magnitudes, or of all magnitudes with kAll. A word holds two of them.
  static constexpr int kLanes = 4;  // words per vector
  static constexpr uint32_t kNone = 0x00800080u;
  template <bool kAll = false>
  static __device__ uint32_t Max(uint32_t max, uint32_t word) {
    const uint32_t magnitude = word & 0x7FFF7FFFu;
    if constexpr (kAll) return __vmaxu2(max, magnitude);
    return __vmaxs2(max, magnitude + kNone);
  }
  // Returns the larger half as the FiniteMagnitude of a float, or with kAll as the bits of a float.
  template <bool kAll = false>
  static __device__ int Joined(uint32_t max) {
    const uint32_t high = max >> 16, low = max & 0xFFFFu;
    return static_cast<int>((high > low ? high : low) << 16);
  }
};

template <>
struct Elements<Element::kFloat32> {
  static constexpr int kPerVector = 4;
  static constexpr int kQuads = 1;
  static constexpr size_t kBytes = 4;

  static __device__ float At(const void* data, size_t i) {
    return static_cast<const float*>(data)[i];
  }
  static __device__ void Quad(const uint4& v, int, float* x) {
    x[0] = __uint_as_float(v.x);
    x[1] = __uint_as_float(v.y);
    x[2] = __uint_as_float(v.z);
    x[3] = __uint_as_float(v.w);
  }
  static __device__ uint32_t SignBytes(const uint4& v, int) {
    return __byte_perm(__byte_perm(v.x, v.y, 0x0073), __byte_perm(v.z, v.w, 0x0073), 0x5410);
  }

  static constexpr int kLanes = 4;
  static constexpr uint32_t kNone = 0x00800000u;
  template <bool kAll = false>
  static __device__ uint32_t Max(uint32_t max, uint32_t word) {
    const uint32_t magnitude = word & 0x7FFFFFFFu;
    if constexpr (kAll) return magnitude > max ? magnitude : max;
    const int biased = static_cast<int>(magnitude + kNone);
    return biased > static_cast<int>(max) ? static_cast<uint32_t>(biased) : max;
  }
  template <bool kAll = false>
  static __device__ int Joined(uint32_t max) {
    return static_cast<int>(max);
  }
};

// Returns the maximum of `max` and the elements of a vector.
template <class E, bool kAll = false>
__device__ uint32_t MaxOfVector(uint32_t max, const uint4& v) {
  max = E::template Max<kAll>(max, v.x);
  max = E::template Max<kAll>(max, v.y);
  max = E::template Max<kAll>(max, v.z);
  return E::template Max<kAll>(max, v.w);
}

inline __device__ uint4 LoadVector(const void* data, size_t vector) {
  return __ldg(static_cast<const uint4*>(data) + vector);
}

// Returns the largest `max` among the threads of a row: those of one warp or of the whole block.
// What the threads of a whole block wrote to shared memory before can be read after it.
inline __device__ int MaxOfRow(int max) {
  max = __reduce_max_sync(~0u, max);
  const uint32_t warps = blockDim.x / 32;
  if (warps == 1) return max;
  __shared__ int of_warps[32];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = max;
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32;
  return __reduce_max_sync(~0u, lane < warps ? of_warps[lane] : kNoMaximum);
}

// The fast encoders: nearest even, saturating. An encoder is passed to kernels. Quad returns the
// codes of four products p, the first in the low byte. The top bit of each byte of `signs` is the
// sign of a code.
struct Int8Codec {
  static constexpr FormatSpec kFormat = kInt8;
  static constexpr bool kSigned = false;  // true if Quad reads `signs`

  static __device__ uint32_t Quad(const float* p, uint32_t) {
    uint32_t sum[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // fminf comes first because it turns NaN into 127. The unit in the last place of the sum is
      // 1, so the addition rounds to an integer, ties to even, whose low byte is the code.
      sum[i] = Bits(__fadd_rn(fmaxf(fminf(p[i], 127.0f), -127.0f), 0x1.8p23f));
    }
    const uint32_t low = __byte_perm(sum[0], sum[1], 0x0040);
    return __byte_perm(low, __byte_perm(sum[2], sum[3], 0x0040), 0x5410);
  }
};

// Return two codes, the first in the low byte: nearest even, saturating, NaN as 0x7F. From sm_89 on
// this is one instruction; before, CUDA's own emulation.
__device__ __forceinline__ uint32_t E4M3Pair(float first, float second) {
#if __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, __NV_E4M3);
#endif
}
__device__ __forceinline__ uint32_t E5M2Pair(float first, float second) {
#if __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, __NV_E5M2);
#endif
}

struct E4M3fnCodec {
  static constexpr FormatSpec kFormat = kE4M3fn;
  static constexpr bool kSigned = true;

  static __device__ uint32_t Quad(const float* p, uint32_t signs) {
    const uint32_t codes = E4M3Pair(p[0], p[1]) | E4M3Pair(p[2], p[3]) << 16;
    return (codes & 0x7F7F7F7Fu) | (signs & 0x80808080u);  // the instruction drops a NaN's sign
  }
};

struct E5M2Codec {
  static constexpr FormatSpec kFormat = kE5M2;
  static constexpr bool kSigned = true;

  static __device__ uint32_t Quad(const float* p, uint32_t signs) {
    const uint32_t magnitudes = (E5M2Pair(p[0], p[1]) | E5M2Pair(p[2], p[3]) << 16) & 0x7F7F7F7Fu;
    // The instruction gives 0x7F for NaN, which no number becomes. numsim's NaN is 0x7E.
    const uint32_t nan = (magnitudes + 0x01010101u) >> 7 & 0x01010101u;
    return (magnitudes - nan) | (signs & 0x80808080u);
  }
};

// Encodes to every other one-byte format that cast_shortcut.h supports, to nearest even.
struct ShortcutCodec {
  static constexpr bool kSigned = true;

  EncodeShortcut shortcut;

  __device__ uint32_t Quad(const float* p, uint32_t signs) const {
    uint32_t bits[4], ordinals[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      bits[i] = Bits(p[i]);
      ordinals[i] = OrdinalNearestNarrower<DeviceFloats>(shortcut, bits[i]);
    }
    const float sum = (p[0] + p[1]) + (p[2] + p[3]);
    if (sum != sum) {
      // A product drops the sign of a NaN.
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t sign = signs << (24 - 8 * i) & 0x80000000u;
        if (p[i] != p[i]) bits[i] = (bits[i] & 0x7FFFFFFFu) | sign;
      }
    }
    return FinishFour<uint8_t>(shortcut, {}, bits, ordinals).word;
  }
};

// True if the codec gives the codes of the plan.
template <class Codec>
bool Gives(const EncodePlan& plan) {
  return plan.format == Codec::kFormat && plan.rounding.mode == RoundingMode::kNearestEven &&
         plan.overflow == Overflow::kSaturate;
}

// Calls act(codec) with the codec that gives the codes of the plan. Returns false if there is none.
template <class Act>
bool WithCodec(const EncodePlan& plan, const Act& act) {
  if (Gives<Int8Codec>(plan)) return act(Int8Codec()), true;
  if (Gives<E4M3fnCodec>(plan)) return act(E4M3fnCodec()), true;
  if (Gives<E5M2Codec>(plan)) return act(E5M2Codec()), true;
  if (plan.format.StorageBytes() != 1) return false;
  const EncodeShortcut shortcut = MakeEncodeShortcut(plan);
  if (shortcut.kind != EncodeShortcutKind::kNearestNarrower) return false;
  return act(ShortcutCodec{shortcut}), true;
}

// Calls act(elements) with the Elements class of that storage type.
template <class Act>
void WithElements(Element element, const Act& act) {
  if (element == Element::kBfloat16) return act(Elements<Element::kBfloat16>());
  act(Elements<Element::kFloat32>());
}

// Returns the codes of a quad under four usual factors (IsUsualFactor).
template <class E, class Codec>
__device__ uint32_t QuadCodes(const Codec& codec, const uint4& v, int quad, const float* m) {
  float x[4], p[4];
  E::Quad(v, quad, x);
#pragma unroll
  for (int i = 0; i < 4; ++i) p[i] = __fmul_rn(x[i], m[i]);
  return codec.Quad(p, Codec::kSigned ? E::SignBytes(v, quad) : 0);
}

// Writes the codes of vector number `vector` under usual factors.
template <class E, class Codec>
__device__ void StoreCodes(
    const Codec& codec, const uint4& v, const float (&m)[4], uint8_t* codes, size_t vector) {
  if constexpr (E::kQuads == 2) {
    reinterpret_cast<uint2*>(codes)[vector] =
        make_uint2(QuadCodes<E>(codec, v, 0, m), QuadCodes<E>(codec, v, 1, m));
  } else {
    reinterpret_cast<uint32_t*>(codes)[vector] = QuadCodes<E>(codec, v, 0, m);
  }
}

// Returns the code of one element under any factor.
template <class Codec>
__device__ uint8_t ExactCode(const Codec& codec, float x, float m) {
  const uint32_t bits = ProductBits(x, m);
  const float p[4] = {__uint_as_float(bits), 0, 0, 0};
  return static_cast<uint8_t>(codec.Quad(p, bits >> 24));
}

// The index function of ScaleGrid, on the device.
struct TileIndex {
  size_t tile_rows, tile_cols, across;

  explicit TileIndex(const ScaleGrid& grid)
      : tile_rows(grid.tile_rows), tile_cols(grid.tile_cols), across(grid.across) {}

  __device__ size_t operator()(size_t row, size_t col) const {
    return row / tile_rows * across + col / tile_cols;
  }
  // The same for rows and columns below 2^32, without divisions that are not needed.
  __device__ size_t operator()(uint32_t row, uint32_t col) const {
    const uint32_t r = tile_rows == 1 ? row : row / static_cast<uint32_t>(tile_rows);
    if (tile_cols == 1) return r * across + col;
    if (across == 1) return r;
    return r * across + col / static_cast<uint32_t>(tile_cols);
  }
};

inline bool FitsUint32(MatrixShape shape) {
  return shape.rows < (uint64_t{1} << 32) && shape.cols < (uint64_t{1} << 32);
}

inline bool IsAligned(const void* p, size_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

// True if the rows of the matrix can be read as vectors.
inline bool HasVectorRows(ConstFloatSpan in) {
  return IsAligned(in.data, 16) && in.cols * in.ElementBytes() % 16 == 0;
}

// Returns the text of a shape for messages.
inline std::string Text(MatrixShape shape) {
  return fmt::format("{} x {}", shape.rows, shape.cols);
}

}  // namespace numsim::cuda
