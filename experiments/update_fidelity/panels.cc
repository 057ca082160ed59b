#include "experiments/update_fidelity/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/shared/special_values.h"

namespace numsim::experiments::update_fidelity {

Panels PanelsOf(const Frame& frame) {
  Panels panels;
  for (const Frame& panel : frame.By({"format", "keys"})) {
    panels.emplace_back(panel.Text("format") + " " + panel.Text("keys"), panel);
  }
  return panels;
}

Panels PanelsOf(const study::Results& results, UpdateKind kind) {
  Panels panels;
  for (const Frame& of_rule : results.Of("fidelity").By({"rule"})) {
    const std::string rule = of_rule.Text("rule");
    if (ParseUpdateRule(rule).kind != kind) continue;
    for (auto& [name, panel] : PanelsOf(of_rule)) {
      if (rule != ToString(kind)) name.append(" ").append(rule);
      panels.emplace_back(name, panel);
    }
  }
  return panels;
}

double LeastRate(const Frame& frame, const IsGood& good) {
  double failed = 0, least = kNaN;
  frame.ForEach([&](const Frame& row) {
    if (!good(row)) failed = std::max(failed, row.Number("lr"));
  });
  for (const double lr : frame.Numbers("lr")) {
    if (lr > failed) least = std::fmin(least, lr);
  }
  return least;
}

std::string RangeText(const std::vector<double>& values) {
  double low = kNaN, high = kNaN;
  for (const double value : values) {
    low = std::fmin(low, value);  // which leaves NaN out
    high = std::fmax(high, value);
  }
  if (std::isnan(low)) return "none";
  const std::string from = fmt::format("{:.4g}", low), to = fmt::format("{:.4g}", high);
  return from == to ? from : from + " .. " + to;
}

}  // namespace numsim::experiments::update_fidelity
