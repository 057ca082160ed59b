// The operands and results of a layer's passes on a device.
#pragma once

#include <vector>

#include "experiments/linear_speed/check.h"
#include "numsim/backend/device_context.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments::linear_speed {

// Operands and results, all in bf16, in the memory of the thread's device.
class DeviceOperands {
 public:
  explicit DeviceOperands(const LayerTensors& tensors);

  ConstFloatSpan X() const { return x_.View(); }
  ConstFloatSpan W() const { return w_.View(); }
  ConstFloatSpan G() const { return g_.View(); }
  FloatSpan Y() { return y_.View(); }
  FloatSpan Dx() { return dx_.View(); }
  FloatSpan Dw() { return dw_.View(); }
  FloatSpan Result(LinearGemm product);

  // Sets all three results to NaN, so that unwritten elements are detected.
  void SpoilResults();

  // Enqueues a forward and a backward pass.
  void Run(Linear& layer,
           LinearSaved& saved,
           RandomStream random,
           LinearObserver* observer = nullptr);

  size_t Bytes() const { return 2 * (X().Bytes() + W().Bytes() + G().Bytes()); }

 private:
  FloatBuffer x_, w_, g_, y_, dx_, dw_;
};

// Returns sets of the same operands that together take at least `bytes` bytes: at least one set and
// at most 256.
std::vector<DeviceOperands> MakeDeviceSets(const LayerTensors& tensors, size_t bytes);

// Compares the device's results for a small layer with the CPU's, bit for bit in all elements.
// Skips GEMMs under the accumulation mode `library`; on Hopper GPUs that mode is replaced by the
// tensor cores' own and compared too. Does nothing if `name` was already checked in this process.
// Throws Error that names the layer and the first element that differs.
void CheckSmallLayer(const LinearRecipe& recipe, const std::string& name);

// Compares some elements of a GEMM's result in `on`, after a pass over the operands `tensors`, with
// the CPU's. Returns the number of elements that were compared. Throws Error that names the layer
// and the first element that differs, or if any element is NaN or was not written.
size_t CheckProduct(const LinearRecipe& recipe,
                    const std::string& name,
                    LinearGemm product,
                    const LayerTensors& tensors,
                    DeviceOperands& on);

}  // namespace numsim::experiments::linear_speed
