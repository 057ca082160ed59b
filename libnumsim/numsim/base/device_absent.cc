// base/device.h in a build without CUDA.
#include "numsim/base/device.h"

namespace numsim {

const std::string& DeviceUnavailable() {
  static const std::string reason = "this build has no CUDA kernels";
  return reason;
}

}  // namespace numsim
