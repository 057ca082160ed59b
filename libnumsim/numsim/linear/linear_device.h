// Linear (linear/linear.h) on the device. It has the same recipes and operations, and gives the
// same bits where the accumulation modes are those of the device's tensor cores. Tensors are bf16,
// as in 16-bit training.
#pragma once

#include <memory>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/linear/linear.h"

namespace numsim {

// Throws Error with the reason if the recipe cannot run on a device: it uses delayed scaling, a
// high precision other than bf16, a scale that changes along the inner dimension (block, mx), a
// pair of operand formats that tensor cores do not support, or an accumulation mode that they do
// not have. Needs no device.
void CheckOnDevice(const LinearRecipe& recipe);

// Returns the recipe with the accumulation modes of Hopper's tensor cores: exact for int8 x int8,
// hopper-fp8-fast for e4m3fn and e5m2, hopper-bf16, hopper-fp16. With `library`, mode library
// replaces the hopper-* modes: cuBLASLt may then sum in any order, on any device. GEMMs that no
// tensor core supports keep their mode. Needs no device.
LinearRecipe ForDevice(LinearRecipe recipe, bool library = false);

// One linear layer on the device. It also holds what Forward saves for Backward.
class DeviceLinear {
 public:
  // Throws Error as CheckOnDevice does, and if this device cannot compute one of the GEMMs in its
  // accumulation mode. Requires DeviceAvailable() and, as Linear does, that both operands of W
  // share their codes under LinearSaves::kQuantized.
  explicit DeviceLinear(LinearRecipe recipe);
  ~DeviceLinear();
  DeviceLinear(DeviceLinear&&) noexcept;
  DeviceLinear& operator=(DeviceLinear&&) noexcept;

  const LinearRecipe& recipe() const;

  // Compute y = x w^T, and dx = g w and dw = g^T x, as Linear does, with all matrices in bf16 on
  // the device. Each result is Linear's float32 result for the same values and random stream,
  // rounded to bf16 (nearest even); a NaN result may be any NaN. A dx or dw whose data is null is
  // not computed.
  //
  // If KeepsCodes(), Backward reads the codes that Forward made, and not x and w. Otherwise x and w
  // must be those of Forward, because the layer keeps no copy of bf16 tensors.
  //
  // Requires the shapes of Linear, element kBfloat16, data (null if there are no elements; fastest
  // if aligned to 16 bytes), no overlap of inputs and results, and the same stream for all calls or
  // a wait in between. Throws Error if an int8 GEMM has an inner dimension above kMostInt8Products
  // (gemm/gemm_device.h).
  //
  // The observer is called when work is enqueued in the stream, not when it runs; it may record
  // events there. Using a bf16 operand without conversion is not an operation, and neither is
  // saving for backward. From the second call on, shapes that are no larger allocate nothing. No
  // call waits for the stream, except when a buffer must grow.
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

  // Returns true under LinearSaves::kQuantized, and if one set of codes of X and one of W serve
  // both of their GEMMs anyway (tensor-wise), because quantising again would give the same codes.
  bool KeepsCodes() const;

  // Returns the number of bytes saved for backward: codes and scales, or the bf16 X with 2 bytes
  // per element. Equals LinearSaved::Bytes() of the recipe in bf16, except for tensor-wise, which
  // keeps one byte per element of X and W. 0 before the first Forward. Memory that the layer only
  // reuses is not counted.
  size_t SavedBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace numsim
