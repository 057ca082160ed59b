// Codes with given scales.
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "libnumsim/python/src/bindings.h"
#include "numsim/quantize/given_scales.h"

namespace numsim::python {
namespace {

using Shape = std::vector<size_t>;

std::optional<ScaleLayout> LayoutOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return ParseScaleLayout(text);
}

}  // namespace

void BindGiven(nb::module_& m) {
  // Returns the number of matrices, their rows and columns, and the layout of their scales.
  m.def(
      "place_scales",
      [](const Shape& codes,
         const Shape& scales,
         const std::string& named,
         const std::string& usual) {
        const ScalePlacement place = PlaceScales(codes, scales, LayoutOf(named), LayoutOf(usual));
        return std::tuple(place.stack.matrices,
                          place.stack.shape.rows,
                          place.stack.shape.cols,
                          ToString(place.layout));
      },
      nb::arg("codes"),
      nb::arg("scales"),
      nb::arg("named"),
      nb::arg("usual"));
  m.def(
      "from_codes",
      [](const FormatSpec& format,
         const Input& codes,
         const std::string& layout,
         const InputOf<float>& scales) {
        if (codes.ndim() != 2) throw Error("codes: expected a matrix");
        const MatrixShape shape = {codes.shape(0), codes.shape(1)};
        const std::span bytes(static_cast<const uint8_t*>(codes.data()), codes.nbytes());
        const ScaleLayout parsed = ParseScaleLayout(layout);
        const ArrayCall call;
        return FromCodes(format, shape, parsed, bytes, Elements(scales));
      },
      nb::arg("format"),
      nb::arg("codes").noconvert(),
      nb::arg("layout"),
      nb::arg("scales").noconvert());
}

}  // namespace numsim::python
