// NumPy arrays that view memory of an object of the library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libnumsim/python/src/bindings.h"

namespace numsim::python {

// Returns codes of 1, 2 or 4 bytes each as a read-only NumPy array that keeps `owner` alive.
inline nb::object CodeView(
    const void* data, int bytes, size_t dimensions, const size_t* shape, nb::handle owner) {
  const auto view = [&]<typename Code>(Code) {
    return nb::cast(nb::ndarray<nb::numpy, const Code>(
        static_cast<const Code*>(data), dimensions, shape, owner));
  };
  if (bytes == 1) return view(uint8_t{});
  return bytes == 2 ? view(uint16_t{}) : view(uint32_t{});
}

}  // namespace numsim::python
