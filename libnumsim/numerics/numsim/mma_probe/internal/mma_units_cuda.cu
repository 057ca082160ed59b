#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/formats/named_formats.h"
#include "numsim/mma_probe/internal/mma_fragments.h"
#include "numsim/mma_probe/internal/mma_units_device.h"

namespace numsim {
namespace {

constexpr int kWarp = 32;
constexpr int kRowWords = kMmaRowBytes / 4;
constexpr int kCols = 8;  // columns of a tile of either instruction
constexpr int kMmaRows = 16;
constexpr int kWarpgroupRows = 64;
constexpr int kWarpgroup = 128;  // threads

// Arguments of a kernel. Operands are in 32-bit words.
struct Problem {
  const uint32_t* a;
  const uint32_t* b;
  size_t rows_a, rows_b, row_words;
  float* out;
};

__device__ uint32_t Word(const uint32_t* from, size_t rows, size_t row, size_t words, size_t at) {
  return row < rows ? from[row * words + at] : 0;
}

template <typename Sum>
__device__ void Store(const Problem& p, size_t row, size_t col, Sum sum) {
  if (row < p.rows_a && col < p.rows_b) p.out[row * p.rows_b + col] = static_cast<float>(sum);
}

// The instructions. Some are unused on architectures that lack them.
#pragma nv_diag_suppress 177
#define NUMSIM_MMA(name, accumulation, constraint, shape, types)                              \
  struct name {                                                                               \
    using Sum = accumulation;                                                                 \
    __device__ static void Add(Sum (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
      asm volatile("mma.sync.aligned." shape ".row.col." types                                \
                   " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                   \
                   : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3])   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));       \
    }                                                                                         \
  };

// `rest` holds the scales of the operands. For 16-bit operands it also states that both are
// K-major.
#define NUMSIM_WGMMA(name, accumulation, constraint, shape, types, rest)                    \
  struct name {                                                                             \
    using Sum = accumulation;                                                               \
    __device__ static void Add(Sum (&d)[4], uint64_t a, uint64_t b) {                       \
      asm volatile("wgmma.mma_async.sync.aligned." shape "." types                          \
                   " {%0,%1,%2,%3}, %4, %5, 1" rest ";"                                     \
                   : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3]) \
                   : "l"(a), "l"(b));                                                       \
    }                                                                                       \
  };

NUMSIM_MMA(MmaBf16, float, "+f", "m16n8k16", "f32.bf16.bf16.f32")
NUMSIM_MMA(MmaFp16, float, "+f", "m16n8k16", "f32.f16.f16.f32")
NUMSIM_MMA(MmaTf32, float, "+f", "m16n8k8", "f32.tf32.tf32.f32")
NUMSIM_MMA(MmaInt8, int32_t, "+r", "m16n8k32", "s32.s8.s8.s32")
NUMSIM_MMA(MmaE4M3E4M3, float, "+f", "m16n8k32", "f32.e4m3.e4m3.f32")
NUMSIM_MMA(MmaE4M3E5M2, float, "+f", "m16n8k32", "f32.e4m3.e5m2.f32")
NUMSIM_MMA(MmaE5M2E4M3, float, "+f", "m16n8k32", "f32.e5m2.e4m3.f32")
NUMSIM_MMA(MmaE5M2E5M2, float, "+f", "m16n8k32", "f32.e5m2.e5m2.f32")
NUMSIM_WGMMA(WgmmaBf16, float, "+f", "m64n8k16", "f32.bf16.bf16", ", 1, 1, 0, 0")
NUMSIM_WGMMA(WgmmaFp16, float, "+f", "m64n8k16", "f32.f16.f16", ", 1, 1, 0, 0")
NUMSIM_WGMMA(WgmmaTf32, float, "+f", "m64n8k8", "f32.tf32.tf32", ", 1, 1")
NUMSIM_WGMMA(WgmmaInt8, int32_t, "+r", "m64n8k32", "s32.s8.s8", "")
NUMSIM_WGMMA(WgmmaE4M3E4M3, float, "+f", "m64n8k32", "f32.e4m3.e4m3", ", 1, 1")
NUMSIM_WGMMA(WgmmaE4M3E5M2, float, "+f", "m64n8k32", "f32.e4m3.e5m2", ", 1, 1")
NUMSIM_WGMMA(WgmmaE5M2E4M3, float, "+f", "m64n8k32", "f32.e5m2.e4m3", ", 1, 1")
NUMSIM_WGMMA(WgmmaE5M2E5M2, float, "+f", "m64n8k32", "f32.e5m2.e5m2", ", 1, 1")

// Computes one tile of 16 x 8 per warp. On architectures without the instruction the kernel is
// empty and never launched (see MmaUnavailable()).
template <class Instruction, int kLeastArchitecture>
__global__ void __launch_bounds__(kWarp) MmaKernel(Problem p) {
#if defined(__CUDA_ARCH__)
  if constexpr (__CUDA_ARCH__ >= kLeastArchitecture) {
    const int lane = static_cast<int>(threadIdx.x);
    const size_t row0 = size_t{blockIdx.x} * kMmaRows, col0 = size_t{blockIdx.y} * kCols;
    typename Instruction::Sum c[4] = {};
    for (size_t k = 0; k < p.row_words; k += kRowWords) {
      uint32_t a[4], b[2];
      for (int i = 0; i < 4; ++i) {
        const MmaPlace at = MmaWordOfA(lane, i);
        a[i] = Word(p.a, p.rows_a, row0 + at.row, p.row_words, k + at.column);
      }
      for (int i = 0; i < 2; ++i) {
        const MmaPlace at = MmaWordOfB(lane, i);
        b[i] = Word(p.b, p.rows_b, col0 + at.row, p.row_words, k + at.column);
      }
      Instruction::Add(c, a, b);
    }
    for (int i = 0; i < 4; ++i) {
      const MmaPlace at = MmaElementOfC(lane, i);
      Store(p, row0 + at.row, col0 + at.column, c[i]);
    }
  }
#endif
}

// Copies rows of 32 bytes into core matrices in shared memory, one word per thread and step. Rows
// beyond the matrix become 0.
__device__ void Stage(const uint32_t* from,
                      size_t rows,
                      size_t row0,
                      size_t words,
                      size_t k,
                      int tile_rows,
                      uint8_t* to) {
  for (int i = static_cast<int>(threadIdx.x); i < tile_rows * kRowWords; i += kWarpgroup) {
    const int row = i / kRowWords, word = i % kRowWords;
    *reinterpret_cast<uint32_t*>(to + CoreOffset(row, 4 * word)) =
        Word(from, rows, row0 + row, words, k + word);
  }
}

// Computes one tile of 64 x 8 per warpgroup.
template <class Instruction>
__global__ void __launch_bounds__(kWarpgroup) WgmmaKernel(Problem p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ alignas(128) uint8_t tile_a[kWarpgroupRows * kMmaRowBytes];
  __shared__ alignas(128) uint8_t tile_b[kCols * kMmaRowBytes];
  const size_t row0 = size_t{blockIdx.x} * kWarpgroupRows, col0 = size_t{blockIdx.y} * kCols;
  const uint64_t a = CoreDescriptor(static_cast<uint32_t>(__cvta_generic_to_shared(tile_a)));
  const uint64_t b = CoreDescriptor(static_cast<uint32_t>(__cvta_generic_to_shared(tile_b)));
  typename Instruction::Sum d[4] = {};
  for (size_t k = 0; k < p.row_words; k += kRowWords) {
    Stage(p.a, p.rows_a, row0, p.row_words, k, kWarpgroupRows, tile_a);
    Stage(p.b, p.rows_b, col0, p.row_words, k, kCols, tile_b);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    Instruction::Add(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();  // the tiles have been read
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const size_t warp_row0 = row0 + threadIdx.x / kWarp * kMmaRows;
  for (int i = 0; i < 4; ++i) {
    const MmaPlace at = MmaElementOfC(lane, i);
    Store(p, warp_row0 + at.row, col0 + at.column, d[i]);
  }
#endif
}

using Launch = void (*)(const Problem&, cudaStream_t);

dim3 Grid(const Problem& p, size_t tile_rows) {
  return {static_cast<unsigned>((p.rows_a + tile_rows - 1) / tile_rows),
          static_cast<unsigned>((p.rows_b + kCols - 1) / kCols)};
}

template <class Instruction, int kLeastArchitecture>
void LaunchMma(const Problem& p, cudaStream_t stream) {
  MmaKernel<Instruction, kLeastArchitecture><<<Grid(p, kMmaRows), kWarp, 0, stream>>>(p);
}

template <class Instruction>
void LaunchWgmma(const Problem& p, cudaStream_t stream) {
  WgmmaKernel<Instruction><<<Grid(p, kWarpgroupRows), kWarpgroup, 0, stream>>>(p);
}

constexpr int kAmpere = 80, kAda = 89, kHopper = 90;

// Same order as kLaunches.
constexpr MmaUnit kUnits[] = {
    {"mma.sync.m16n8k16 bf16 x bf16", kBf16, kBf16, false, kAmpere},
    {"mma.sync.m16n8k16 fp16 x fp16", kFp16, kFp16, false, kAmpere},
    {"mma.sync.m16n8k8 tf32 x tf32", kTf32, kTf32, false, kAmpere},
    {"mma.sync.m16n8k32 int8 x int8", kInt8, kInt8, false, kAmpere},
    {"mma.sync.m16n8k32 e4m3fn x e4m3fn", kE4M3fn, kE4M3fn, false, kAda},
    {"mma.sync.m16n8k32 e4m3fn x e5m2", kE4M3fn, kE5M2, false, kAda},
    {"mma.sync.m16n8k32 e5m2 x e4m3fn", kE5M2, kE4M3fn, false, kAda},
    {"mma.sync.m16n8k32 e5m2 x e5m2", kE5M2, kE5M2, false, kAda},
    {"wgmma.m64n8k16 bf16 x bf16", kBf16, kBf16, true, kHopper},
    {"wgmma.m64n8k16 fp16 x fp16", kFp16, kFp16, true, kHopper},
    {"wgmma.m64n8k8 tf32 x tf32", kTf32, kTf32, true, kHopper},
    {"wgmma.m64n8k32 int8 x int8", kInt8, kInt8, true, kHopper},
    {"wgmma.m64n8k32 e4m3fn x e4m3fn", kE4M3fn, kE4M3fn, true, kHopper},
    {"wgmma.m64n8k32 e4m3fn x e5m2", kE4M3fn, kE5M2, true, kHopper},
    {"wgmma.m64n8k32 e5m2 x e4m3fn", kE5M2, kE4M3fn, true, kHopper},
    {"wgmma.m64n8k32 e5m2 x e5m2", kE5M2, kE5M2, true, kHopper},
};

constexpr Launch kLaunches[] = {
    LaunchMma<MmaBf16, 800>,
    LaunchMma<MmaFp16, 800>,
    LaunchMma<MmaTf32, 800>,
    LaunchMma<MmaInt8, 800>,
    LaunchMma<MmaE4M3E4M3, 890>,
    LaunchMma<MmaE4M3E5M2, 890>,
    LaunchMma<MmaE5M2E4M3, 890>,
    LaunchMma<MmaE5M2E5M2, 890>,
    LaunchWgmma<WgmmaBf16>,
    LaunchWgmma<WgmmaFp16>,
    LaunchWgmma<WgmmaTf32>,
    LaunchWgmma<WgmmaInt8>,
    LaunchWgmma<WgmmaE4M3E4M3>,
    LaunchWgmma<WgmmaE4M3E5M2>,
    LaunchWgmma<WgmmaE5M2E4M3>,
    LaunchWgmma<WgmmaE5M2E5M2>,
};
static_assert(std::size(kUnits) == std::size(kLaunches));

size_t IndexOf(const MmaUnit& unit) {
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    if (kUnits[i].name == unit.name) return i;
  }
  NUMSIM_CHECK(false, "unit {}", unit.name);
  return 0;
}

}  // namespace

std::span<const MmaUnit> MmaUnits() { return kUnits; }

std::string MmaUnavailable(const MmaUnit& unit) {
  if (!DeviceAvailable()) return DeviceUnavailable();
  const DeviceInfo& device = Device();
  if (device.compute_capability < unit.least_compute_capability ||
      (unit.warpgroup && !device.IsHopper())) {
    return fmt::format("a device of compute capability {}.{} has no such instruction",
                       device.compute_capability / 10,
                       device.compute_capability % 10);
  }
  if (unit.warpgroup && device.code.find("90a") == std::string::npos) {
    return fmt::format("this build has code for {}; wgmma needs 90a", device.code);
  }
  return "";
}

void MultiplyByUnit(const MmaUnit& unit,
                    MatrixSpan<const uint8_t> a,
                    MatrixSpan<const uint8_t> b,
                    size_t rows_a,
                    size_t rows_b,
                    size_t inner,
                    MatrixSpan<float> out) {
  const size_t row_bytes = inner * static_cast<size_t>(unit.a.StorageBytes());
  NUMSIM_CHECK(row_bytes % kMmaRowBytes == 0 && a.Elements() == rows_a * row_bytes &&
                   b.Elements() == rows_b * row_bytes && out.Elements() == rows_a * rows_b,
               "{} and {} bytes for {} x {} products of {}",
               a.Elements(),
               b.Elements(),
               rows_a,
               rows_b,
               inner);
  if (out.Empty()) return;
  const Problem problem{reinterpret_cast<const uint32_t*>(a.data),
                        reinterpret_cast<const uint32_t*>(b.data),
                        rows_a,
                        rows_b,
                        row_bytes / 4,
                        out.data};
  kLaunches[IndexOf(unit)](problem, cuda::Raw(out.place.Stream()));
  cuda::CheckLaunch("MultiplyByUnit",
                    fmt::format("{}, {} x {} x {}", unit.name, rows_a, rows_b, inner));
}

}  // namespace numsim
