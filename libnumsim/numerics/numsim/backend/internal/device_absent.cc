// Implements backend/device.h in a build without CUDA.
#include "numsim/backend/device.h"

namespace numsim {

const std::string& DeviceUnavailable() {
  static const std::string reason = "this build has no CUDA kernels";
  return reason;
}

}  // namespace numsim
