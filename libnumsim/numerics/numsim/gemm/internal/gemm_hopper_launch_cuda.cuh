// Launches a kernel of gemm_hopper_frame_cuda.cuh: tensor maps, sizes, number of blocks.
#pragma once

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_hopper_frame_cuda.cuh"

namespace numsim::cuda {
namespace {

inline std::string ShapeToString(const GemmOperand& a, const GemmOperand& b) {
  return fmt::format("{} x {} by {} x {}", a.rows, a.inner, b.rows, b.inner);
}

// The driver's function that makes a tensor map. The runtime looks it up, so that nothing is linked
// with the driver.
using EncodeMap = PFN_cuTensorMapEncodeTiled_v12000;
inline EncodeMap MapEncoder() {
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
CUtensorMap EncodeBytes(const GemmOperand& x,
                        const std::array<cuuint64_t, kDimensions>& sizes,
                        const std::array<cuuint64_t, kDimensions - 1>& strides,
                        const std::array<cuuint32_t, kDimensions>& box) {
  CUtensorMap map;
  std::array<cuuint32_t, kDimensions> steps;
  steps.fill(1);
  const CUresult status = MapEncoder()(&map,
                                       CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       kDimensions,
                                       const_cast<void*>(x.data()),
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
template <typename G>
CUtensorMap MapOfRows(const GemmOperand& x) {
  return EncodeBytes<2>(x, {x.inner, x.rows}, {x.inner}, {kInnerBytes, G::kPartA});
}

// Makes the map of B, with the columns of a tile in the order described at kColumnGroup: inner, e,
// q, j, g.
template <typename G>
CUtensorMap MapOfColumns(const GemmOperand& x) {
  return EncodeBytes<5>(x,
                        {x.inner, 2, 4, 4, x.rows / kColumnGroup},
                        {x.inner, 8 * x.inner, 2 * x.inner, kColumnGroup * x.inner},
                        {kInnerBytes, 2, 4, 4, G::kPartB / kColumnGroup});
}

inline uint32_t Tiles(size_t n, size_t tile) {
  return static_cast<uint32_t>((n + tile - 1) / tile);
}

// Prepares the kernel. Returns the number of its clusters that run at once.
template <typename Work>
uint32_t MostClusters(const void* kernel) {
  constexpr int kBytes = kSharedBytes<Work>;
  NUMSIM_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
              "{} bytes of shared memory",
              kBytes);
  cudaLaunchConfig_t launch = {};
  launch.gridDim = Work::Shape::kCluster * Device().multiprocessors;
  launch.blockDim = kThreads;
  launch.dynamicSmemBytes = kBytes;
  int clusters = 0;
  NUMSIM_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch),
              "{} blocks",
              Work::Shape::kCluster);
  return static_cast<uint32_t>(clusters);
}

// Launches the kernel of `Work` after filling in the sizes of the problem.
template <typename Work>
void Launch(const GemmOperand& a,
            const GemmOperand& b,
            typename Work::Problem p,
            DeviceStream& stream) {
  using G = typename Work::Shape;
  const auto kernel = Product<Work>;
  static const uint32_t most = MostClusters<Work>(reinterpret_cast<const void*>(kernel));
  p.rows = static_cast<int64_t>(a.rows);
  p.cols = static_cast<int64_t>(b.rows);
  p.inner = static_cast<int64_t>(a.inner);
  p.down = Tiles(a.rows, kTileRows * G::kClusterRows);
  p.across = Tiles(b.rows, G::kTileCols * G::kClusterCols);
  const uint32_t blocks = std::min(most, p.down * p.across) * G::kCluster;
  kernel<<<blocks, kThreads, kSharedBytes<Work>, Raw(stream)>>>(
      p, MapOfRows<G>(a), MapOfColumns<G>(b));
  CheckLaunch("MultiplyHopper", ShapeToString(a, b));
}

// Calls launch.operator()<UnitOperands>() with the pair of the operands' formats.
template <typename Launcher>
void ForUnitOperands(const GemmOperand& a, const GemmOperand& b, const Launcher& launch) {
  constexpr FormatSpec kInt8 = NamedFormat("int8"), kE5m2 = NamedFormat("e5m2");
  if (a.format == kInt8) return launch.template operator()<UnitOperands::kInt8>();
  if (b.format == kE5m2) return launch.template operator()<UnitOperands::kE4m3E5m2>();
  if (a.format == kE5m2) return launch.template operator()<UnitOperands::kE5m2E4m3>();
  launch.template operator()<UnitOperands::kE4m3E4m3>();
}

}  // namespace
}  // namespace numsim::cuda
