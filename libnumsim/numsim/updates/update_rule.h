// How weights kept in a small format take up a step that may be smaller than their own gaps:
// new weights = weights + learning_rate * update, as far as the format lets them. The rules differ
// in what they preserve of the step and in what they keep beside the weights. docs/updates.md
// explains and compares them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/random/streams.h"

namespace numsim {

// Below: w a weight, u its update, lr the learning rate, Q rounding to nearest even in the format
// of the weights, saturating unless said otherwise; fl32 and fl64 rounding to float32 and float64.
// A step is exact unless a fl stands around it.
enum class UpdateKind : uint8_t {
  // w' = Q(fl32(w + fl32(lr u))): what a framework computes without master weights.
  kNaive,
  // w' = SR(w + lr u), rounded once from the exact sum, by variant A with random_bits bits: a
  // probability is known in steps of 2^-random_bits, and what is finer is cut off toward zero.
  kStochastic,
  // Keeps m in float32: m' = fl32(m + fl32(lr u)), saturating, w' = Q(m').
  kMasterFp32,
  // Keeps m = s h, h in fp16 and s a power of two for each group of the scope. With
  // x = fl64(m + lr u): s' = MakeScale(fp16, max fl32(|x|), kPow2Ceil).scale (quantize/scale.h), the
  // least power of two at which nothing overflows, h' = fp16(x / s'), to nearest even, saturating,
  // and w' = Q(s' h'). In the maximum, what overflows fl32 counts as the largest float32. [FP8LM]
  kMasterFp16Scaled,
  // bf16 weights alone. Weight and a signed 16-bit remainder r are the two halves of a float32 m:
  // bits(m) = (bits(w) << 16) + r, so that w is m rounded to nearest, ties away from zero, where Q
  // has ties to even. m' = fl32(m + fl32(lr u)), clamped to magnitudes below the overflow of w.
  // [TransformerEngine]
  kSplitMaster,
  // Keeps what the last step lost, c, in the format `compensation` (Qc rounds to it, saturating):
  // y = fl64(c + lr u), w' = Q(w + y), c' = Qc(fl64(y - fl64(w' - w))). [Kahan]
  kKahan,
  // The search of [Seed003] as printed there. alpha is float32, Q does not saturate, and
  //   new(alpha) = Q(fl32(w + fl32(alpha u)))
  //   actual     = sum of squares of Q(fl32(new - w))
  //   target     = lr * sum of squares of u           (an effective learning rate of sqrt(lr))
  // [low, high] = [0, 1] is halved until |actual - target| / target < tolerance, at most
  // `iterations` times: actual < target moves low to alpha, all else, NaN included, moves high.
  // The last candidate is the result, whether or not it is the closest.
  kNoteAsPrinted,
  // w' = Q(w + alpha u), rounded once, with the float32 alpha at which ||w' - w|| = lr ||u||: see
  // matched_step.h.
  kNormMatched,
  // The same with the alpha at which <w' - w, u> = lr ||u||^2.
  kProjectionMatched,
};

// What a matched rule does where its target lies below the first step that alpha reaches.
enum class SmallStep : uint8_t {
  kOneAtRandom,  // moves one weight with the probability that makes the expectation the target
  kNone,         // moves nothing
};

// Two ways to the same alpha and the same bits.
enum class MatchSolver : uint8_t { kSelection, kBisection };

struct UpdateRule {
  UpdateKind kind = UpdateKind::kNaive;
  // What shares a target, an alpha or a scale: kTensor, kRow or kBlock. Read by the note's rule,
  // the matched ones and master-fp16-scaled.
  ScaleLayout scope;
  int random_bits = 32;                            // stochastic: 1..32
  std::optional<Format> compensation;              // kahan; none: the format of the weights
  SmallStep small_step = SmallStep::kOneAtRandom;  // matched rules
  MatchSolver solver = MatchSolver::kSelection;    // matched rules
  double tolerance = 1e-2;                         // note-as-printed: 0 never ends early
  int iterations = 32;                             // note-as-printed: >= 1
};

// KIND[:ARGUMENT][@SCOPE]. KIND is one of
//   naive  stochastic[:BITS]  master-fp32  master-fp16-scaled  split-master  kahan[:FORMAT]
//   note-as-printed  norm-matched[:one|:none]  projection-matched[:one|:none]
// and SCOPE row or block:N, for the kinds that have one. Examples: stochastic:16, kahan:bf16,
// norm-matched@row, projection-matched:none@block:128.
// Throws Error that says what was expected.
UpdateRule ParseUpdateRule(std::string_view text);
// Rules separated by commas, in which a custom format keeps its own commas (as ParseFormatList).
std::vector<UpdateRule> ParseUpdateRuleList(std::string_view text);
// The text that reads back to the same rule; defaults are left out. solver, tolerance and
// iterations have no text.
std::string ToString(const UpdateRule& rule);
std::string_view ToString(UpdateKind kind);
// Every kind, in the order of the enum.
std::span<const UpdateKind> UpdateKinds();
// Whether rules of that kind read `scope`; keep something beside the weights; look for a factor of
// the update.
bool HasScope(UpdateKind kind);
bool HasState(UpdateKind kind);
bool Searches(UpdateKind kind);

// Throws Error when the rule does not serve weights of that format: split-master is for bf16, and a
// compensation (kahan) needs a format with a sign and a zero.
void CheckUpdateRule(const UpdateRule& rule, const Format& format);
// Whether CheckUpdateRule accepts them.
bool Serves(const UpdateRule& rule, const Format& format);

// In ascending order of severity. The first sentence of each is for every rule.
enum class UpdateStatus : uint8_t {
  kOk,
  // lr u is zero everywhere: nothing moves, not even a sign of zero, and the state stays. A group
  // of zeros among others stays likewise, and has this status in `groups` alone.
  kZeroUpdate,
  // Matched rules: the target lies below the first step that alpha reaches; see SmallStep.
  // Naive and note-as-printed: nothing moved, though lr u is not zero.
  kBelowMinStep,
  kNotConverged,  // note-as-printed ran out of iterations
  // At least one weight was wanted beyond the largest finite value and stays there; or, matched
  // rules, no alpha reaches the target: then nothing moves.
  kSaturated,
  // A NaN or infinity in any weight, update (with its weight decay) or state: nothing moves in any
  // group and the state stays. Of note-as-printed, also in its result, which is then kept, as
  // printed.
  kNonfinite,
};
// ok zero-update below-min-step not-converged saturated nonfinite.
std::string_view ToString(UpdateStatus status);

// One step to take. weights and update have rows * cols elements, row by row.
struct WeightUpdate {
  FormatSpec format;
  size_t rows = 1, cols = 0;
  std::span<const float> weights;  // values of the format
  std::span<const float> update;   // the direction to move in, e.g. minus the gradient
  float learning_rate = 0;         // finite, >= 0
  // Decoupled weight decay [AdamW]: the rule uses fl32(fl64(u - weight_decay W)) for u everywhere,
  // targets included, with W the weight as well as the rule knows it (m, w + c or w). Finite.
  float weight_decay = 0;
};

// What a rule keeps beside the weights; each kind fills its own.
struct UpdateState {
  std::vector<float> values;    // master-fp32: m; kahan: c, values of its format
  std::vector<uint16_t> words;  // master-fp16-scaled: codes of h; split-master: remainders r
  std::vector<float> scales;    // master-fp16-scaled: s of each group

