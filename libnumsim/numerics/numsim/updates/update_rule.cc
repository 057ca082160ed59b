#include "numsim/updates/update_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/quantize.h"
#include "numsim/updates/internal/require_state.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/internal/update_on_device.h"

namespace numsim {
namespace {

void CheckStep(const WeightUpdate& step, MatrixSpan<const float> new_weights) {
  RequireLikeWeights(step.weights, step.weights, "ApplyUpdate", "weights");
  RequireLikeWeights(step.update, step.weights, "ApplyUpdate", "update");
  RequireLikeWeights(new_weights, step.weights, "ApplyUpdate", "new_weights");
  NUMSIM_REQUIRE(std::isfinite(step.learning_rate) && step.learning_rate >= 0,
                 "ApplyUpdate: learning_rate is {}, expected finite and >= 0",
                 step.learning_rate);
  NUMSIM_REQUIRE(std::isfinite(step.weight_decay),
                 "ApplyUpdate: weight_decay is {}, expected finite",
                 step.weight_decay);
}

// True if `value` holds for every block.
struct All {
  bool value = true;

  All& operator+=(const All& other) {
    value = value && other.value;
    return *this;
  }
};

bool IsFiniteState(const UpdateRule& rule, const WeightUpdate& step, const UpdateState& state) {
  const UpdateMethod& method = MethodOf(rule.kind);
  if (!std::isfinite(AbsmaxOfAll(state.values.Span())) ||
      !std::isfinite(AbsmaxOfAll(state.scales.Span()))) {
    return false;
  }
  const std::span<const uint16_t> words = state.words.Span();
  return SumOverBlocks<All>(words.size(),
                            [&](size_t begin, size_t count) {
                              return All{method.HasFiniteWords(
                                  step.weights.data + begin, words.data() + begin, count)};
                            })
      .value;
}

// Returns `outcome` for a step in which nothing moves.
UpdateOutcome Refuse(const UpdateJob& job,
                     UpdateOutcome outcome,
                     std::vector<UpdateOutcome>* groups) {
  KeepWeights(job, {0, job.weights.size()});
  if (groups != nullptr) std::fill(groups->begin(), groups->end(), outcome);
  return outcome;
}

// Returns the outcome of a step that the scan does not allow to take, or nothing.
std::optional<UpdateOutcome> RefuseScanned(const UpdateJob& job,
                                           const Scan& scan,
                                           std::vector<UpdateOutcome>* groups) {
  if (!scan.Finite()) return Refuse(job, {.status = UpdateStatus::kNonfinite}, groups);
  if (scan.update != 0 && job.learning_rate != 0) return std::nullopt;
  const float alpha = job.method->traits.searches ? 0 : job.learning_rate;
  return Refuse(job, {.status = UpdateStatus::kZeroUpdate, .alpha = alpha}, groups);
}

// Returns the rule if it can take this step before the arrays are scanned: if nothing but the new
// weights would have to be undone if the step were refused after it was taken. Else null.
const ElementwiseMethod* StepsFirst(const UpdateJob& job, float weight_decay) {
  const bool first = job.method->traits.state == RuleState::kNone && weight_decay == 0 &&
                     job.learning_rate > 0 && job.WritesApart();
  return first ? job.method->Elementwise() : nullptr;
}

// Reads the arrays once: takes the step while it scans them.
UpdateOutcome StepFirst(const UpdateJob& job,
                        const ElementwiseMethod& method,
                        std::vector<UpdateOutcome>* groups) {
  const ScannedStep taken = method.ScanAndStep(job);
  if (const auto outcome = RefuseScanned(job, taken.scan, groups)) return *outcome;
  const UpdateOutcome outcome = CompleteOutcome(job.rule->kind,
                                                job.learning_rate,
                                                taken.sums,
                                                taken.scan.update_square,
                                                {.alpha = job.learning_rate});
  if (groups != nullptr) groups->assign(1, outcome);
  return outcome;
}

// Takes a step on the host. `groups`, if not null, has one element per group.
UpdateOutcome ApplyOnHost(const UpdateRule& rule,
                          const WeightUpdate& step,
                          const ElementGroups& all,
                          RandomStream random,
                          UpdateState& state,
                          std::span<float> new_weights,
                          std::vector<UpdateOutcome>* groups) {
  UpdateJob job = MakeUpdateJob(rule, step, random);
  job.weights = step.weights.Span();
  job.update = step.update.Span();
  job.state = &state;
  job.new_weights = new_weights;
  if (const auto* method = StepsFirst(job, step.weight_decay)) {
    return StepFirst(job, *method, groups);
  }
  Scan scan = ScanArrays(job.weights, job.update);
  if (scan.Finite() && !IsFiniteState(rule, step, state)) {
    return Refuse(job, {.status = UpdateStatus::kNonfinite}, groups);
  }
  if (scan.Finite() && step.weight_decay != 0) {
    thread_local std::vector<float> scratch;  // kept, because later steps have similar lengths
    if (scratch.size() < job.update.size()) scratch.resize(job.update.size());
    const std::span<float> decayed = std::span(scratch).first(job.update.size());
    DecayedUpdate(rule, step, state, decayed);
    job.update = decayed;
    scan = ScanArrays(job.weights, job.update);
  }
  if (const auto outcome = RefuseScanned(job, scan, groups)) return *outcome;
  job.SetAbsmax(scan);
  return TakeStep(job, all, scan.update_square, groups);
}

// Takes the step by a rule that does not need `groups`: on a device, or by TakeInPlace. Returns no
// outcome if the step is one for ApplyOnHost.
std::optional<UpdateOutcome> TakeWhole(const UpdateRule& rule,
                                       const WeightUpdate& step,
                                       RandomStream random,
                                       UpdateState& state,
                                       MatrixSpan<float> new_weights) {
  const bool on_host = step.weights.place.IsHost();
  if (on_host && new_weights.data == step.weights.data) {
    const auto outcome = MethodOf(rule.kind).TakeInPlace(step, new_weights.Span());
    if (outcome) return outcome;
  }
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!on_host) {
      CheckOnDevice(rule, step.format);
      return ApplyUpdateOnDevice(rule, step, random, state, new_weights);
    }
    if (UsesDevice() && step.weights.Elements() > 0 && ServesOnDevice(rule, step.format)) {
      return ApplyUpdateOffloaded(rule, step, random, state, new_weights);
    }
  }
  return std::nullopt;
}

}  // namespace

