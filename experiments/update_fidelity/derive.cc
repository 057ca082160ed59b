// The table `cliffs` of `update-fidelity`: the learning rates at which naive rounding stops,
// measured and predicted.
#include <limits>
#include <map>

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

void Derive(const Settings&, Tables& tables) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Table& limits = tables.at(std::string(kLimits));
  auto& rows = tables.at(std::string(kCliffs)).rows;
  std::map<std::string, Prediction> predictions;
  for (size_t i = 0; i < limits.rows.size(); ++i) {
    const std::string name = limits.Text(i, "format"), keys = limits.Text(i, "keys");
    const FormatSpec format = ParseFormat(name).spec;
    const bool same_key = ParseKeys(keys) == Keys::kSame;
    const double elements = limits.Number(i, "elements");
    const std::string& unmoved = limits.Text(i, "unmoved_lr");
    const std::vector<std::string> head = {name, keys, limits.Text(i, "seed")};
    const auto add = [&](std::string_view limit,
                         std::string_view from,
                         const std::string& measured,
                         double predicted,
                         double movers) {
      std::vector<std::string> row = head;
      row.insert(row.end(),
                 {FormatCell(limit),
                  FormatCell(from),
                  measured,
                  FormatCell(predicted),
                  FormatCell(movers)});
      rows.push_back(std::move(row));
    };
    add("unmoved", "arrays", unmoved, limits.Number(i, "least_threshold"), kNaN);
    if (!CanPredict(format)) continue;
    const auto [known, added] = predictions.try_emplace(name + " " + keys);
    if (added) known->second = Predict(format, same_key, elements);
    const double movers =
        elements * MovedShareExpected(format, same_key, limits.Number(i, "unmoved_lr"));
    add("unmoved", "distribution", unmoved, known->second.unmoved, movers);
    add("half-norm", "distribution", limits.Text(i, "half_norm_lr"), known->second.half_norm, kNaN);
  }
}

}  // namespace numsim::experiments::update_fidelity
