// The keys of [optimizer], [schedule] and [loss_scaler].
#include "numsim/base/error.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/optim/optimizer_kinds.h"

namespace numsim {
namespace {

ConfigRows<StableOptions> StableRows() {
  using S = StableOptions;
  // clang-format off
  return {
      FlagRow("clipped_decay", &S::clipped_decay, "stable-adamw: weight decay uses the clipped learning rate; false: the unclipped"),
      FlagRow("epsilon_added", &S::epsilon_added, "RMS of g / (sqrt(u) + epsilon); false: of g / sqrt(max(u, epsilon^2))"),
      FlagRow("previous_u",    &S::previous_u,    "RMS with u of the previous step; false: with u of this step"),
      FlagRow("of_update",     &S::of_update,     "RMS of the update itself, including weight decay; false: of g"),
      FlagRow("of_moment",     &S::of_moment,     "RMS of m / sqrt(max(u, epsilon^2)); not with of_update or previous_u; false: of g"),
      FlagRow("global",        &S::global,        "stable-adamw: one RMS over all tensors; false: one per tensor"),
      RealRow("threshold",     &S::threshold,     kAboveZero, "stable-adamw: a step with a larger RMS is divided by RMS / threshold"),
  };
  // clang-format on
}

template <typename Member>
ConfigRow<OptimizerConfig> MomentRow(std::string name, Member field, std::string meaning) {
  const auto write = [](const MomentFormat& format) { return ToString(format); };
  return TextRow(std::move(name),
                 field,
                 ParseMomentFormat,
                 write,
                 std::move(meaning),
                 "FORMAT[@SCALING[:BLOCK]][+sr[:BITS]]");
}

}  // namespace

ConfigRows<OptimizerConfig> OptimizerRows() {
  using O = OptimizerConfig;
  const auto kind_name = [](OptimizerKind kind) { return ToString(kind); };
  const auto rule_text = [](const UpdateRule& rule) { return ToString(rule); };
  ConfigRows<O> rows = {
      TextRow("kind", &O::kind, ParseOptimizerKind, kind_name, "optimiser", OptimizerKindNames()),
      RealRow("beta1",
              &O::beta1,
              kZeroToBelowOne,
              "decay of m; sgd: momentum; lion: weight of m in the direction"),
      RealRow("beta2",
              &O::beta2,
              kZeroToBelowOne,
              "adamw, stable-adamw: decay of v; lion: decay of m (usually 0.99)"),
      RealRow(
          "beta2_decay",
          &O::beta2_decay,
          kZeroToOne,
          "adamw, stable-adamw: L; if L > 0, beta2 of step t is 1 - t^-L, without bias correction "
          "of v"),
      RealRow(
          "epsilon", &O::epsilon, kAboveZero, "adamw, stable-adamw: added to the square root of v"),
      RealRow("weight_decay",
              &O::weight_decay,
              kAtLeastZero,
              "decoupled weight decay; multiplied by the learning rate"),
      ChoiceRow("decay_filter",
                &O::decay_filter,
                ParseDecayFilter,
                DecayFilterNames(),
                "parameters to which weight decay applies; `matrices` includes embeddings"),
      RealRow(
          "clip_norm",
          &O::clip_norm,
          kAtLeastZero,
          "largest global norm of the gradients; larger gradients are scaled down; 0: no clipping"),
  };
  InSection(rows, "stable", &O::stable, StableRows());
  // clang-format off
  ConfigRows<O> storage = {
      MomentRow("m",                &O::m,                  "storage format of first moments"),
      MomentRow("v",                &O::v,                  "storage format of second moments"),
      ChoiceRow("moment_filter",    &O::moment_filter,      ParseMomentFilter, MomentFilterNames(),
                "parameters that use the formats above (others: fp32); `matrices` includes embeddings"),
      WholeRow("moment_minimum",    &O::moment_minimum,     0, "tensors with fewer elements store moments in fp32"),
      TextRow("moment_tensors",     &O::moment_tensors,
              "pattern of the names of the parameters that use the formats above; '*' matches any characters", "a pattern"),
      FlagRow("update_from_stored", &O::update_from_stored,
              "compute the update from moments read back from storage; false: from moments before they are stored"),
      FormatRow("weights",          &O::weights,            "format of the weights"),
      TextRow("update",             &O::update,             ParseUpdateRule, rule_text, "rule by which weights take a step (updates.md)",
              "KIND[:ARGUMENT][@SCOPE]"),
  };
  // clang-format on
  for (ConfigRow<O>& row : storage) rows.push_back(std::move(row));
  return rows;
}

// Schedule::steps has no key; it is always train.steps.
ConfigRows<Schedule> ScheduleRows() {
  using S = Schedule;
  // clang-format off
  return {
      ChoiceRow("kind",  &S::kind,   ParseScheduleKind, ScheduleKindNames(), "how the learning rate falls from the peak until the last step"),
      RealRow("peak",    &S::peak,   kAtLeastZero, "largest learning rate"),
      WholeRow("warmup", &S::warmup, 0, "number of steps in which the learning rate rises linearly from 0 to the peak"),
      RealRow("final",   &S::final,  kZeroToOne, "learning rate at the end, as a fraction of the peak; constant: ignored"),
  };
  // clang-format on
}

ConfigRows<LossScalerConfig> LossScalerRows() {
  using L = LossScalerConfig;
  // clang-format off
  return {
      ChoiceRow("kind",           &L::kind,            ParseLossScaling, LossScalingNames(),
                "response to gradients that are not finite: none ends the run, dynamic skips the step, tensor skips the tensor"),
      RealRow("initial",          &L::initial,         kAboveZero, "scale of the loss; dynamic: initial scale; none: ignored"),
      RealRow("growth",           &L::growth,          {1, false, kNoLimit, false},
              "dynamic: the scale is multiplied by this after growth_interval consecutive steps without a skip"),
      RealRow("backoff",          &L::backoff,         {0, true, 1, true}, "dynamic: the scale is multiplied by this after a skipped step"),
      WholeRow("growth_interval", &L::growth_interval, 1, "dynamic: number of steps, see growth"),
  };
  // clang-format on
}

}  // namespace numsim
