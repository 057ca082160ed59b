// The rows that claims of [Seed003] about pretraining are judged by.
#include <fmt/format.h>

#include <cmath>

#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

constexpr std::string_view kPapersFormat = "bf16";

// Returns the rate at which a step of 1 lr per weight is half of bf16's spacing at a weight of one
// standard deviation.
double HalfSpacing(const Settings& settings) {
  const double scale = settings.GetDouble("weight-scale", 0, 1e4);
  if (scale == 0) return 0;
  const int mantissa_bits = ParseFormat(kPapersFormat).spec.mantissa_bits;
  return std::ldexp(1, std::ilogb(scale) - mantissa_bits - 1);
}

// Returns true if a training of these does not get to half of fp32's progress.
bool FallsShort(const Frame& runs) {
  return !runs.Where([](const Frame& row) { return std::isinf(row.Number("delay")); }).Empty();
}

}  // namespace

Frame LowRates(const study::Results& results, const Frame& runs) {
  const double most = HalfSpacing(results.settings);
  return runs.Where([&](const Frame& row) { return row.Number("lr") < most; });
}

std::string NoLowRate(const study::Results& results, const Frame& runs) {
  if (!LowRates(results, runs).Empty()) return "";
  return fmt::format("no learning rate is below {:.2g} (--lr)", HalfSpacing(results.settings));
}

Evidence HeedShortTrainings(const Frame& runs, Evidence delays) {
  constexpr const char* kShort = "a training with {} does not get to half of fp32's progress";
  const std::string_view master = ToString(UpdateKind::kMasterFp32);
  if (FallsShort(runs.Where("rule", master))) {
    return NotTestedBecause(fmt::format(kShort, master));
  }
  for (const Frame& rule : runs.By({"rule"})) {
    if (!FallsShort(rule)) continue;
    delays.bound = 1;
    delays.bound_reason = fmt::format(kShort, rule.Text("rule"));
  }
  return delays;
}

}  // namespace numsim::experiments::update_convergence
