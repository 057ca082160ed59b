// Optimiser moments in their storage.
#include "libnumsim/python/src/bindings.h"
#include "numsim/cast/cast.h"
#include "numsim/moments/moment_format.h"
#include "numsim/moments/moment_store.h"

namespace numsim::python {

void BindMoments(nb::module_& m) {
  nb::class_<MomentLoss>(m, "MomentLoss")
      .def_ro("nonzero", &MomentLoss::nonzero)
      .def_ro("flushed", &MomentLoss::flushed)
      .def_ro("saturated", &MomentLoss::saturated)
      .def_ro("signal_square", &MomentLoss::signal_square)
      .def_ro("error_square", &MomentLoss::error_square);
  nb::class_<MomentStore>(m, "MomentStore")
      .def(
          "__init__",
          [](MomentStore* self, std::string_view format, size_t n, bool is_signed) {
            new (self) MomentStore(ParseMomentFormat(format), n, is_signed);
          },
          nb::arg("format"),
          nb::arg("n"),
          nb::arg("is_signed"))
      .def_prop_ro("size", &MomentStore::size)
      .def_prop_ro("bytes", &MomentStore::Bytes)
      .def_prop_ro("format", [](const MomentStore& s) { return ToString(s.format()); })
      .def(
          "load",
          [](const MomentStore& s, const OutputOf<float>& values) {
            const ArrayCall call;
            s.Load(Elements(values));
          },
          nb::arg("values").noconvert())
      .def(
          "store",
          [](MomentStore& s, const InputOf<float>& values, const ArrayRandom& random) {
            const ArrayCall call;
            return s.Store(Elements(values), random.stream, true);
          },
          nb::arg("values").noconvert(),
          nb::arg("random"));
}

}  // namespace numsim::python
