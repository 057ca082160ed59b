// The operands and results of a layer's passes on a device.
#pragma once

#include <vector>

#include "experiments/linear_speed/check.h"
#include "numsim/backend/device_context.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments::linear_speed {

// Operands and results, all in bf16.
class DeviceOperands {
 public:
  DeviceOperands(const LayerTensors& tensors, DeviceStream& stream);
  // Copies the operands and allocates new memory for the results.
  DeviceOperands(const DeviceOperands& other, DeviceStream& stream);

  In<float> X() const { return View(x_, x_shape_); }
  In<float> W() const { return View(w_, w_shape_); }
  In<float> G() const { return View(g_, g_shape_); }
  MatrixSpan<float> Y() { return View(y_, g_shape_); }
  MatrixSpan<float> Dx() { return View(dx_, x_shape_); }
  MatrixSpan<float> Dw() { return View(dw_, w_shape_); }
  MatrixSpan<float> Result(LinearGemm product);

  // Sets all three results to NaN, so that unwritten elements are detected.
  void SpoilResults(DeviceStream& stream);

  // Enqueues a forward and a backward pass.
  void Run(Linear& layer,
           LinearSaved& saved,
           RandomStream random,
           LinearObserver* observer = nullptr);

  size_t Bytes() const { return 2 * sizeof(uint16_t) * (x_.size() + w_.size() + g_.size()); }

 private:
  using Codes = DeviceArray<uint16_t>;

  static MatrixSpan<float> View(const Codes& codes, MatrixShape shape) {
    return FloatMatrix(codes.data(), Element::kBfloat16, shape, ThreadPlace());
  }

  MatrixShape x_shape_, w_shape_, g_shape_;
  Codes x_, w_, g_, y_, dx_, dw_;
};

// Returns sets of the same operands that together take at least `bytes` bytes: at least one set and
// at most 256.
std::vector<DeviceOperands> MakeDeviceSets(const LayerTensors& tensors,
                                           size_t bytes,
                                           DeviceStream& stream);

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
                    DeviceOperands& on,
                    DeviceStream& stream);

}  // namespace numsim::experiments::linear_speed
