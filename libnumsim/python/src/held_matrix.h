// Quantised matrices in arrays of Python.
#pragma once

#include <optional>

#include "libnumsim/python/src/bindings.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::python {

// A quantised matrix whose codes and scales are in arrays that it keeps alive.
struct HeldMatrix {
  FormatSpec format;
  ScaleLayout layout;
  PlacedInput codes;   // rows x columns
  PlacedInput scales;  // float32
  std::optional<PlacedInput> tensor_scale;

  // Returns a matrix that uses the memory of the arrays, which must lie at the place. To be written
  // to only if they may be.
  QuantizedMatrix At(Place place) const {
    QuantizedMatrix matrix(place);
    matrix.format = format;
    matrix.shape = ShapeOf(codes);
    matrix.layout = layout;
    WithCodeType("quantize", codes.dtype(), [&]<typename Code>(Code) {
      const auto* const data = ElementsAt<const Code>(place, "quantize", codes).data;
      Use<uint8_t>({reinterpret_cast<const uint8_t*>(data), {1, codes.nbytes()}, place},
                   matrix.codes);
    });
    Use(ElementsAt<const float>(place, "quantize", scales), matrix.scales);
    if (tensor_scale) {
      Use(ElementsAt<const float>(place, "quantize", *tensor_scale), matrix.tensor_scale);
    }
    return matrix;
  }

 private:
  template <typename T>
  static void Use(MatrixSpan<const T> memory, Buffer<T>& buffer) {
    buffer.Borrow({const_cast<T*>(memory.data), memory.Shape(), memory.place});
    buffer.Renew(memory.Elements());
  }
};

}  // namespace numsim::python
