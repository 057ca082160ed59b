#include "numsim/ops/shared/index_column.h"

#include <algorithm>

namespace numsim {

IndexRef IndexColumn::Upload(std::span<const int32_t> indices) {
  RequireHost("uploading indices", {buffer_.place()});
  const MatrixSpan<int32_t> to = buffer_.Resize(indices.size(), 1);
  std::copy(indices.begin(), indices.end(), to.data);
  return to;
}

}  // namespace numsim
