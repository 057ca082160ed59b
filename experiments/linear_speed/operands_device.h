// The operands and results of a layer's passes on a device.
#pragma once

#include <vector>

#include "experiments/linear_speed/check.h"
#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/linear/linear_device.h"

namespace numsim::experiments::linear_speed {

// bf16 throughout.
class DeviceOperands {
 public:
  DeviceOperands(const LayerTensors& tensors, DeviceStream& stream);
  // A copy of the operands, with room for results of its own.
  DeviceOperands(const DeviceOperands& other, DeviceStream& stream);

  DeviceMatrix X() const { return View(x_, x_shape_); }
  DeviceMatrix W() const { return View(w_, w_shape_); }
  DeviceMatrix G() const { return View(g_, g_shape_); }
  MutableDeviceMatrix Y() { return View(y_, g_shape_); }
  MutableDeviceMatrix Dx() { return View(dx_, x_shape_); }
  MutableDeviceMatrix Dw() { return View(dw_, w_shape_); }
  MutableDeviceMatrix Result(LinearGemm product);

  // All three results to NaN, so that what is not written shows.
  void SpoilResults(DeviceStream& stream);

  // A forward and a backward pass.
  void Run(DeviceLinear& layer,
           RandomStream random,
           DeviceStream& stream,
           LinearObserver* observer = nullptr);

  size_t Bytes() const { return 2 * sizeof(uint16_t) * (x_.size() + w_.size() + g_.size()); }

 private:
  using Codes = DeviceArray<uint16_t>;

  static MutableDeviceMatrix View(const Codes& codes, MatrixShape shape) {
    return {codes.data(), DeviceElement::kBfloat16, shape};
  }

  MatrixShape x_shape_, w_shape_, g_shape_;
  Codes x_, w_, g_, y_, dx_, dw_;
};

// Sets of the same operands, at least one, of together `bytes` at least.
std::vector<DeviceOperands> MakeDeviceSets(const LayerTensors& tensors,
                                           size_t bytes,
                                           DeviceStream& stream);

// Throws Error that names the layer and the element where the device's results and the CPU's
// differ: all elements of a small layer (once for each layer of this process), bit for bit for the
// products whose rule is stated.
void CheckSmallLayer(const LinearRecipe& recipe, const std::string& name);

// The same for some elements of each product of a pass over `on`, which holds `tensors`, and for
// elements that were not written. Returns how many elements of the product were compared.
size_t CheckProduct(const LinearRecipe& recipe,
                    const std::string& name,
                    LinearGemm product,
                    const LayerTensors& tensors,
                    DeviceOperands& on,
                    DeviceStream& stream);

}  // namespace numsim::experiments::linear_speed
