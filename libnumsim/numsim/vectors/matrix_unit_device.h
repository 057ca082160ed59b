// The units of the device as a probe asks them (matrix_unit.h): its instructions one at a time, and
// the products of its library. Calls run on the calling thread's stream and wait. Built only with
// CUDA.
#pragma once

#include <string>
#include <vector>

#include "numsim/vectors/matrix_unit.h"

namespace numsim {

struct DeviceUnit {
  MatrixUnit unit;
  std::string unavailable;  // why it cannot be asked here; empty if it can
};

// Every unit that this version knows. Requires DeviceAvailable().
std::vector<DeviceUnit> DeviceUnits();

}  // namespace numsim
