// One call of DeviceLinear::Forward or DeviceLinear::Backward: linear_call.h on the device.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/linear/internal/linear_call.h"
#include "numsim/linear/linear.h"
#include "numsim/quantize/quantized_device.h"

namespace numsim {

// What one Forward leaves for its Backward, and the operands of its product.
struct DeviceLinearSaved {
  LinearShape shape;
  DeviceQuantizedMatrix x, w;
};

// Memory of the calls of a layer that nothing outlives; it stays for the next call.
struct DeviceLinearScratch {
  DeviceQuantizedMatrix g, g_transposed, w_transposed, x_transposed;
  DeviceArray<uint8_t> x_values;  // dequantised
  DeviceQuantizeScratch quantize;
  DeviceGemmScratch gemm;
};

// Whether Backward takes the codes of X and W that Forward made: because the recipe keeps nothing
// else, or because it would make the same ones again, of either tensor.
bool KeepsCodes(const LinearRecipe& recipe);

// Bytes of what Backward reads of `kept`, or of the bf16 X in its place.
size_t SavedBytes(const LinearRecipe& recipe, const DeviceLinearSaved& saved);

class DeviceLinearCall {
 public:
  // All arguments must outlive the call.
  DeviceLinearCall(const LinearRecipe& recipe,
                   DeviceLinearSaved& saved,
                   DeviceLinearScratch& scratch,
                   DeviceStream& stream,
                   RandomStream random,
                   LinearObserver* observer)
      : recipe_(recipe),
        saved_(saved),
        scratch_(scratch),
        stream_(stream),
        random_(random),
        observer_(observer),
        keeps_codes_(KeepsCodes(recipe)) {}

  void Forward(const DeviceMatrix& x, const DeviceMatrix& w, const MutableDeviceMatrix& y);

  // dx = g w and dw = g^T x, either of them only where it has data.
  void Backward(const DeviceMatrix& g,
                const DeviceMatrix& x,
                const DeviceMatrix& w,
                const MutableDeviceMatrix& dx,
                const MutableDeviceMatrix& dw);

 private:
  // Which orders of the codes to make: that of the tensor, that of its transpose.
  struct Orders {
    bool codes = false;
    bool transposed = false;
  };

  void Make(LinearOperand operand,
            LinearOp step,
            const DeviceMatrix& tensor,
            Orders orders,
            DeviceQuantizedMatrix& out);

  // The operands of Backward. Vectors that the inner dimension runs along are the columns of the
  // tensor: codes are made in the transposed order, which tensor cores read fastest.
  DeviceGemmOperand TransposedW(const DeviceMatrix& w);
  DeviceGemmOperand TransposedG(const DeviceMatrix& g);
  DeviceGemmOperand TransposedX(const DeviceMatrix& x);
  // X from kept codes that are not those of the weight gradient.
  DeviceMatrix DequantizedX();

  void Multiply(LinearGemm product,
                const DeviceGemmOperand& a,
                const DeviceGemmOperand& b,
                const MutableDeviceMatrix& out);

  const LinearRecipe& recipe_;
  DeviceLinearSaved& saved_;
  DeviceLinearScratch& scratch_;
  DeviceStream& stream_;
  RandomStream random_;
  LinearObserver* observer_;
  bool keeps_codes_;
};

}  // namespace numsim
