// The derived tables of `loss-scaling`.
#include "experiments/claims/frame.h"
#include "experiments/loss_scaling/loss_scaling.h"
#include "numsim/optim/loss_scaler.h"

namespace numsim::experiments::loss_scaling {
namespace {

constexpr int kLongestBurst = 10;

void AddArms(const Frame& runs, Table& arms) {
  for (const Frame& arm : runs.By({"scaler", "scale", "event"})) {
    const Frame finished = arm.Where("status", "finished");
    const Estimate loss = MeanOf(finished.OverSeeds("valid_loss"));
    arms.rows.push_back({arm.Text("scaler"),
                         arm.Text("scale"),
                         arm.Text("event"),
                         arm.Size(),
                         arm.Size() - finished.Size(),
                         loss.value,
                         loss.low,
                         loss.high,
                         arm.Mean("steps_skipped"),
                         arm.Mean("updates_skipped")});
  }
}

}  // namespace

uint64_t RecoverySteps(const LossScalerConfig& config, int burst) {
  LossScaler scaler(config);
  const double initial = scaler.Scale();
  for (int step = 0; step < burst; ++step) scaler.Update(false);
  uint64_t steps = 0;
  while (scaler.Scale() < initial) {
    scaler.Update(true);
    ++steps;
  }
  return steps;
}

void Derive(const Settings& /*settings*/, Tables& tables) {
  AddArms(tables.at(std::string(kRunsTable)), tables.at(std::string(kArmsTable)));
  const LossScalerConfig pytorch{.kind = LossScaling::kDynamic};
  for (int burst = 1; burst <= kLongestBurst; ++burst) {
    tables.at(std::string(kRecoveryTable)).rows.push_back({burst, RecoverySteps(pytorch, burst)});
  }
}

}  // namespace numsim::experiments::loss_scaling
