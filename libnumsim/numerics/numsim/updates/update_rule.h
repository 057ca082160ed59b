// Update rules for weights in a small format, for steps that may be smaller than half an ulp of the
// format: new weights = weights + learning_rate * update, as closely as the format allows. The
// rules differ in the property of the step that they preserve and in the state that they keep
// beside the weights. docs/updates.md explains and compares them.
//
// A step is taken where its weights are, on the host or on a device, with the same bits, states and
// outcomes. A device has the rules that CheckOnDevice accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/formats/format_spec.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/random/streams.h"

namespace numsim {

// kNaive and so on: one enumerator per row of update_kinds.inc, which defines each rule.
enum class UpdateKind : uint8_t {
#define NUMSIM_UPDATE_KIND(kind, name) k##kind,
#include "numsim/updates/update_kinds.inc"
#undef NUMSIM_UPDATE_KIND
};

// The behaviour of a matched rule whose target is below the first step that alpha reaches.
enum class SmallStep : uint8_t {
  kOneAtRandom,  // moves one weight, with the probability at which the expectation is the target
  kNone,         // moves nothing
};

// Two algorithms that find the same alpha and give the same bits.
enum class MatchSolver : uint8_t { kSelection, kBisection };

// An update rule with its options.
struct UpdateRule {
  UpdateKind kind = UpdateKind::kNaive;
  // The groups of weights that share a target, an alpha or a scale: kTensor, kRow or kBlock. Used
  // by note-as-printed, the matched rules and master-fp16-scaled.
  ScaleLayout scope = {};
  int random_bits = 32;                            // stochastic: 1..32
  std::optional<Format> compensation = {};         // kahan; empty: the format of the weights
  SmallStep small_step = SmallStep::kOneAtRandom;  // matched rules
  MatchSolver solver = MatchSolver::kSelection;    // matched rules
  double tolerance = 1e-2;                         // note-as-printed: 0 never ends early
  int iterations = 32;                             // note-as-printed: >= 1
};

// Reads KIND[:ARGUMENT][@SCOPE]. KIND[:ARGUMENT] is one of
//   naive  stochastic[:BITS]  master-fp32  master-fp16-scaled  split-master  kahan[:FORMAT]
//   note-as-printed  norm-matched[:one|:none]  projection-matched[:one|:none]
// SCOPE, for the kinds that have one, is tensor (the default), row or block:N. Examples:
// stochastic:16, kahan:bf16, norm-matched@row, projection-matched:none@block:128.
// Throws Error that says what was expected.
UpdateRule ParseUpdateRule(std::string_view text);
// Reads rules separated by commas. A custom format keeps its own commas, as in ParseFormatList.
std::vector<UpdateRule> ParseUpdateRuleList(std::string_view text);
// Returns a text that ParseUpdateRule reads back as the same rule, without defaults. solver,
// tolerance and iterations have no text.
std::string ToString(const UpdateRule& rule);
std::string_view ToString(UpdateKind kind);
// Returns every kind, in the order of the enum.
std::span<const UpdateKind> UpdateKinds();
// Returns true if rules of that kind use `scope`.
bool HasScope(UpdateKind kind);
// Returns true if rules of that kind keep state beside the weights.
bool HasState(UpdateKind kind);
// Returns true if rules of that kind search for a factor of the update.
bool Searches(UpdateKind kind);

// Throws Error if the rule does not support weights of that format: split-master needs bf16
// weights, and kahan needs a compensation format with a sign and a zero.
void CheckUpdateRule(const UpdateRule& rule, const Format& format);
// Returns true if CheckUpdateRule does not throw.
bool Serves(const UpdateRule& rule, const Format& format);
// Throws Error, which says what a device has, if a device does not have the rule for weights of
// that format. It has naive, stochastic, master-fp32, split-master, kahan, and norm-matched and
// projection-matched with one alpha per tensor, for weights of formats that HasStepRule
// (cast/shared/round_step_rule.h) accepts. Under backend cuda, ApplyUpdate runs these rules on the
// device for weights of the host too, and all others on the CPU.
void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format);

// In ascending order of severity. If no rule is named, the description holds for every rule.
enum class UpdateStatus : uint8_t {
  kOk,
  // lr u is zero everywhere: nothing moves, not even the sign of a zero, and the state is
  // unchanged. If only some groups have zero updates, those groups are unchanged and report
  // kZeroUpdate in `groups`; the overall status ignores them.
  kZeroUpdate,
  // Matched rules: the target is below the first step that alpha reaches; see SmallStep.
  // Naive and note-as-printed: nothing moved, though lr u is not zero.
  kBelowMinStep,
  kNotConverged,  // note-as-printed ran out of iterations
  // The step would have taken at least one weight beyond the largest finite value, where the weight
  // saturates. Matched rules also: no alpha reaches the target, and nothing moves.
  kSaturated,
  // There is a NaN or infinity in a weight, an update (with its weight decay) or the state: nothing
  // moves in any group, and the state is unchanged. note-as-printed also: there is one in the
  // result, which is written nevertheless, as the note prints it.
  kNonfinite,
};
// Returns ok, zero-update, below-min-step, not-converged, saturated or nonfinite.
std::string_view ToString(UpdateStatus status);

