// Quantised matrices and delayed scales.
#include "numsim/quantize.h"

#include <algorithm>

#include "libnumsim/python/src/bindings.h"
#include "libnumsim/python/src/code_views.h"
#include "libnumsim/python/src/quantize_options.h"
#include "numsim/backend/device_context.h"

namespace numsim::python {
namespace {

MatrixShape ShapeOf(const InputOf<float>& x) {
  if (x.ndim() != 2) throw Error::Format("x: expected 2 dimensions, found {}", x.ndim());
  return {x.shape(0), x.shape(1)};
}

ErrorMeasures ErrorOf(const QuantizedMatrix& matrix,
                      const InputOf<float>& x,
                      const OutputOf<float>& dequantized) {
  const ArrayCall call;
  return QuantizationError(Elements(x), matrix, Elements(dequantized));
}

void BindErrors(nb::module_& m) {
  nb::class_<ErrorMeasures>(m, "ErrorMeasures")
      .def_ro("elements", &ErrorMeasures::elements)
      .def_ro("nonfinite", &ErrorMeasures::nonfinite)
      .def_ro("underflow", &ErrorMeasures::underflow)
      .def_ro("overflow", &ErrorMeasures::overflow)
      .def_ro("max_error", &ErrorMeasures::max_error)
      .def_prop_ro("sqnr_db", &ErrorMeasures::SqnrDb)
      .def_prop_ro("relative_error", &ErrorMeasures::RelativeError)
      .def_prop_ro("mean_error", &ErrorMeasures::MeanError)
      .def_prop_ro("underflow_share", &ErrorMeasures::UnderflowShare)
      .def_prop_ro("overflow_share", &ErrorMeasures::OverflowShare);
}

void BindDelayedScale(nb::module_& m) {
  nb::class_<DelayedScale>(m, "DelayedScale")
      .def(
          "__init__",
          [](DelayedScale* self,
             const FormatSpec& format,
             size_t history,
             std::string_view algorithm,
             int margin,
             std::string_view rule,
             DeviceContext* context) {
            const Place place = context == nullptr ? Place() : Place(*context);
            new (self)
                DelayedScale(format,
                             {history, ParseAmaxAlgorithm(algorithm), margin, ParseScaleRule(rule)},
                             place);
          },
          nb::keep_alive<1, 7>(),
          nb::arg("format"),
          nb::arg("history"),
          nb::arg("algorithm"),
          nb::arg("margin"),
          nb::arg("rule"),
          nb::arg("context").none())
      .def_prop_ro("scale", [](const DelayedScale& d) { return d.Current().scale; })
      .def("update", &DelayedScale::Update)
      .def("save", &DelayedScale::Save)
      .def(
          "restore",
          [](DelayedScale& d, const std::vector<float>& state) { d.Restore(state); },
          nb::arg("state"));
}

}  // namespace

void BindQuantize(nb::module_& m) {
  BindErrors(m);
  BindDelayedScale(m);
  nb::class_<QuantizedMatrix>(m, "QuantizedMatrix")
      .def_prop_ro("rows", [](const QuantizedMatrix& q) { return q.shape.rows; })
      .def_prop_ro("cols", [](const QuantizedMatrix& q) { return q.shape.cols; })
      .def_prop_ro("layout", [](const QuantizedMatrix& q) { return ToString(q.layout); })
      .def_prop_ro("codes",
                   [](nb::handle self) {
                     const auto& q = nb::cast<const QuantizedMatrix&>(self);
                     const size_t shape[2] = {q.shape.rows, q.shape.cols};
                     return CodeView(q.codes.View().data, q.format.StorageBytes(), 2, shape, self);
                   })
      .def_prop_ro("scales",
                   [](nb::handle self) {
                     const std::span<const float> s =
                         nb::cast<const QuantizedMatrix&>(self).Scales();
                     return nb::ndarray<nb::numpy, const float>(s.data(), {s.size()}, self);
                   })
      // The scale of the tensor under a rule with two levels, and the codes of the groups' scales.
      .def_prop_ro("tensor_scale",
                   [](const QuantizedMatrix& q) -> std::optional<float> {
                     if (q.tensor_scale.View().Elements() == 0) return std::nullopt;
                     return q.tensor_scale.Span()[0];
                   })
      .def(
          "group_scale_codes",
          [](const QuantizedMatrix& q, const OutputOf<uint8_t>& out) {
            const ArrayCall call;
            const auto codes = GroupScaleCodes(q);
            if (out.size() != codes.size()) {
              throw Error::Format(
                  "expected {} elements in out, found {}", codes.size(), out.size());
            }
            std::ranges::copy(codes, Elements(out).begin());
          },
          nb::arg("out").noconvert())
      .def(
          "dequantize",
          [](const QuantizedMatrix& q, const OutputOf<float>& out) {
            const ArrayCall call;
            Dequantize(q, Elements(out));
          },
          nb::arg("out").noconvert())
      .def("error", &ErrorOf, nb::arg("x").noconvert(), nb::arg("dequantized").noconvert());

  m.def(
      "scale_count",
      [](std::string_view layout, size_t rows, size_t cols) {
        return ParseScaleLayout(layout).Count(rows, cols);
      },
      nb::arg("layout"),
      nb::arg("rows"),
      nb::arg("cols"));
  m.def(
      "quantize",
      [](const InputOf<float>& x,
         const EncodePlan& plan,
         std::string_view layout,
         std::string_view rule,
         const ArrayRandom& random) {
        const auto options = OptionsOf(plan, layout, rule, random);
        const MatrixShape shape = ShapeOf(x);
        const ArrayCall call;
        return Quantize(Elements(x), shape, options);
      },
      nb::arg("x").noconvert(),
      nb::arg("plan"),
      nb::arg("layout"),
      nb::arg("rule"),
      nb::arg("random") = ArrayRandom());
  m.def(
      "quantize_under",
      [](const InputOf<float>& x, const EncodePlan& plan, float scale, const ArrayRandom& random) {
        const auto options = OptionsOf(plan, "tensor", "none", random);
        const MatrixShape shape = ShapeOf(x);
        const ArrayCall call;
        QuantizedMatrix result;
        QuantizeUnder(Scale{scale, 1 / scale}, HostMatrix(Elements(x), shape), options, result);
        return result;
      },
      nb::arg("x").noconvert(),
      nb::arg("plan"),
      nb::arg("scale"),
      nb::arg("random") = ArrayRandom());
  m.def(
      "quantize_delayed",
      [](const InputOf<float>& x,
         const EncodePlan& plan,
         DelayedScale& delayed,
         const ArrayRandom& random) {
        const auto options = OptionsOf(plan, "tensor", "none", random);
        const MatrixShape shape = ShapeOf(x);
        const ArrayCall call;
        QuantizedMatrix result;
        QuantizeUnder(delayed, HostMatrix(Elements(x), shape), options, result);
        return result;
      },
      nb::arg("x").noconvert(),
      nb::arg("plan"),
      nb::arg("delayed"),
      nb::arg("random") = ArrayRandom());
}

}  // namespace numsim::python
