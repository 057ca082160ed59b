// Matrices on the device, as kernels take and give them: row-major, without gaps, owned by somebody
// else.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/base/matrix_shape.h"

namespace numsim {

// How the elements of a tensor of values are stored.
enum class DeviceElement : uint8_t { kFloat32, kBfloat16 };
inline size_t BytesOf(DeviceElement element) { return element == DeviceElement::kFloat32 ? 4 : 2; }

// Values. Those of kBfloat16 are bf16 codes.
struct DeviceMatrix {
  const void* data = nullptr;
  DeviceElement element = DeviceElement::kFloat32;
  MatrixShape shape = {};

  size_t Bytes() const { return shape.Elements() * BytesOf(element); }
};

// The same to be written.
struct MutableDeviceMatrix {
  void* data = nullptr;
  DeviceElement element = DeviceElement::kFloat32;
  MatrixShape shape = {};

  operator DeviceMatrix() const { return {data, element, shape}; }
  size_t Bytes() const { return shape.Elements() * BytesOf(element); }
};

}  // namespace numsim
