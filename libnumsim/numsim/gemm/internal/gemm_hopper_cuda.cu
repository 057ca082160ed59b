// numsim's own GEMM kernel for Hopper. A block computes tiles of 128 x 256 results: one group of
// threads feeds a ring of stages in shared memory through the copy engine, and two other groups of
// 128 threads multiply, 64 x 256 results each. Two blocks form a cluster and work on tiles that are
// above each other; each copies half of the columns that both need into both blocks. The blocks of
// a launch loop over all tiles.
//
// float32 sums follow accumulation mode hopper-fp8-fast, because the tensor core adds along the
// whole inner dimension without promotion; int8 sums are exact. [Hopper-measured]
#include <cudaTypedefs.h>

#include <algorithm>
#include <array>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_hopper_tile_cuda.cuh"

namespace numsim::cuda {
namespace {

constexpr FormatSpec kInt8 = NamedFormat("int8");
constexpr FormatSpec kE4m3 = NamedFormat("e4m3fn");
constexpr FormatSpec kE5m2 = NamedFormat("e5m2");

std::string ShapeToString(const DeviceGemmOperand& a, const DeviceGemmOperand& b) {
  return fmt::format("{} x {} by {} x {}", a.rows, a.inner, b.rows, b.inner);
}

// The driver's function that makes a tensor map. The runtime looks it up, so that nothing is linked
// with the driver.
using EncodeMap = PFN_cuTensorMapEncodeTiled_v12000;
EncodeMap MapEncoder() {
  static const EncodeMap encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const char* name = "cuTensorMapEncodeTiled";
#if CUDART_VERSION >= 12050
    NUMSIM_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found),
                "{}",
                name);
#else
    NUMSIM_CUDA(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found), "{}", name);
#endif
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
      throw Error("the CUDA driver has no cuTensorMapEncodeTiled: it is older than 12.0");
    }
    return reinterpret_cast<EncodeMap>(function);
  }();
  return encoder;
}

// Makes a tensor map of bytes, with dimensions listed from the contiguous one on. Beyond the sizes
// of the map, the copy engine reads zeros.
template <size_t kDimensions>
CUtensorMap EncodeBytes(const DeviceGemmOperand& x,
                        const std::array<cuuint64_t, kDimensions>& sizes,
                        const std::array<cuuint64_t, kDimensions - 1>& strides,
                        const std::array<cuuint32_t, kDimensions>& box) {
  CUtensorMap map;
  std::array<cuuint32_t, kDimensions> steps;
  steps.fill(1);
  const CUresult status = MapEncoder()(&map,
                                       CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       kDimensions,
                                       const_cast<void*>(x.codes),
                                       sizes.data(),
                                       strides.data(),
                                       box.data(),
                                       steps.data(),
                                       CU_TENSOR_MAP_INTERLEAVE_NONE,
                                       CU_TENSOR_MAP_SWIZZLE_128B,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw Error::Format(
        "cuTensorMapEncodeTiled, {} x {}: error {}", x.rows, x.inner, static_cast<int>(status));
  }
  return map;
}

// Makes the map of A, with boxes that hold a block's part of the rows of a tile.
CUtensorMap MapOfRows(const DeviceGemmOperand& x) {
  return EncodeBytes<2>(x, {x.inner, x.rows}, {x.inner}, {kInnerBytes, kTileRows / kClusterCols});
}

// Makes the map of B, with the columns of a tile in the order described at kColumnGroup: inner, e,
// q, j, g.
CUtensorMap MapOfColumns(const DeviceGemmOperand& x) {
  return EncodeBytes<5>(x,
                        {x.inner, 2, 4, 4, x.rows / kColumnGroup},
                        {x.inner, 8 * x.inner, 2 * x.inner, kColumnGroup * x.inner},
                        {kInnerBytes, 2, 4, 4, kTileCols / kClusterRows / kColumnGroup});
}

uint32_t Tiles(size_t n, size_t tile) { return static_cast<uint32_t>((n + tile - 1) / tile); }

