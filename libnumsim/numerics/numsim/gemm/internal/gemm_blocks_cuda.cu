#include "numsim/gemm/internal/gemm_hopper_blocks_cuda.cuh"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_hopper_launch_cuda.cuh"

namespace numsim::cuda {
namespace {

// Requires fewer than 2^31 scales, which memory for 2^38 codes would have.
BlockScales ForKernel(const HopperScales& x) {
  BlockScales scales = {nullptr, static_cast<int>(x.vectors), 1, 0, 0};
  if (x.scales.data.Empty()) return scales;
  NUMSIM_CHECK(x.scales.data.Elements() < size_t{1} << 31, "{} scales", x.scales.data.Elements());
  scales.data = x.scales.data.data;
  scales.row_group = static_cast<int>(x.scales.row_group);
  scales.row_stride = static_cast<int>(x.scales.row_stride);
  if (x.scales.segment != 0) scales.segment_stride = static_cast<int>(x.scales.segment_stride);
  return scales;
}

// True if all columns of a tile share a scale.
bool IsOnePerTile(const GemmScales& scales) {
  return scales.data.Empty() || scales.row_stride == 0 ||
         scales.row_group % BlockShape::kTileCols == 0;
}

template <UnitOperands kOperands, bool kByColumn>
void LaunchTo(const GemmOperand& a, const GemmOperand& b, const BlockProblem& p, FloatSpan out) {
  DeviceStream& stream = out.place.Stream();
  if (out.element == Element::kBfloat16) {
    return Launch<BlockScaled<kOperands, kByColumn, true>>(a, b, p, stream);
  }
  Launch<BlockScaled<kOperands, kByColumn, false>>(a, b, p, stream);
}

}  // namespace

void MultiplyHopperBlocks(const GemmOperand& a,
                          const HopperScales& scales_a,
                          const GemmOperand& b,
                          const HopperScales& scales_b,
                          size_t segment,
                          FloatSpan out) {
  NUMSIM_CHECK(ServesHopper(a, b, out) && segment > 0 && segment % kInnerBytes == 0,
               "{}, segments of {}",
               ShapeToString(a, b),
               segment);
  BlockProblem p;
  p.scales_a = ForKernel(scales_a);
  p.scales_b = ForKernel(scales_b);
  p.segment = static_cast<int>(segment);
  p.out = out.data;
  ForUnitOperands(a, b, [&]<UnitOperands kOperands>() {
    if (IsOnePerTile(scales_b.scales)) {
      return LaunchTo<kOperands, false>(a, b, p, out);
    }
    LaunchTo<kOperands, true>(a, b, p, out);
  });
}

}  // namespace numsim::cuda
