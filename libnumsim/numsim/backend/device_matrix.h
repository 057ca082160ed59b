// Non-owning views of matrices on the device, the arguments of kernels: row-major and contiguous.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/base/matrix_shape.h"

namespace numsim {

// The storage type of a matrix of values.
enum class DeviceElement : uint8_t { kFloat32, kBfloat16 };
inline size_t BytesOf(DeviceElement element) { return element == DeviceElement::kFloat32 ? 4 : 2; }

// A read-only matrix of values. kBfloat16 elements are bf16 codes.
struct DeviceMatrix {
  const void* data = nullptr;
  DeviceElement element = DeviceElement::kFloat32;
  MatrixShape shape = {};

  size_t Bytes() const { return shape.Elements() * BytesOf(element); }
};

// A writable matrix of values.
struct MutableDeviceMatrix {
  void* data = nullptr;
  DeviceElement element = DeviceElement::kFloat32;
  MatrixShape shape = {};

  operator DeviceMatrix() const { return {data, element, shape}; }
  size_t Bytes() const { return shape.Elements() * BytesOf(element); }
};

}  // namespace numsim
