// Quantised matrices and delayed scales.
#include "numsim/quantize.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <tuple>
#include <utility>
#include <variant>

#include "libnumsim/python/src/bindings.h"
#include "libnumsim/python/src/held_matrix.h"

namespace numsim::python {
namespace {

// How a quantisation gets its scales: by a rule, under one that is given, or under a delayed one.
using Scaling = std::variant<DelayedScale*, float, std::string_view>;

void QuantizeBy(const Scaling& scaling,
                ConstFloatSpan in,
                const QuantizeOptions& options,
                QuantizedMatrix& result) {
  const ArrayCall call;
  if (const auto* const given = std::get_if<float>(&scaling)) {
    QuantizeUnder(Scale{*given, 1 / *given}, in, options, result);
  } else if (std::holds_alternative<std::string_view>(scaling)) {
    QuantizeInto(in, options, result);
  } else {
    QuantizeUnder(*std::get<DelayedScale*>(scaling), in, options, result);
  }
}

// Writes to the arrays for codes and scales. On the host there need not be any: making them and
// looking into them takes longer than quantising a small matrix.
HeldMatrix QuantizeArray(const PlacedInput& x,
                         const EncodePlan& plan,
                         std::string_view layout,
                         const Scaling& scaling,
                         const ArrayRandom& random,
                         bool divide,
                         bool nan_scales,
                         const std::optional<PlacedOutput>& codes,
                         const std::optional<PlacedOutput>& scales,
                         const std::optional<PlacedOutput>& tensor_scale,
                         DeviceContext* context) {
  const auto* const rule = std::get_if<std::string_view>(&scaling);
  if (rule != nullptr && (*rule == "nvfp4-row" || *rule == "ms-eden")) {
    throw Error::Format("scale_rule: {} is for linear layers (docs/linear.md)", *rule);
  }
  const QuantizeOptions options{.format = plan.format,
                                .rounding = plan.rounding,
                                .overflow = plan.overflow,
                                .layout = ParseScaleLayout(layout),
                                .scale_rule = rule ? ParseScaleRule(*rule) : ScaleRule::kNone,
                                .random = random,
                                .divide = divide,
                                .nan_scales = nan_scales};
  const Place place = PlaceOf(context);
  const ConstFloatSpan in = FloatsAt(place, "quantize", x);
  if (place.IsHost() && !codes && !scales) {
    QuantizedMatrix result;
    QuantizeBy(scaling, in, options, result);
    return HeldMatrix(std::move(result));
  }
  if (!codes || !scales) throw Error::Format("quantize: expected arrays for codes and for scales");
  std::optional<PlacedInput> of_tensor;
  if (tensor_scale) of_tensor = PlacedInput(*tensor_scale);
  HeldMatrix held(
      plan.format, options.layout, PlacedInput(*codes), PlacedInput(*scales), std::move(of_tensor));
  QuantizedMatrix result = held.At(place);
  QuantizeBy(scaling, in, options, result);
  return held;
}

// Return parts of a matrix in host memory, as read-only arrays that keep it alive.
nb::object CodesOf(nb::handle self) {
  const QuantizedSpan view = nb::cast<const HeldMatrix&>(self).ViewAt(Place());
  const bool bytes = view.format.StorageBytes() == 1;
  const auto type = bytes ? nb::dtype<uint8_t>() : nb::dtype<uint16_t>();
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(
      view.codes.data, {view.shape.rows, view.shape.cols}, self, {}, type));
}

nb::object FloatsOf(MatrixSpan<const float> floats, nb::handle self) {
  return nb::cast(nb::ndarray<nb::numpy, const float>(floats.data, {floats.Elements()}, self));
}

nb::object ScalesOf(nb::handle self) {
  return FloatsOf(nb::cast<const HeldMatrix&>(self).ViewAt(Place()).scales, self);
}

nb::object TensorScaleOf(nb::handle self) {
  const auto scale = nb::cast<const HeldMatrix&>(self).TensorScaleAt(Place());
  return scale.Empty() ? nb::none() : FloatsOf(scale, self);
}

void DequantizeInto(const HeldMatrix& matrix, const PlacedOutput& out, DeviceContext* context) {
  const Place place = PlaceOf(context);
  const QuantizedSpan view = matrix.ViewAt(place);
  const auto values = ElementsAt<float>(place, "dequantize", out);
  const ArrayCall call;
  Dequantize(view, values);
}

ErrorMeasures ErrorOf(const HeldMatrix& matrix,
                      const InputOf<float>& x,
                      const OutputOf<float>& dequantized) {
  const QuantizedMatrix view = matrix.At(Place());
  const ArrayCall call;
  return QuantizationError(Elements(x), view, Elements(dequantized));
}

// Returns how scales of a shape belong to codes: the number of matrices, their rows and columns, and
// the layout of their scales.
std::tuple<size_t, size_t, size_t, std::string> Placement(const std::vector<size_t>& codes,
                                                          const std::vector<size_t>& scales,
                                                          const std::string& named,
                                                          const std::string& usual) {
  const auto layout_of = [](const std::string& text) -> std::optional<ScaleLayout> {
    if (text.empty()) return std::nullopt;
    return ParseScaleLayout(text);
  };
  const ScalePlacement place = PlaceScales(codes, scales, layout_of(named), layout_of(usual));
  const MatrixStack& stack = place.stack;
  return {stack.matrices, stack.shape.rows, stack.shape.cols, ToString(place.layout)};
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
            new (self)
                DelayedScale(format,
                             {history, ParseAmaxAlgorithm(algorithm), margin, ParseScaleRule(rule)},
                             PlaceOf(context));
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
  nb::class_<HeldMatrix>(m, "QuantizedMatrix")
      // A matrix of codes that are there already. Scales include the tensor's, if there is one.
      .def(
          "__init__",
          [](HeldMatrix* self,
             const FormatSpec& format,
             std::string_view layout,
             PlacedInput codes,
             PlacedInput scales,
             std::optional<PlacedInput> tensor_scale) {
            new (self) HeldMatrix(format,
                                  ParseScaleLayout(layout),
                                  std::move(codes),
                                  std::move(scales),
                                  std::move(tensor_scale));
          },
          nb::arg("format"),
          nb::arg("layout"),
          nb::arg("codes").noconvert(),
          nb::arg("scales").noconvert(),
          nb::arg("tensor_scale").noconvert() = nb::none())
      .def_prop_ro("codes", &CodesOf)
      .def_prop_ro("scales", &ScalesOf)
      .def_prop_ro("tensor_scale", &TensorScaleOf)
      .def("error", &ErrorOf, nb::arg("x").noconvert(), nb::arg("dequantized").noconvert());
  m.def(
      "scale_count",
      [](std::string_view layout, size_t rows, size_t cols) {
        return ParseScaleLayout(layout).Count(rows, cols);
      },
      nb::arg("layout"),
      nb::arg("rows"),
      nb::arg("cols"));
  m.def("dequantize",
        &DequantizeInto,
        nb::arg("matrix"),
        nb::arg("out").noconvert(),
        nb::arg("context") = nb::none());
  m.def("place_scales",
        &Placement,
        nb::arg("codes"),
        nb::arg("scales"),
        nb::arg("named"),
        nb::arg("usual"));
  // `scaling`: the name of a rule, a number, or a DelayedScale.
  m.def("quantize",
        &QuantizeArray,
        nb::arg("x").noconvert(),
        nb::arg("plan"),
        nb::arg("layout"),
        nb::arg("scaling"),
        nb::arg("random"),
        nb::arg("divide"),
        nb::arg("nan_scales"),
        nb::arg("codes").noconvert() = nb::none(),
        nb::arg("scales").noconvert() = nb::none(),
        nb::arg("tensor_scale").noconvert() = nb::none(),
        nb::arg("context") = nb::none());
}

}  // namespace numsim::python
