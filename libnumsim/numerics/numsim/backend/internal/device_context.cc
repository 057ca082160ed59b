#include "numsim/backend/device_context.h"

#include "numsim/base/error.h"

namespace numsim {

DeviceContext::DeviceContext() {
  if (!DeviceAvailable()) throw Error(DeviceUnavailable());
  if constexpr (NUMSIM_HAVE_CUDA) stream_ = std::make_shared<DeviceStream>();
}

DeviceContext::DeviceContext(void* stream) {
  if (!DeviceAvailable()) throw Error(DeviceUnavailable());
  if constexpr (NUMSIM_HAVE_CUDA) stream_ = std::make_shared<DeviceStream>(stream);
}

DeviceContext& ThreadContext() {
  static thread_local DeviceContext context;
  return context;
}

DeviceStream& ThreadStream() { return ThreadContext().stream(); }

}  // namespace numsim
