// One call of DeviceLinear::Forward or DeviceLinear::Backward, as linear_call.h for Linear.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/linear/internal/linear_call.h"
#include "numsim/linear/linear.h"
#include "numsim/quantize/quantized_device.h"

namespace numsim {

// The tensors that one Forward saves for its Backward, and the operands of the forward GEMM.
struct DeviceLinearSaved {
  LinearShape shape;
  DeviceQuantizedMatrix x, w;
};

// Memory of a layer's calls whose content does not outlive a call. The memory itself is reused.
struct DeviceLinearScratch {
  DeviceQuantizedMatrix g, g_transposed, w_transposed, x_transposed;
  DeviceArray<uint8_t> x_values;  // dequantised
  DeviceQuantizeScratch quantize;
  DeviceGemmScratch gemm;
};

// Returns true if Backward uses the codes of X and W that Forward made, either because the recipe
// saves nothing else or because quantising either tensor again would give the same codes.
bool KeepsCodes(const LinearRecipe& recipe);

// Returns the bytes that Backward reads of `saved`, or of the bf16 X in its place.
size_t SavedBytes(const LinearRecipe& recipe, const DeviceLinearSaved& saved);

// The operations of one call.
class DeviceLinearCall {
 public:
  // All arguments must outlive this object.
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

  // Computes dx = g w and dw = g^T x; either one only if it has data.
  void Backward(const DeviceMatrix& g,
                const DeviceMatrix& x,
                const DeviceMatrix& w,
                const MutableDeviceMatrix& dx,
                const MutableDeviceMatrix& dw);

 private:
  // The orders in which to write codes: that of the tensor and that of its transpose.
  struct Orders {
    bool codes = false;
    bool transposed = false;
  };

  void Make(LinearOperand operand,
            LinearOp step,
            const DeviceMatrix& tensor,
            Orders orders,
            DeviceQuantizedMatrix& out);

  // Return the operands of Backward. Their vectors along the inner dimension are the columns of the
  // tensor, so codes are written in the transposed order, which tensor cores read fastest.
  DeviceGemmOperand TransposedW(const DeviceMatrix& w);
  DeviceGemmOperand TransposedG(const DeviceMatrix& g);
  DeviceGemmOperand TransposedX(const DeviceMatrix& x);
  // Returns X from saved codes that the weight gradient cannot use directly.
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
