// Measures of a tensor's elements.
#include <algorithm>
#include <cmath>

#include "libnumsim/python/src/bindings.h"
#include "numsim/stats/moments.h"

namespace numsim::python {
namespace {

struct Spread {
  size_t nonfinite = 0;
  double absmax = 0, kurtosis = 0;
};

Spread SpreadOf(std::span<const float> values) {
  Spread spread;
  Moments moments;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++spread.nonfinite;
      continue;
    }
    const double x = static_cast<double>(value);
    spread.absmax = std::max(spread.absmax, std::abs(x));
    moments.Add(x);
  }
  spread.kurtosis = moments.Kurtosis();
  return spread;
}

}  // namespace

void BindMeasures(nb::module_& m) {
  // (elements that are not finite, largest magnitude and kurtosis of the others).
  m.def(
      "spread",
      [](const InputOf<float>& values) {
        Spread spread;
        {
          const ArrayCall call;
          spread = SpreadOf(Elements(values));
        }
        return nb::make_tuple(spread.nonfinite, spread.absmax, spread.kurtosis);
      },
      nb::arg("values").noconvert());
}

}  // namespace numsim::python
