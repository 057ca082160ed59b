// Update rules: steps of weights of a small format.
#include <vector>

#include "libnumsim/python/src/bindings.h"
#include "numsim/update.h"

namespace numsim::python {
namespace {

// Rounds the weights that a rule starts from, and returns the state that goes with them. On a device,
// a state is made on the host.
UpdateState Start(const UpdateRule& rule,
                  const FormatSpec& format,
                  size_t rows,
                  size_t cols,
                  const PlacedInput& initial,
                  const PlacedOutput& weights,
                  DeviceContext* context) {
  const Place place = PlaceOf(context);
  const MatrixShape shape{rows, cols};
  const auto from = ElementsAt<const float>(place, "update", initial).As(rows, cols);
  const auto to = ElementsAt<float>(place, "update", weights).As(rows, cols);
  const ArrayCall call;
  if (place.IsHost()) return StartUpdates(rule, format, from, to);
  if (!HasState(rule.kind)) {
    FakeQuantize(MakeEncodePlan(format, {}, Overflow::kSaturate), from, to);
    return UpdateState().CopiedTo(place);
  }
  std::vector<float> values = ToVector(from);
  const auto host = HostMatrix(values, shape);
  const UpdateState state = StartUpdates(rule, format, host, host);
  CopyMatrix<float>(host, to);
  return state.CopiedTo(place);
}

// Returns a copy of the state in the memory of the context, or the state itself if it is there. From
// one context to another it goes through the host.
nb::object StateAt(nb::handle state, DeviceContext* context) {
  const Place place = PlaceOf(context);
  const auto& held = nb::cast<const UpdateState&>(state);
  const bool there = held.values.place() == place && held.words.place() == place;
  if (there) return nb::borrow(state);
  return nb::cast(held.CopiedTo(Place()).CopiedTo(place));
}

UpdateOutcome Apply(const UpdateRule& rule,
                    const FormatSpec& format,
                    size_t rows,
                    size_t cols,
                    const PlacedInput& weights,
                    const PlacedInput& update,
                    const PlacedOutput& out,
                    UpdateState& state,
                    const ArrayRandom& random,
                    float learning_rate,
                    float weight_decay,
                    DeviceContext* context) {
  const Place place = PlaceOf(context);
  const WeightUpdate step{
      .format = format,
      .weights = ElementsAt<const float>(place, "update", weights).As(rows, cols),
      .update = ElementsAt<const float>(place, "update", update).As(rows, cols),
      .learning_rate = learning_rate,
      .weight_decay = weight_decay};
  const auto moved = ElementsAt<float>(place, "update", out).As(rows, cols);
  const ArrayCall call;
  return ApplyUpdate(rule, step, random.stream, state, moved);
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
        nb::arg("weights").noconvert(),
        nb::arg("context") = nb::none(),
        nb::keep_alive<0, 7>());
  // The state keeps its context alive.
  m.def("update_state_at",
        &StateAt,
        nb::arg("state"),
        nb::arg("context").none(),
        nb::keep_alive<0, 2>());
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
        nb::arg("weight_decay"),
        nb::arg("context") = nb::none());
}

}  // namespace numsim::python
