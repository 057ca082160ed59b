#include "numsim/backend/shared/launch_blocks_cuda.cuh"
#include "numsim/base/require.h"
#include "numsim/ops/internal/loss_kernels.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_memory.h"

namespace numsim::cuda {
namespace {

RowLoss* LossesAt(OpsMemory& memory, size_t rows) {
  return reinterpret_cast<RowLoss*>(memory.losses.Renew(rows * sizeof(RowLoss)).data);
}
LossTotal* TotalAt(OpsMemory& memory) {
  return reinterpret_cast<LossTotal*>(memory.total.Renew(sizeof(LossTotal)).data);
}

}  // namespace

LossSum CrossEntropy(
    Place place, In<float> logits, IndexRef targets, double factor, MatrixSpan<float> gradient) {
  OpsMemory& memory = place.Context().Get<OpsMemory>();
  LossTotal* const total = TotalAt(memory);
  CrossEntropyBy(BlockLauncher{"cross entropy", &place.Stream()},
                 logits,
                 targets,
                 factor,
                 LossesAt(memory, logits.rows),
                 gradient,
                 total);
  const LossTotal loss = device_memory::Fetch(total, 1, place.Stream())[0];
  NUMSIM_REQUIRE(loss.wrong_targets == 0,
                 "CrossEntropy: {} targets are none of {} classes",
                 loss.wrong_targets,
                 logits.cols);
  return {.sum = loss.sum, .counted = loss.counted, .correct = loss.correct};
}

LossSum SquaredError(
    Place place, In<float> y, In<float> target, float weight, MatrixSpan<float> gradient) {
  OpsMemory& memory = place.Context().Get<OpsMemory>();
  LossTotal* const total = TotalAt(memory);
  SquaredErrorBy(BlockLauncher{"squared error", &place.Stream()},
                 y,
                 target,
                 weight,
                 LossesAt(memory, y.rows),
                 gradient,
                 total);
  return {.sum = device_memory::Fetch(total, 1, place.Stream())[0].sum,
          .counted = y.rows,
          .correct = 0};
}

}  // namespace numsim::cuda
