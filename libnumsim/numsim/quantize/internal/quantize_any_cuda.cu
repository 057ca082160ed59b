// Quantisation for every format, rounding, layout and alignment, one element per thread at a time.
// Serves the calls that the fast kernels do not.
#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantize_launch_cuda.cuh"
#include "numsim/rounding/shared/encode_scalar.h"
#include "numsim/rounding/shared/subnormal_gap.h"

namespace numsim::cuda {
namespace {

constexpr int kSide = 32;  // rows and columns of a tile
constexpr int kRows = 8;   // rows of threads of a block

struct AnyCodes {
  EncodePlan plan;
  SubnormalGapPlans subnormal_gaps;  // set if the format has a subnormal gap
  ArrayRandom random;

  // Returns the code of element i of the matrix, given the float32 bits of the scaled element.
  __device__ uint32_t operator()(uint32_t bits, size_t i) const {
    uint32_t draw = 0;
    if (plan.rounding.mode == RoundingMode::kStochastic) {
      draw = RandomBits(random.stream, random.first_index + i, plan.rounding.random_bits);
    }
    if (plan.format.subnormal_shift != 0) {
      return scalar::EncodeWithSubnormalGap(plan, subnormal_gaps, scalar::WidenF32(bits), draw);
    }
    return scalar::EncodeGeneral<scalar::F32Lanes>(plan, bits, scalar::TopAligned(plan, draw));
  }
};

__device__ float ValueAt(In<float> in, size_t i) {
  return in.element == Element::kBfloat16 ? Elements<Element::kBfloat16>::At(in.data, i)
                                          : Elements<Element::kFloat32>::At(in.data, i);
}

template <typename Code>
__global__ void __launch_bounds__(kSide* kRows) QuantizeEach(AnyCodes encode,
                                                             In<float> in,
                                                             TileIndex index,
                                                             const float* inv_scales,
                                                             Code* codes,
                                                             Code* transposed) {
  __shared__ Code tile[kSide][kSide + 1];
  const size_t rows = in.rows, cols = in.cols;
  const size_t across = (cols + kSide - 1) / kSide;
  const size_t row = blockIdx.x / across * kSide, col = blockIdx.x % across * kSide;
  const uint32_t x = threadIdx.x;
  for (uint32_t y = threadIdx.y; y < kSide; y += kRows) {
    const size_t r = row + y, c = col + x;
    if (r >= rows || c >= cols) continue;
    const size_t i = r * cols + c;
    const uint32_t bits = ProductBits(ValueAt(in, i), inv_scales[index(r, c)]);
    const Code code = static_cast<Code>(encode(bits, i));
    if (codes != nullptr) codes[i] = code;
    tile[y][x] = code;
  }
  if (transposed == nullptr) return;
  __syncthreads();
  for (uint32_t y = threadIdx.y; y < kSide; y += kRows) {
    const size_t r = row + x, c = col + y;
    if (r < rows && c < cols) transposed[c * rows + r] = tile[x][y];
  }
}

template <typename Code>
void LaunchEach(const QuantizeCall& call, DeviceStream& stream) {
  const MatrixShape shape = call.in.Shape();
  const size_t tiles = CeilDiv(shape.rows, kSide) * CeilDiv(shape.cols, kSide);
  NUMSIM_CHECK(tiles < (size_t{1} << 31), "{} x {}", shape.rows, shape.cols);
  const bool subnormal_gap = call.plan.format.subnormal_shift != 0;
  const AnyCodes encode = {call.plan,
                           subnormal_gap ? MakeSubnormalGapPlans(call.plan) : SubnormalGapPlans{},
                           call.random};
  QuantizeEach<Code><<<static_cast<uint32_t>(tiles), dim3(kSide, kRows), 0, Raw(stream)>>>(
      encode,
      call.in,
      TileIndex{ScaleGrid(shape, call.layout)},
      call.inv_scales,
      static_cast<Code*>(call.codes),
      static_cast<Code*>(call.transposed));
  CheckLaunch("QuantizeEach", Text(shape));
}

}  // namespace

void QuantizeAny(const QuantizeCall& call, DeviceStream& stream) {
  if (call.plan.format.StorageBytes() == 1) return LaunchEach<uint8_t>(call, stream);
  LaunchEach<uint16_t>(call, stream);
}

}  // namespace numsim::cuda