UpdateJob MakeUpdateJob(const UpdateRule& rule, const WeightUpdate& step, RandomStream random) {
  UpdateJob job;
  job.rule = &rule;
  job.method = &MethodOf(rule.kind);
  job.plan = WeightPlan(step.format);
  job.own_plan = OwnPlan(rule, step.format);
  job.largest = MaxFinite(step.format);
  job.learning_rate = step.learning_rate;
  job.random = random;
  return job;
}

UpdateState UpdateState::CopiedTo(Place place) const {
  return {CopyAt(values.View(), place), CopyAt(words.View(), place), CopyAt(scales.View(), place)};
}

UpdateState StartUpdates(const UpdateRule& rule,
                         const FormatSpec& format,
                         In<float> initial,
                         MatrixSpan<float> weights) {
  const DefaultFloatEnvironment environment;
  CheckRule(rule, format);
  RequireHost("StartUpdates", {initial.place, weights.place});
  RequireLikeWeights(weights, weights, "StartUpdates", "weights");
  RequireLikeWeights(initial, weights, "StartUpdates", "initial");
  const size_t rows = weights.rows, cols = weights.cols;
  const UpdateMethod& method = MethodOf(rule.kind);
  const UpdateTraits& traits = method.traits;
  const ElementGroups groups(ScopeOf(rule), rows, cols);
  UpdateState state;
  if (traits.state == RuleState::kValues) state.values.Resize(rows, cols);
  if (traits.state == RuleState::kWords) state.words.Resize(rows, cols);
  if (traits.has_scales) state.scales.Resize(1, groups.Count());
  method.Start({WeightPlan(format), groups, initial.Span(), state, weights.Span()});
  return state;
}

UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const WeightUpdate& step,
                          RandomStream random,
                          UpdateState& state,
                          MatrixSpan<float> new_weights,
                          std::vector<UpdateOutcome>* groups) {
  const DefaultFloatEnvironment environment;
  CheckRule(rule, step.format);
  CheckStep(step, new_weights);
  const ElementGroups all(ScopeOf(rule), step.weights.rows, step.weights.cols);
  RequireState(rule, state, step.weights, all.Count(), "ApplyUpdate");
  if (const auto outcome = TakeWhole(rule, step, random, state, new_weights)) {
    if (groups != nullptr) groups->assign(1, *outcome);
    return *outcome;
  }
  if (groups != nullptr) groups->assign(all.Count(), {});
  return ApplyOnHost(rule, step, all, random, state, new_weights.Span(), groups);
}

}  // namespace numsim