Problem MakeProblem(const DeviceGemmOperand& a, const DeviceGemmOperand& b, MatrixSpan<float> out) {
  Problem p;
  p.rows = static_cast<int64_t>(a.rows);
  p.cols = static_cast<int64_t>(b.rows);
  p.inner = static_cast<int64_t>(a.inner);
  p.down = Tiles(a.rows, kTileRows * kClusterRows);
  p.across = Tiles(b.rows, kTileCols * kClusterCols);
  p.scales_a = a.scales.data();
  p.scales_b = b.scales.data();
  p.count_a = static_cast<int64_t>(a.scales.size());
  p.count_b = static_cast<int64_t>(b.scales.size());
  p.out = out.data;
  return p;
}

// Prepares the kernel. Returns the number of its clusters that run at once.
uint32_t MostClusters(const void* kernel) {
  NUMSIM_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "{} bytes of shared memory",
      kSharedBytes);
  cudaLaunchConfig_t launch = {};
  launch.gridDim = kCluster * Device().multiprocessors;
  launch.blockDim = kThreads;
  launch.dynamicSmemBytes = kSharedBytes;
  int clusters = 0;
  NUMSIM_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch), "{} blocks", kCluster);
  return static_cast<uint32_t>(clusters);
}

template <UnitOperands kOperands, bool kBf16>
void Launch(const DeviceGemmOperand& a,
            const DeviceGemmOperand& b,
            MatrixSpan<float> out,
            DeviceStream& stream) {
  const auto kernel = Product<kOperands, kBf16>;
  static const uint32_t most = MostClusters(reinterpret_cast<const void*>(kernel));
  const Problem p = MakeProblem(a, b, out);
  const uint32_t blocks = std::min(most, p.down * p.across) * kCluster;
  kernel<<<blocks, kThreads, kSharedBytes, Raw(stream)>>>(p, MapOfRows(a), MapOfColumns(b));
  CheckLaunch("MultiplyHopper", ShapeToString(a, b));
}

template <UnitOperands kOperands>
void LaunchTo(const DeviceGemmOperand& a,
              const DeviceGemmOperand& b,
              MatrixSpan<float> out,
              DeviceStream& stream) {
  if (out.element == Element::kBfloat16) return Launch<kOperands, true>(a, b, out, stream);
  Launch<kOperands, false>(a, b, out, stream);
}

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

bool IsFloat8(const FormatSpec& format) { return format == kE4m3 || format == kE5m2; }

}  // namespace

bool ServesHopper(const DeviceGemmOperand& a, const DeviceGemmOperand& b, MatrixSpan<float> out) {
  const bool int8 = a.format == kInt8 && b.format == kInt8;
  const bool float8 =
      IsFloat8(a.format) && IsFloat8(b.format) && (a.format == kE4m3 || b.format == kE4m3);
  constexpr size_t kMost = size_t{1} << 30;  // coordinates and tile numbers have 32 bits
  const auto is_fit = [](const DeviceGemmOperand& x) {
    return !x.transposed && x.rows > 0 && x.rows < kMost && IsAligned(x.codes);
  };
  // In code built for sm_90 without the "a" the kernel is empty.
  const bool built = Device().code.find("90a") != std::string::npos;
  return built && Device().IsHopper() && (int8 || float8) && is_fit(a) && is_fit(b) &&
         b.rows % kColumnGroup == 0 && a.inner > 0 && a.inner % 16 == 0 && a.inner < kMost &&
         IsAligned(out.data) && a.rows / kTileRows * (b.rows / kTileCols) < kMost;
}

void MultiplyHopper(const DeviceGemmOperand& a,
                    const DeviceGemmOperand& b,
                    MatrixSpan<float> out,
                    DeviceStream& stream) {
  NUMSIM_CHECK(ServesHopper(a, b, out), "{}", ShapeToString(a, b));
  if (a.format == kInt8) return LaunchTo<UnitOperands::kInt8>(a, b, out, stream);
  if (b.format == kE5m2) return LaunchTo<UnitOperands::kE4m3E5m2>(a, b, out, stream);
  if (a.format == kE5m2) return LaunchTo<UnitOperands::kE5m2E4m3>(a, b, out, stream);
  LaunchTo<UnitOperands::kE4m3E4m3>(a, b, out, stream);
}

}  // namespace numsim::cuda
