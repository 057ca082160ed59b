// The configuration of an optimiser and of the learning rate schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "numsim/formats/format_table.h"
#include "numsim/moments/moment_format.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

struct OptimizerKindRow;  // optimizer_kinds.h

// An optimiser: a row of the table of optimisers, or a row of the caller's own that outlives every
// use. See docs/optimizers.md for the formulas.
struct OptimizerKind {
  const OptimizerKindRow* row = nullptr;

  // The optimisers that code refers to by name.
  static const OptimizerKind kAdamW, kStableAdamW, kSgd, kLion;

  friend bool operator==(const OptimizerKind&, const OptimizerKind&) = default;
};
// Throws Error listing the names of the table if `text` is none of them.
OptimizerKind ParseOptimizerKind(std::string_view text);
std::string_view ToString(OptimizerKind kind);

// The published variants of StableAdamW. The defaults are Algorithm 2 of [SwitchBack];
// docs/optimizers.md lists the switches of each implementation. All except `clipped_decay`,
// `global` and `threshold` also determine the RMS that AdamW reports.
struct StableOptions {
  bool clipped_decay = true;   // weight decay uses the clipped learning rate; false: the unclipped
  bool epsilon_added = false;  // RMS of g / (sqrt(u) + epsilon); false: g / sqrt(max(u, epsilon^2))
  bool previous_u = false;     // RMS uses the previous step's u; false: this step's
  bool of_update = false;      // RMS of the update itself, including weight decay; false: of g
  bool of_moment = false;      // RMS of m / sqrt(max(u, epsilon^2)); not with of_update, previous_u
  bool global = false;         // one RMS over all tensors that take the step; false: one per tensor
  double threshold = 1;        // if RMS exceeds it, the step is divided by RMS / threshold
};

// The parameters that weight decay applies to. kMatrices includes embeddings.
enum class DecayFilter : uint8_t { kMatrices, kAll, kNone };
// Names: matrices, all, none. ParseDecayFilter throws Error for any other text.
DecayFilter ParseDecayFilter(std::string_view text);
std::string_view ToString(DecayFilter filter);
std::string DecayFilterNames();

// The parameters that store their moments in the configured formats; the others store them in fp32.
// kMatrices includes embeddings.
enum class MomentFilter : uint8_t { kMatrices, kAll };
// Names: matrices, all. ParseMomentFilter throws Error for any other text.
MomentFilter ParseMomentFilter(std::string_view text);
std::string_view ToString(MomentFilter filter);
std::string MomentFilterNames();

// The settings of an optimiser ([optimizer]).
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;   // decay of m; SGD: momentum; Lion: weight of m in the direction
  double beta2 = 0.95;  // AdamW, StableAdamW: decay of v; Lion: decay of m (usually 0.99)
  // AdamW, StableAdamW: lambda. If > 0, beta2 of step t is 1 - t^-lambda and v has no bias
  // correction [AdaFactor].
  double beta2_decay = 0;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  DecayFilter decay_filter = DecayFilter::kMatrices;
  double clip_norm = 0;  // gradients with a larger global norm are scaled down to it; 0: off
  StableOptions stable;
  MomentFormat m, v;  // storage formats of the first and second moments; default fp32
  MomentFilter moment_filter = MomentFilter::kMatrices;
  size_t moment_minimum = 0;         // tensors with fewer elements store their moments in fp32
  std::string moment_tensors = "*";  // pattern of names; other tensors store their moments in fp32
  // If true, the update and its RMS are computed from the moments as read back from storage; if
  // false, from the new moments before they are stored. Lion ignores it: its direction uses only
  // the old m.
  bool update_from_stored = false;
  Format weights;     // format of the weights; default fp32
  UpdateRule update;  // rule by which the weights take a step; default naive
  OptimizerConfig();
};
// Throws Error naming the field (e.g. "optimizer.beta2") for a value that is out of range, also
// after rounding to float32, in which steps are computed; for an update rule that does not support
// the weight format; and for weight or moment formats without a sign or a zero.
void CheckOptimizerConfig(const OptimizerConfig& config);

// A learning rate schedule: rises linearly from 0 over `warmup` steps (step 0 has peak / warmup),
// then falls to `final` times the peak at step `steps` along half a cosine or a line, or stays at
// the peak (kConstant).
enum class ScheduleKind : uint8_t { kConstant, kCosine, kLinear };
// Names: constant, cosine, linear. ParseScheduleKind throws Error for any other text.
ScheduleKind ParseScheduleKind(std::string_view text);
std::string_view ToString(ScheduleKind kind);
std::string ScheduleKindNames();
// The settings of a learning rate schedule ([schedule]).
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 1e-3;
  uint64_t warmup = 0;
  uint64_t steps = 0;
  double final = 0.1;

  // Returns the learning rate of step 0, 1, ...; from `steps` on it is final * peak (kConstant:
  // peak). Computed in float64 with base/elementary.h, so the bits are the same on every machine.
  double At(uint64_t step) const;
};
// Throws Error naming the field ("schedule.peak" or "schedule.final") unless the peak is in
// [0, 1e38] and the final share in [0, 1].
void CheckSchedule(const Schedule& schedule);

}  // namespace numsim
