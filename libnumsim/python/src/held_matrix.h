// Quantised matrices in arrays of Python.
#pragma once

#include <optional>
#include <utility>

#include "libnumsim/python/src/bindings.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::python {

// A quantised matrix: in host memory of its own, or in arrays that it keeps alive.
class HeldMatrix {
 public:
  // One in host memory, which nobody else has to make room for.
  explicit HeldMatrix(QuantizedMatrix matrix) : matrix_(std::move(matrix)) {}
  // `codes`: rows x columns; `scales` and `tensor_scale`: float32.
  HeldMatrix(const FormatSpec& format,
             const ScaleLayout& layout,
             PlacedInput codes,
             PlacedInput scales,
             std::optional<PlacedInput> tensor_scale = {})
      : arrays_({std::move(codes), std::move(scales), std::move(tensor_scale)}) {
    matrix_.format = format;
    matrix_.shape = ShapeOf(arrays_->codes);
    matrix_.layout = layout;
  }

  // Returns a view of the memory, which must lie at the place.
  QuantizedSpan ViewAt(Place place) const {
    if (!arrays_) {
      OnePlace("quantize", {place, matrix_.place()});
      return matrix_;
    }
    return {matrix_.format,
            matrix_.shape,
            matrix_.layout,
            CodesAt(place),
            ElementsAt<const float>(place, "quantize", arrays_->scales),
            TensorScaleAt(place)};
  }

  // Returns the scale of the tensor under two levels, else an empty view.
  MatrixSpan<const float> TensorScaleAt(Place place) const {
    if (!arrays_) return matrix_.tensor_scale.View();
    if (!arrays_->tensor_scale) return {};
    return ElementsAt<const float>(place, "quantize", *arrays_->tensor_scale);
  }

  // Returns a matrix that uses the memory, which must lie at the place. To be written to only if the
  // arrays may be.
  QuantizedMatrix At(Place place) const {
    const QuantizedSpan view = ViewAt(place);
    QuantizedMatrix matrix(place);
    matrix.format = view.format;
    matrix.shape = view.shape;
    matrix.layout = view.layout;
    Use(view.codes, matrix.codes);
    Use(view.scales, matrix.scales);
    const MatrixSpan<const float> tensor_scale = TensorScaleAt(place);
    if (!tensor_scale.Empty()) Use(tensor_scale, matrix.tensor_scale);
    return matrix;
  }

 private:
  struct Arrays {
    PlacedInput codes, scales;
    std::optional<PlacedInput> tensor_scale;
  };

  // Returns the bytes of the codes of the arrays.
  MatrixSpan<const uint8_t> CodesAt(Place place) const {
    const PlacedInput& codes = arrays_->codes;
    const uint8_t* bytes = nullptr;
    WithCodeType("quantize", codes.dtype(), [&]<typename Code>(Code) {
      const auto* const data = ElementsAt<const Code>(place, "quantize", codes).data;
      bytes = reinterpret_cast<const uint8_t*>(data);
    });
    return {bytes, {1, codes.nbytes()}, place};
  }

  template <typename T>
  static void Use(MatrixSpan<const T> memory, Buffer<T>& buffer) {
    buffer.Borrow({const_cast<T*>(memory.data), memory.Shape(), memory.place});
    buffer.Renew(memory.Elements());
  }

  QuantizedMatrix matrix_;  // what the arrays hold is not in it
  std::optional<Arrays> arrays_;
};

}  // namespace numsim::python
