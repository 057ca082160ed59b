#include "numsim/gemm/internal/gemm_packed.h"

#include <cstring>

#include "numsim/gemm/internal/gemm_store_device.h"

namespace numsim {
namespace {

// Replaces a matrix with gaps by a copy without.
template <typename T>
void Pack(MatrixSpan<const T>& matrix, Buffer<uint8_t>& memory) {
  if (matrix.Contiguous()) return;
  memory.EnsureAt(matrix.place);
  auto* const to = reinterpret_cast<T*>(memory.Renew(matrix.Bytes()).data);
  const size_t row_bytes = matrix.cols * sizeof(T);
  if (matrix.place.IsHost()) {
    for (size_t i = 0; i < matrix.rows; ++i) {
      std::memcpy(to + i * matrix.cols, matrix.Row(i), row_bytes);
    }
  } else if constexpr (NUMSIM_HAVE_CUDA) {
    cuda::CopyRows(matrix.data,
                   matrix.stride * sizeof(T),
                   to,
                   row_bytes,
                   row_bytes,
                   matrix.rows,
                   matrix.place.Stream());
  }
  matrix = {to, matrix.Shape(), matrix.place};
}

}  // namespace

const GemmOperand& PackedOperand::Of(const GemmOperand& x) {
  if (x.values.Contiguous() && x.codes8.Contiguous() && x.codes16.Contiguous()) return x;
  packed_ = x;
  Pack(packed_->values, memory_);
  Pack(packed_->codes8, memory_);
  Pack(packed_->codes16, memory_);
  return *packed_;
}

}  // namespace numsim
