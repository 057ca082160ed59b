#include "numsim/gemm/internal/gemm_prepare_device.h"

#include "numsim/backend/device_context.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_store_device.h"
#include "numsim/quantize/quantize_device.h"

namespace numsim {
namespace {

// The Hopper kernels reorder so many columns of the result at once.
constexpr size_t kHopperColumns = 32;

size_t RowsForHopper(const DeviceGemmOperand& b) {
  return (b.rows + kHopperColumns - 1) / kHopperColumns * kHopperColumns;
}

// Returns the shape of an operand that Prepared gives; the address is not that of the codes.
DeviceGemmOperand ShapeForHopper(DeviceGemmOperand x, size_t rows) {
  if (x.transposed || rows != x.rows || !IsAligned(x.codes)) x.codes = nullptr;
  x.inner = RoundedUp(x.inner);
  x.rows = rows;
  x.transposed = false;
  return x;
}

}  // namespace

DeviceGemmOperand Prepared(const DeviceGemmOperand& x,
                           size_t rows,
                           size_t inner,
                           bool turned,
                           OperandCopies& copies,
                           DeviceStream& stream) {
  DeviceGemmOperand made = x;
  made.rows = rows;
  made.inner = inner;
  const size_t bytes = static_cast<size_t>(x.format.StorageBytes());
  if (rows != x.rows || inner != x.inner || !IsAligned(x.codes)) {
    const size_t height = x.transposed ? x.inner : x.rows;
    const size_t width = bytes * (x.transposed ? x.rows : x.inner);
    const size_t pitch = bytes * (x.transposed ? rows : inner);
    copies.padded.Reserve(bytes * rows * inner);
    void* const to = copies.padded.data();
    if (width != pitch || rows * inner * bytes != height * pitch) {
      device_memory::FillBytes(to, 0, bytes * rows * inner, stream);
    }
    CopyRows(x.codes, width, to, pitch, width, height, stream);
    made.codes = to;
  }
  if (x.transposed && turned) {
    copies.turned.Reserve(bytes * rows * inner);
    Transpose(made.codes, {inner, rows}, bytes, copies.turned.data(), stream);
    made.codes = copies.turned.data();
    made.transposed = false;
  }
  return made;
}

bool ServesHopperPrepared(const DeviceGemmOperand& a,
                          const DeviceGemmOperand& b,
                          MatrixSpan<float> out) {
  const size_t cols = RowsForHopper(b);
  const MatrixSpan<float> aligned =
      FloatMatrix(static_cast<void*>(nullptr), out.element, {a.rows, cols}, out.place);
  return cuda::ServesHopper(ShapeForHopper(a, a.rows), ShapeForHopper(b, cols), aligned);
}

void MultiplyPrepared(const DeviceGemmOperand& a,
                      const DeviceGemmOperand& b,
                      MatrixSpan<float> out,
                      const HopperKernel& kernel) {
  auto& scratch = out.place.Context().Get<GemmScratch>();
  DeviceStream& stream = out.place.Stream();
  const size_t inner = RoundedUp(a.inner), cols = RowsForHopper(b);
  const DeviceGemmOperand left = Prepared(a, a.rows, inner, true, scratch.a, stream);
  const DeviceGemmOperand right = Prepared(b, cols, inner, true, scratch.b, stream);
  if (cols == b.rows && IsAligned(out.data)) return kernel(left, right, out, stream);
  const size_t bytes = BytesOf(out.element);
  scratch.sums.Reserve(bytes * a.rows * cols);
  const MatrixSpan<float> padded =
      FloatMatrix(scratch.sums.data(), out.element, {a.rows, cols}, out.place);
  kernel(left, right, padded, stream);
  CopyRows(padded.data, bytes * cols, out.data, bytes * b.rows, bytes * b.rows, a.rows, stream);
}

}  // namespace numsim
