#include <fmt/format.h>

#include <cstdint>

#include "numsim/backend/shared/launch_threads_cuda.cuh"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "numsim/gemm/internal/gemm_store_device.h"
#include "numsim/gemm/internal/gemm_store_kernel.h"

namespace numsim::cuda {
namespace {

StoreScales ScalesOf(const GemmOperand& x) {
  const size_t count = ScalesOfRows(x);
  if (count == 0) return {};
  return {x.scales.data.data, count > 1 ? size_t{1} : size_t{0}};
}

template <typename Sum, typename Out, size_t kWidth>
void Launch(StoreKernel<Sum, Out, kWidth> store, DeviceStream& stream) {
  store.row_step = RowStep(store.shape.rows, store.shape.cols / kWidth);
  LaunchThreads("scaled store", store, store.Threads(), stream);
}

template <typename Sum, typename Out>
void Store(
    const DeviceSums& sums, const GemmOperand& a, const GemmOperand& b, float nan, FloatSpan out) {
  const auto run = [&](auto width) {
    Launch(StoreKernel<Sum, Out, width()>{.sums = static_cast<const Sum*>(sums.data),
                                          .stride = sums.stride,
                                          .parts = sums.parts,
                                          .part_stride = sums.part_stride,
                                          .out = static_cast<Out*>(out.data),
                                          .shape = out.Shape(),
                                          .rows = ScalesOf(a),
                                          .columns = ScalesOf(b),
                                          .nan = nan},
           out.place.Stream());
  };
  const bool eights = out.cols % 8 == 0 && sums.stride % 8 == 0 && sums.part_stride % 8 == 0 &&
                      IsAligned(sums.data) && IsAligned(out.data);
  if (eights) {
    run(std::integral_constant<size_t, 8>());
  } else {
    run(std::integral_constant<size_t, 1>());
  }
}

}  // namespace

void StoreScaled(
    const DeviceSums& sums, const GemmOperand& a, const GemmOperand& b, float nan, FloatSpan out) {
  if (out.Elements() == 0) return;
  const bool bf16 = out.element == Element::kBfloat16;
  if (sums.type == SumType::kInt32) {
    return bf16 ? Store<int32_t, uint16_t>(sums, a, b, nan, out)
                : Store<int32_t, float>(sums, a, b, nan, out);
  }
  return bf16 ? Store<float, uint16_t>(sums, a, b, nan, out)
              : Store<float, float>(sums, a, b, nan, out);
}

void CopyRows(const void* in,
              size_t in_pitch,
              void* out,
              size_t out_pitch,
              size_t row_bytes,
              size_t rows,
              DeviceStream& stream) {
  if (rows == 0 || row_bytes == 0) return;
  NUMSIM_CUDA(
      cudaMemcpy2DAsync(
          out, out_pitch, in, in_pitch, row_bytes, rows, cudaMemcpyDeviceToDevice, Raw(stream)),
      "{} rows of {} bytes",
      rows,
      row_bytes);
}

}  // namespace numsim::cuda
