// Update rules: steps of weights of a small format.
#include <memory>

#include "libnumsim/python/src/bindings.h"
#include "numsim/update.h"

namespace numsim::python {
namespace {

UpdateState Start(const UpdateRule& rule,
                  const FormatSpec& format,
                  size_t rows,
                  size_t cols,
                  const InputOf<float>& initial,
                  const OutputOf<float>& weights) {
  const ArrayCall call;
  const MatrixShape shape{rows, cols};
  return StartUpdates(
      rule, format, HostMatrix(Elements(initial), shape), HostMatrix(Elements(weights), shape));
}

UpdateOutcome Apply(const UpdateRule& rule,
                    const FormatSpec& format,
                    size_t rows,
                    size_t cols,
                    const InputOf<float>& weights,
                    const InputOf<float>& update,
                    const OutputOf<float>& out,
                    UpdateState& state,
                    const ArrayRandom& random,
                    float learning_rate,
                    float weight_decay) {
  const MatrixShape shape{rows, cols};
  const WeightUpdate step{.format = format,
                          .weights = HostMatrix(Elements(weights), shape),
                          .update = HostMatrix(Elements(update), shape),
                          .learning_rate = learning_rate,
                          .weight_decay = weight_decay};
  const ArrayCall call;
  return ApplyUpdate(rule, step, random.stream, state, HostMatrix(Elements(out), shape));
}

}  // namespace

void BindUpdates(nb::module_& m) {
  nb::class_<UpdateRule>(m, "UpdateRule")
      .def(
          "__init__",
          [](UpdateRule* self, std::string_view text, double tolerance, int iterations) {
            UpdateRule rule = ParseUpdateRule(text);
            rule.tolerance = tolerance;
            rule.iterations = iterations;
            new (self) UpdateRule(std::move(rule));
          },
          nb::arg("text"),
          nb::arg("tolerance") = 1e-2,
          nb::arg("iterations") = 32)
      .def_prop_ro("has_state", [](const UpdateRule& rule) { return HasState(rule.kind); })
      .def(
          "check",
          [](const UpdateRule& rule, const FormatSpec& format) {
            CheckUpdateRule(rule, {ToString(format), format});
          },
          nb::arg("format"))
      .def(
          "state_bytes",
          [](const UpdateRule& rule, const FormatSpec& format) {
            return StateBytesPerWeight(rule, format);
          },
          nb::arg("format"))
      .def("__str__", [](const UpdateRule& rule) { return ToString(rule); });
  nb::class_<UpdateState>(m, "UpdateState")
      .def(nb::init<>())
      .def("copy", [](const UpdateState& state) { return UpdateState(state); });
  nb::class_<UpdateOutcome>(m, "UpdateOutcome")
      .def_prop_ro("status", [](const UpdateOutcome& o) { return ToString(o.status); })
      .def_ro("moved", &UpdateOutcome::moved)
      .def_ro("saturated", &UpdateOutcome::saturated)
      .def_ro("achieved_norm", &UpdateOutcome::achieved_norm)
      .def_ro("target_norm", &UpdateOutcome::target_norm)
      .def_ro("achieved_projection", &UpdateOutcome::achieved_projection)
      .def_ro("target_projection", &UpdateOutcome::target_projection)
      .def_ro("alpha", &UpdateOutcome::alpha)
      .def_ro("passes", &UpdateOutcome::passes);

  m.def("update_kinds", [] {
    std::vector<std::string> names;
    for (const UpdateKind kind : UpdateKinds()) names.emplace_back(ToString(kind));
    return names;
  });
  m.def("start_updates",
        &Start,
        nb::arg("rule"),
        nb::arg("format"),
        nb::arg("rows"),
        nb::arg("cols"),
        nb::arg("initial").noconvert(),
        nb::arg("weights").noconvert());
  m.def("apply_update",
        &Apply,
        nb::arg("rule"),
        nb::arg("format"),
        nb::arg("rows"),
        nb::arg("cols"),
        nb::arg("weights").noconvert(),
        nb::arg("update").noconvert(),
        nb::arg("out").noconvert(),
        nb::arg("state"),
        nb::arg("random"),
        nb::arg("learning_rate"),
        nb::arg("weight_decay"));
}

}  // namespace numsim::python