// The input of one step: contiguous float32 matrices of one shape at one place.
struct WeightUpdate {
  FormatSpec format = {};
  MatrixSpan<const float> weights = {};  // values of the format
  MatrixSpan<const float> update = {};   // the direction to move in, e.g. minus the gradient
  float learning_rate = 0;               // finite, >= 0
  // Decoupled weight decay [AdamW]: everywhere, targets included, the rule uses
  // fl32(fl64(u - weight_decay W)) for u, where W is the weight as precisely as the rule knows it
  // (m, w + c or w). Finite.
  float weight_decay = 0;
};

// The state that a rule keeps beside the weights, at their place. Each kind fills its own fields;
// the others stay empty.
struct UpdateState {
  Buffer<float> values;    // rows x cols; master-fp32: m; kahan: c, values of its format
  Buffer<uint16_t> words;  // rows x cols; master-fp16-scaled: codes of h; split-master: r
  Buffer<float> scales;    // 1 x groups; master-fp16-scaled: s per group

  // Returns a copy at that place. Waits for the device.
  UpdateState CopiedTo(Place place) const;
};

// Returns the storage of the rule's state in bytes per weight, without scales; 0 for rules without
// state.
double StateBytesPerWeight(const UpdateRule& rule, const FormatSpec& format);

// Returns each weight as precisely as the rule knows it: m for rules with masters, fl64(w + c) for
// kahan, else w. `state` belongs to the weights and the rule. Requires the host.
std::vector<double> KnownWeights(const UpdateRule& rule,
                                 MatrixSpan<const float> weights,
                                 const UpdateState& state);

// The outcome of a step. Sums are float64 and are added in blocks, independently of the number of
// threads (see SquaredSum in step_sums.h). Sums over several groups are the groups' sums, added in
// order. If a step is refused (kNonfinite, and nothing moves), all numbers are zero.
struct UpdateOutcome {
  UpdateStatus status = UpdateStatus::kOk;  // the most severe that applies, over all groups
  uint64_t moved = 0;                       // weights whose value changed
  // Weights with |w + alpha u|, in float64, above the largest finite value; masters: with |m'|.
  uint64_t saturated = 0;
  double achieved_norm = 0, target_norm = 0;              // ||w' - w||, lr ||u||
  double achieved_projection = 0, target_projection = 0;  // <w' - w, u>, lr ||u||^2
  // Rules that search: the factor that was applied, NaN if groups have different factors. Other
  // rules: lr. If SmallStep or a tie decided, the alpha at which those weights would move.
  float alpha = 0;
  // Rules that search: the quantity that they compare (note-as-printed: `actual`; norm-matched:
  // ||w' - w||; projection-matched: the projection) and its target, for a single group; NaN for
  // several. Other rules: 0.
  double matched = 0, matched_target = 0;
  // Rules that search: passes over all weights of a group, maximum over the groups.
  // note-as-printed: candidates. The one field that differs on a device, whose search does not
  // depend on UpdateRule::solver; there, too, it depends only on the arguments.
  int passes = 0;
};

// Rounds float32 weights to those that a rule starts from, and returns the state that goes with
// them: m = initial and w = Q(m); or s and h as if x were initial, and w = Q(s h); or
// split-master's halves; or c = 0 and w = Q(initial). Requires contiguous matrices of one shape on
// the host and a rule that CheckUpdateRule accepts. `initial` may be `weights`. Infinities
// saturate. A NaN stays NaN if the format has NaN; ApplyUpdate refuses such weights or state.
UpdateState StartUpdates(const UpdateRule& rule,
                         const FormatSpec& format,
                         In<float> initial,
                         MatrixSpan<float> weights);

// Takes one step: writes the new weights, values of the format, and the new state. new_weights is a
// contiguous matrix of the same shape and place; it may be step.weights but must not overlap it
// otherwise. Element i (row by row) uses word i of `random`: give each step and tensor its own
// stream. `state` is that of StartUpdates, at the place of the weights, or of the previous step.
// `groups`, if not null, receives the outcome of each group of the scope, or one outcome for rules
// without scope. The bits depend neither on place and backend nor on the number of threads. On a
// device, it waits for the outcome, and throws Error for a rule that CheckOnDevice refuses.
UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const WeightUpdate& step,
                          RandomStream random,
                          UpdateState& state,
                          MatrixSpan<float> new_weights,
                          std::vector<UpdateOutcome>* groups = nullptr);

}  // namespace numsim
