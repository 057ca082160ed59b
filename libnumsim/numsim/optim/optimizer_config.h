// Which optimiser, with which numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "numsim/formats/format_table.h"
#include "numsim/moments/moment_format.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

struct OptimizerKindRow;  // optimizer_kinds.h

// An optimiser: a row of the table, or one of the caller's own that lives as long.
// docs/optimizers.md has the formulas.
struct OptimizerKind {
  const OptimizerKindRow* row = nullptr;

  // Those that code names.
  static const OptimizerKind kAdamW, kStableAdamW, kSgd, kLion;

  friend bool operator==(const OptimizerKind&, const OptimizerKind&) = default;
};
// Throws Error listing the names of the table.
OptimizerKind ParseOptimizerKind(std::string_view text);
std::string_view ToString(OptimizerKind kind);

// The published variants of StableAdamW. The defaults are Algorithm 2; docs/optimizers.md says
// which switches give which implementation. All but `clipped_decay`, `global` and `threshold` also
// decide what AdamW reports as its RMS.
struct StableOptions {
  bool clipped_decay = true;  // weight decay takes the clipped learning rate; else the unclipped
  bool epsilon_added =
      false;                // RMS of g / (sqrt(u) + epsilon); else of g / sqrt(max(u, epsilon^2))
  bool previous_u = false;  // RMS with u of the step before; else with this step's
  bool of_update = false;   // RMS of the update itself, weight decay included, and not of g
  bool global = false;      // one RMS over all tensors that take the step; else one a tensor
  double threshold = 1;     // RMS above which a step is divided by RMS / threshold
};

enum class DecayFilter : uint8_t { kMatrices, kAll, kNone };
// matrices (those and embeddings), all, none.
DecayFilter ParseDecayFilter(std::string_view text);
std::string_view ToString(DecayFilter filter);

// Which parameters store their moments in the formats asked for; others in fp32: matrices (those
// and embeddings), all.
enum class MomentFilter : uint8_t { kMatrices, kAll };
MomentFilter ParseMomentFilter(std::string_view text);
std::string_view ToString(MomentFilter filter);

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;   // SGD: momentum
  double beta2 = 0.95;  // Adam: of squares; Lion: of m (0.99 is usual there)
  // lambda > 0: beta2 of step t is 1 - t^-lambda, and no bias correction [AdaFactor]. Adam's kinds.
  double beta2_decay = 0;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  DecayFilter decay_filter = DecayFilter::kMatrices;
  double clip_norm = 0;  // gradients of a larger global norm are scaled down to it; 0: off
  StableOptions stable;
  MomentFormat m, v;  // how moments are stored; fp32
  MomentFilter moment_filter = MomentFilter::kMatrices;
  size_t moment_minimum = 0;  // tensors of fewer elements keep fp32 moments
  // The update and its RMS are made from moments as they come back from storage; else from the
  // fresh ones, before they are stored. Lion: no difference, its direction has only the old m.
  bool update_from_stored = false;
  Format weights;     // format of the weights: fp32
  UpdateRule update;  // how they take a step: naive
  OptimizerConfig();
};
// Throws Error naming the field ("optimizer.beta2"): out of range, as float32 too, in which steps
// are computed; a rule that does not serve the format of the weights; weights or moments of a
// format without sign or zero.
void CheckOptimizerConfig(const OptimizerConfig& config);

// The learning rate: `warmup` steps linear from 0 (step 0 has peak / warmup), then to `final` times
// peak at `steps`, by half a cosine or not at all.
enum class ScheduleKind : uint8_t { kConstant, kCosine, kLinear };
ScheduleKind ParseScheduleKind(std::string_view text);
std::string_view ToString(ScheduleKind kind);
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 1e-3;
  uint64_t warmup = 0;
  uint64_t steps = 0;
  double final = 0.1;

  // Of step 0, 1, ... Computed in float64 by base/elementary.h: the same bits everywhere. Steps
  // from `steps` on: final * peak (kConstant: peak).
  double At(uint64_t step) const;
};
// Throws Error naming the field ("schedule.peak").
void CheckSchedule(const Schedule& schedule);

}  // namespace numsim
