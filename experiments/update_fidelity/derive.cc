// The table `cliffs` of `update-fidelity`: the learning rates at which naive rounding stops,
// measured and predicted.
#include <map>

#include "experiments/claims/frame.h"
#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments::update_fidelity {
namespace {

// Predictions from the distribution for a format and a choice of keys; the same for every seed.
struct Prediction {
  double unmoved = 0, half_norm = 0;
};

Prediction Predict(const FormatSpec& format, bool same_key, double elements) {
  return {UnmovedExpected(format, same_key, elements), HalfNormExpected(format, same_key)};
}

// Returns true for formats of at most 16 bits: the formulas sum over every value of the format.
bool CanPredict(const FormatSpec& format) { return format.Bits() <= 16; }

}  // namespace

std::vector<Row> CliffRows(const study::Results& results) {
  std::vector<Row> rows;
  std::map<std::string, Prediction> predictions;
  results.Of("naive_limits").ForEach([&](const Frame& limits) {
    const std::string name = limits.Text("format"), keys = limits.Text("keys");
    const FormatSpec format = ParseFormat(name).spec;
    const bool same_key = ParseKeys(keys) == Keys::kSame;
    const double elements = limits.Number("elements");
    const std::string unmoved = limits.Text("unmoved_lr"), seed = limits.Text("seed");
    rows.push_back(
        {name, keys, seed, "unmoved", "arrays", unmoved, limits.Number("least_threshold"), kNaN});
    if (!CanPredict(format)) return;
    const auto [known, added] = predictions.try_emplace(name + " " + keys);
    if (added) known->second = Predict(format, same_key, elements);
    const double movers =
        elements * MovedShareExpected(format, same_key, limits.Number("unmoved_lr"));
    const auto& [unmoved_expected, half_norm] = known->second;
    rows.push_back(
        {name, keys, seed, "unmoved", "distribution", unmoved, unmoved_expected, movers});
    rows.push_back({name,
                    keys,
                    seed,
                    "half-norm",
                    "distribution",
                    limits.Text("half_norm_lr"),
                    half_norm,
                    kNaN});
  });
  return rows;
}

}  // namespace numsim::experiments::update_fidelity
