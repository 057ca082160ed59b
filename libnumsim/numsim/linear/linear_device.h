// Linear (linear/linear.h) on the device: the same recipes, operations and, where the products' rules
// are those of its tensor cores, the same bits. Tensors are bf16, as in 16-bit training.
#pragma once

#include <memory>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/linear/linear.h"

namespace numsim {

// Throws Error that says why the recipe cannot run on a device: delayed scaling, a high precision
// that is not bf16, a scale that changes along the inner dimension (block, mx), formats of operands
// that tensor cores do not take together, an accumulator that they do not follow. Needs no device.
void CheckOnDevice(const LinearRecipe& recipe);

// The recipe with the accumulators of Hopper's tensor cores: exact for int8 x int8, hopper-fp8-fast
// for e4m3fn and e5m2, hopper-bf16, hopper-fp16. With `library` rule library in place of the
// hopper-* ones: cuBLASLt may choose any order of the sum, on any device. Products that no unit
// takes keep what they had. Needs no device.
LinearRecipe ForDevice(LinearRecipe recipe, bool library = false);

class DeviceLinear {
 public:
  // Throws Error as CheckOnDevice, and where this device does not compute one of the products under
  // its accumulator. Requires DeviceAvailable() and, as Linear, that under LinearSaves::kQuantized
  // both recipes of W share their codes.
  explicit DeviceLinear(LinearRecipe recipe);
  ~DeviceLinear();
  DeviceLinear(DeviceLinear&&) noexcept;
  DeviceLinear& operator=(DeviceLinear&&) noexcept;

  const LinearRecipe& recipe() const;

  // y = x w^T and dx = g w, dw = g^T x as in Linear, all bf16 on the device; what Forward keeps is
  // in the layer. Every result is the bf16 (nearest even) of Linear's float32 one for the same
  // values and random stream; any NaN for a NaN.
  //
  // KeepsCodes() tells whether Backward reads the codes that Forward made. Then x and w are not
  // read in Backward; else they must be those of Forward, for the layer keeps no copy of bf16. dx
  // or dw whose data is null is not computed.
  //
  // Requires the shapes of Linear, element kBfloat16, data (null where there are no elements;
  // fastest at 16 bytes' alignment), no overlap of inputs and results, and one stream for all calls
  // or a wait between. Throws Error where a product of int8 has more than kMostInt8Products to add
  // up (gemm/gemm_device.h).
  //
  // The observer is called as the work is put into the stream, not as it is done; it may record
  // events there. Operands that are bf16 as they come are no step, and nothing is kept by a step of
  // its own. The second use with shapes that are no larger allocates nothing; nothing ever waits
  // for the stream but a buffer that grows.
  void Forward(const DeviceMatrix& x,
               const DeviceMatrix& w,
               const MutableDeviceMatrix& y,
               DeviceStream& stream,
               RandomStream random = {},
               LinearObserver* observer = nullptr);
  void Backward(const DeviceMatrix& g,
                const DeviceMatrix& x,
                const DeviceMatrix& w,
                const MutableDeviceMatrix& dx,
                const MutableDeviceMatrix& dw,
                DeviceStream& stream,
                RandomStream random = {},
                LinearObserver* observer = nullptr);

  // True under LinearSaves::kQuantized, and where one set of codes of X and one of W serve both of
  // their products anyway (tensor-wise): quantising them again would give the same codes.
  bool KeepsCodes() const;

  // Bytes that Backward reads of what Forward had: codes and scales, or the bf16 X, 2 bytes an
  // element. As LinearSaved::Bytes() of the recipe in bf16, but for tensor-wise, which keeps one
  // byte an element of X and W. 0 before the first Forward. Memory that the layer holds for its
  // next use is not counted.
  size_t SavedBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace numsim
