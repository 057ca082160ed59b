// The prediction of docs/moments.md: below which epsilon a second moment with one scale per tensor
// fails.
#include <algorithm>
#include <cmath>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/special_values.h"
#include "numsim/formats/decode.h"
#include "numsim/moments/moment_format.h"

namespace numsim::experiments::moment_formats {
namespace {

// Returns the largest magnitude that rounds to zero, over the largest finite value.
double FlushRatio(const FormatSpec& spec) {
  const double smallest = std::ldexp(1, spec.SubnormalExponent());
  return smallest / 2 / static_cast<double>(Decode(spec, spec.MaxFiniteCode()));
}

}  // namespace

double PredictedEpsilon(const Frame& spread,
                        const std::string& v,
                        std::string_view update_from,
                        double beta1) {
  const MomentFormat format = ParseMomentFormat(v);
  if (format.scaling != MomentScaling::kTensor || spread.Empty()) return kNaN;
  const double ratio = std::sqrt(FlushRatio(format.format.spec));
  // A fresh update divides by at least sqrt(1 - beta2) |g|, so it fails only where g is zero while m
  // is not: in rows of the embedding whose token is not in the batch.
  const bool embedding_alone = update_from == "fresh";
  double largest = 0;
  spread.ForEach([&](const Frame& row) {
    if (embedding_alone && row.Text("role") != "embedding") return;
    const double step = row.Number("step_lr") * row.Number("sqrt_v_max");
    largest = std::max(largest, step / row.Number("weight_rms"));
  });
  // The first moment of independent gradients is smaller than they are by this factor.
  const double averaging = std::sqrt((1 - beta1) / (1 + beta1));
  return averaging * ratio * largest;
}

}  // namespace numsim::experiments::moment_formats
