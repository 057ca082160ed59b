// A place that is not the host, for tests of what operations refuse: it has no device and is never
// used.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

inline Place Elsewhere() {
  alignas(16) static char nothing[16];
  return Place(reinterpret_cast<DeviceContext&>(nothing));
}

}  // namespace numsim
