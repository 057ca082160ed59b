// Keys of [optimizer], [schedule] and [loss_scaler].
#include "numsim/base/error.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/optim/optimizer_kinds.h"

namespace numsim {
namespace {

ConfigRows<StableOptions> StableRows() {
  using S = StableOptions;
  // clang-format off
  return {
      FlagRow("clipped_decay", &S::clipped_decay, "stable-adamw: weight decay takes the clipped learning rate, else the unclipped"),
      FlagRow("epsilon_added", &S::epsilon_added, "RMS of g / (sqrt(u) + epsilon), else of g / sqrt(max(u, epsilon^2))"),
      FlagRow("previous_u",    &S::previous_u,    "RMS with u of the step before, else with this step's"),
      FlagRow("of_update",     &S::of_update,     "RMS of the update itself, weight decay included, and not of g"),
      FlagRow("global",        &S::global,        "one RMS over all tensors, else one a tensor"),
      RealRow("threshold",     &S::threshold,     kAboveZero, "RMS above which a step is divided by RMS / threshold"),
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
      TextRow(
          "kind", &O::kind, ParseOptimizerKind, kind_name, "the optimiser", OptimizerKindNames()),
      RealRow("beta1", &O::beta1, kZeroToBelowOne, "decay of m; sgd: momentum"),
      RealRow("beta2",
              &O::beta2,
              kZeroToBelowOne,
              "adamw, stable-adamw: decay of v; lion: of m (0.99 is usual there)"),
      RealRow("beta2_decay",
              &O::beta2_decay,
              kZeroToOne,
              "L above 0: beta2 of step t is 1 - t^-L, without bias correction"),
      RealRow("epsilon", &O::epsilon, kAboveZero, "added to the root of v"),
      RealRow("weight_decay", &O::weight_decay, kAtLeastZero, "decoupled, times learning rate"),
      ChoiceRow("decay_filter",
                &O::decay_filter,
                ParseDecayFilter,
                DecayFilter::kNone,
                "which parameters decay; matrices: and embeddings"),
      RealRow("clip_norm",
              &O::clip_norm,
              kAtLeastZero,
              "gradients of a larger global norm are scaled down to it; 0: off"),
  };
  InSection(rows, "stable", &O::stable, StableRows());
  // clang-format off
  ConfigRows<O> storage = {
      MomentRow("m",                &O::m,                  "how first moments are stored"),
      MomentRow("v",                &O::v,                  "how second moments are stored"),
      ChoiceRow("moment_filter",    &O::moment_filter,      ParseMomentFilter, MomentFilter::kAll,
                "which parameters store moments so, others in fp32; matrices: and embeddings"),
      WholeRow("moment_minimum",    &O::moment_minimum,     0, "tensors of fewer elements store moments in fp32"),
      FlagRow("update_from_stored", &O::update_from_stored,
              "the update is made from moments as they come back from storage, else from those before they are stored"),
      FormatRow("weights",          &O::weights,            "format of the weights"),
      TextRow("update",             &O::update,             ParseUpdateRule, rule_text, "rule by which weights take a step (updates.md)",
              "KIND[:ARGUMENT][@SCOPE]"),
  };
  // clang-format on
  for (ConfigRow<O>& row : storage) rows.push_back(std::move(row));
  return rows;
}

// Schedule::steps has no key: it is train.steps.
ConfigRows<Schedule> ScheduleRows() {
  using S = Schedule;
  // clang-format off
  return {
      ChoiceRow("kind",  &S::kind,   ParseScheduleKind, ScheduleKind::kLinear, "how the learning rate falls from its peak to the last step"),
      RealRow("peak",    &S::peak,   kAtLeastZero, "the largest learning rate"),
      WholeRow("warmup", &S::warmup, 0, "steps of linear rise from 0 to the peak"),
      RealRow("final",   &S::final,  kZeroToOne, "learning rate at the end, as a share of the peak"),
  };
  // clang-format on
}

ConfigRows<LossScalerConfig> LossScalerRows() {
  using L = LossScalerConfig;
  // clang-format off
  return {
      ChoiceRow("kind",           &L::kind,            ParseLossScaling, LossScaling::kTensor,
                "what is done about gradients that are not finite: none ends the run, dynamic skips the step, tensor skips the tensor"),
      RealRow("initial",          &L::initial,         kAboveZero, "factor of the loss; dynamic: at first"),
      RealRow("growth",           &L::growth,          {1, false, kNoLimit, false},
              "dynamic: the factor is multiplied by it after growth_interval steps in a row that were taken"),
      RealRow("backoff",          &L::backoff,         {0, true, 1, false}, "dynamic: it is multiplied by it after a step that was skipped"),
      WholeRow("growth_interval", &L::growth_interval, 1, "dynamic: steps"),
  };
  // clang-format on
}

}  // namespace numsim