  friend bool operator==(const UpdateState&, const UpdateState&) = default;
};

// Storage of that state in bytes a weight, scales left out; 0 for rules without state.
double StateBytesPerWeight(const UpdateRule& rule, const FormatSpec& format);

// W of each weight, as well as the rule knows it: m of masters, fl64(w + c) of kahan, else w.
// `state` belongs to the rows * cols weights and the rule.
std::vector<double> KnownWeights(const UpdateRule& rule,
                                 size_t rows,
                                 size_t cols,
                                 std::span<const float> weights,
                                 const UpdateState& state);

// What came of a step. Sums are float64, in blocks whatever the number of threads (SquaredSum);
// those over several groups are the groups' own, added in order. A step that was refused
// (kNonfinite and nothing moves) has a status alone: all numbers are zero.
struct UpdateOutcome {
  UpdateStatus status = UpdateStatus::kOk;  // the most severe that applies, over all groups
  uint64_t moved = 0;                       // weights whose value changed
  // Weights with |w + alpha u|, in float64, beyond the largest finite value; masters: with |m'|.
  uint64_t saturated = 0;
  double achieved_norm = 0, target_norm = 0;              // ||w' - w||, lr ||u||
  double achieved_projection = 0, target_projection = 0;  // <w' - w, u>, lr ||u||^2
  // Rules that search: the factor that was applied, NaN where groups have several; else lr.
  // Where SmallStep decided, or a tie was broken: the alpha at which those weights would move.
  float alpha = 0;
  // Rules that search, else 0: what they compare (the note: `actual`; norm ||w' - w||; projection),
  // of one group; NaN over several.
  double matched = 0, matched_target = 0;
  // Rules that search: passes over all weights of a group, the greatest. The note: candidates.
  int passes = 0;
};

// Rounds float32 weights to those that a rule starts from and returns the state that goes with
// them: m = initial and w = Q(m), s and h as if x were initial and w = Q(s h), split-master's
// halves, c = 0 and w = Q(initial). Requires equal lengths rows * cols and a rule that
// CheckUpdateRule accepts. `initial` may be `weights`. Infinities saturate. A NaN stays one where
// the format has it, and such weights or state are refused by ApplyUpdate.
UpdateState StartUpdates(const UpdateRule& rule,
                         const FormatSpec& format,
                         size_t rows,
                         size_t cols,
                         std::span<const float> initial,
                         std::span<float> weights);

// Takes one step: writes the new weights, values of the format, and the new state. new_weights may
// be step.weights but not overlap otherwise. Element i (row by row) draws word i of `random`: give
// each step and tensor a stream of its own. `state` is that of StartUpdates or of the last step.
// `groups`, if not null, receives the outcome of each group of the scope, one for other rules.
// The bits depend neither on backend nor on the number of threads.
UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const WeightUpdate& step,
                          RandomStream random,
                          UpdateState& state,
                          std::span<float> new_weights,
                          std::vector<UpdateOutcome>* groups = nullptr);

}  // namespace numsim
