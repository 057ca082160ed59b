#include "numsim/gemm/internal/gemm_prepare_device.h"

#include "numsim/backend/device_context.h"
#include "numsim/gemm/internal/gemm_hopper_device.h"
#include "numsim/gemm/internal/gemm_store_device.h"
#include "numsim/quantize/shared/transpose_device.h"

namespace numsim::cuda {
namespace {

// The Hopper kernels reorder so many columns of the result at once.
constexpr size_t kHopperColumns = 32;

size_t RowsForHopper(const GemmOperand& b) {
  return (b.rows + kHopperColumns - 1) / kHopperColumns * kHopperColumns;
}

// Returns the shape of an operand that Prepared gives; the address is not that of the codes.
GemmOperand ShapeForHopper(const GemmOperand& x, size_t rows) {
  const bool copied = x.transposed || rows != x.rows || !IsAligned(x.data());
  return WithCodes(x, copied ? nullptr : x.data(), rows, RoundedUp(x.inner), false, x.place());
}

}  // namespace

GemmOperand WithCodes(const GemmOperand& x,
                      const void* data,
                      size_t rows,
                      size_t inner,
                      bool transposed,
                      Place place) {
  GemmOperand made{.format = x.format,
                   .rows = rows,
                   .inner = inner,
                   .transposed = transposed,
                   .scales = x.scales};
  if (x.format.StorageBytes() == 1) {
    made.codes8 = {static_cast<const uint8_t*>(data), made.Stored(), place};
  } else {
    made.codes16 = {static_cast<const uint16_t*>(data), made.Stored(), place};
  }
  return made;
}

GemmOperand Prepared(const GemmOperand& x,
                     size_t rows,
                     size_t inner,
                     bool turned,
                     OperandCopies& copies,
                     DeviceStream& stream) {
  const Place place = x.place();
  const size_t bytes = static_cast<size_t>(x.format.StorageBytes());
  const void* codes = x.data();
  bool transposed = x.transposed;
  if (rows != x.rows || inner != x.inner || !IsAligned(codes)) {
    const MatrixShape stored = x.Stored();
    const size_t width = bytes * stored.cols;
    const size_t pitch = bytes * (x.transposed ? rows : inner);
    copies.padded.EnsureAt(place);
    void* const to = copies.padded.Renew(bytes * rows * inner).data;
    if (width != pitch || rows * inner * bytes != stored.rows * pitch) {
      device_memory::FillBytes(to, 0, bytes * rows * inner, stream);
    }
    CopyRows(codes, width, to, pitch, width, stored.rows, stream);
    codes = to;
  }
  if (x.transposed && turned) {
    copies.turned.EnsureAt(place);
    void* const to = copies.turned.Renew(bytes * rows * inner).data;
    Transpose(codes, {inner, rows}, bytes, to, stream);
    codes = to;
    transposed = false;
  }
  return WithCodes(x, codes, rows, inner, transposed, place);
}

bool ServesHopperPrepared(const GemmOperand& a, const GemmOperand& b, FloatSpan out) {
  const size_t cols = RowsForHopper(b);
  const FloatSpan aligned(nullptr, {a.rows, cols}, out.place, out.element);
  return ServesHopper(ShapeForHopper(a, a.rows), ShapeForHopper(b, cols), aligned);
}

void MultiplyPrepared(const GemmOperand& a,
                      const GemmOperand& b,
                      FloatSpan out,
                      const HopperKernel& kernel) {
  auto& scratch = out.place.Context().Get<GemmScratch>();
  DeviceStream& stream = out.place.Stream();
  const size_t inner = RoundedUp(a.inner), cols = RowsForHopper(b);
  const GemmOperand left = Prepared(a, a.rows, inner, true, scratch.a, stream);
  const GemmOperand right = Prepared(b, cols, inner, true, scratch.b, stream);
  if (cols == b.rows && IsAligned(out.data)) return kernel(left, right, out);
  const size_t bytes = out.ElementBytes();
  void* const sums = scratch.sums.Renew(bytes * a.rows * cols).data;
  const FloatSpan padded(sums, {a.rows, cols}, out.place, out.element);
  kernel(left, right, padded);
  CopyRows(padded.data, bytes * cols, out.data, bytes * b.rows, bytes * b.rows, a.rows, stream);
}

}  // namespace numsim::cuda
