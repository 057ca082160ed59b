#include "numsim/capi/internal/scaled_matrix.h"

namespace numsim::capi {

static_assert(static_cast<int>(Granularity::kTensor) == NUMSIM_SCALE_TENSOR);
static_assert(static_cast<int>(Granularity::kRow) == NUMSIM_SCALE_ROW);
static_assert(static_cast<int>(Granularity::kColumn) == NUMSIM_SCALE_COLUMN);
static_assert(static_cast<int>(Granularity::kBlock) == NUMSIM_SCALE_BLOCK);

numsim_status_t ScaledMatrix::Read(size_t rows,
                                   size_t cols,
                                   const numsim_scale_layout_t* given) noexcept {
  if (given == nullptr || given->reserved != 0 || given->granularity < 0 ||
      given->granularity > NUMSIM_SCALE_BLOCK) {
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  const bool blocks = given->granularity == NUMSIM_SCALE_BLOCK;
  if (blocks && (given->block == 0 || given->block > SIZE_MAX)) return NUMSIM_ERROR_BAD_ARGUMENT;
  if (cols != 0 && rows > static_cast<size_t>(PTRDIFF_MAX) / cols) {
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  shape = {rows, cols};
  // Limits the block to the length of a row.
  const auto block =
      static_cast<size_t>(std::min<uint64_t>(given->block, std::max<size_t>(cols, 1)));
  layout = {static_cast<Granularity>(given->granularity), blocks ? block : 0};
  return NUMSIM_OK;
}

}  // namespace numsim::capi
