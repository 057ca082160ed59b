// numsim's own GEMM kernels for Hopper. A block of threads computes tiles of the result: one group
// of threads feeds a ring of stages in shared memory through the copy engine, and two other groups
// of 128 threads multiply, 64 rows each. Two blocks form a cluster and work on tiles that are above
// each other; each copies half of the columns that both need into both blocks. The blocks of a
// launch loop over all tiles.
//
// float32 sums follow accumulation mode hopper-fp8-fast, because the tensor core adds along the
// whole inner dimension without promotion; int8 sums are exact. [Hopper-measured]
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_hopper_launch_cuda.cuh"
#include "numsim/gemm/internal/gemm_hopper_tile_cuda.cuh"
#include "numsim/gemm/internal/gemm_prepare_device.h"

namespace numsim::cuda {
namespace {

constexpr FormatSpec kInt8 = NamedFormat("int8");
constexpr FormatSpec kE4m3 = NamedFormat("e4m3fn");
constexpr FormatSpec kE5m2 = NamedFormat("e5m2");

bool IsFloat8(const FormatSpec& format) { return format == kE4m3 || format == kE5m2; }

}  // namespace

bool ServesHopper(const GemmOperand& a, const GemmOperand& b, FloatSpan out) {
  const bool int8 = a.format == kInt8 && b.format == kInt8;
  const bool float8 =
      IsFloat8(a.format) && IsFloat8(b.format) && (a.format == kE4m3 || b.format == kE4m3);
  constexpr size_t kMost = size_t{1} << 30;  // coordinates and tile numbers have 32 bits
  const auto is_fit = [](const GemmOperand& x) {
    return !x.transposed && x.rows > 0 && x.rows < kMost && IsAligned(x.data());
  };
  // In code built for sm_90 without the "a" the kernel is empty.
  const bool built = Device().code.find("90a") != std::string::npos;
  return built && Device().IsHopper() && (int8 || float8) && is_fit(a) && is_fit(b) &&
         b.rows % kColumnGroup == 0 && a.inner > 0 && a.inner % 16 == 0 && a.inner < kMost &&
         IsAligned(out.data) && a.rows / kTileRows * (b.rows / kLeastTileCols) < kMost;
}

void MultiplyHopper(const GemmOperand& a, const GemmOperand& b, FloatSpan out) {
  NUMSIM_CHECK(ServesHopper(a, b, out), "{}", ShapeToString(a, b));
  DeviceStream& stream = out.place.Stream();
  RowProblem p;
  p.scales_a = a.scales.data.data;
  p.scales_b = b.scales.data.data;
  p.count_a = static_cast<int64_t>(ScalesOfRows(a));
  p.count_b = static_cast<int64_t>(ScalesOfRows(b));
  p.out = out.data;
  ForUnitOperands(a, b, [&]<UnitOperands kOperands>() {
    if (out.element == Element::kBfloat16) {
      return Launch<RowScaled<kOperands, true>>(a, b, p, stream);
    }
    Launch<RowScaled<kOperands, false>>(a, b, p, stream);
  });
}

}  // namespace numsim::cuda
